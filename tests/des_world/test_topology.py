"""Domains, links and routes."""

import dataclasses
import math

import networkx as nx
import numpy as np
import pytest
from drawn_figures import domains, links
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import topologies, unit_domain, world

from des import Domain, Link, Topology, UnreachableError, read_topology
from des.worlds import EAST_CENTRAL_WEST

DIRECT, SLOW, FAST = (1.0, 9.0), (1.0, 2.0), (1.0, 1.0)


def hops(topology: Topology, ends: str) -> str:
    """Route between two one-letter domains as text, such as ``"A->B B->C"``."""
    source, target = (topology.index_of[name] for name in ends)
    route = [topology.links[index] for index in topology.route(source, target)]
    return " ".join(f"{link.source}->{link.target}" for link in route)


def test_a_domain_adds_up_its_gpus():
    domain = read_topology(EAST_CENTRAL_WEST).domains[0]

    assert domain.peak_flops_per_s == 960e12  # 8 x 120 TFLOP/s
    assert domain.attainable_flops_per_s == 480e12  # half of it
    assert domain.memory_bytes == 640e9  # 8 x 80 GB


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("num_gpus", 0, "a whole number from 1 to 1000000000"),
        ("num_gpus", 1.5, "a whole number from 1 to 1000000000"),
        ("num_gpus", True, "a whole number from 1 to 1000000000"),
        ("gpu_peak_flops_per_s", 0.0, "positive and finite"),
        ("gpu_memory_bytes", -1.0, "positive and finite"),
        ("gpu_memory_bandwidth_bytes_per_s", math.inf, "positive and finite"),
        ("intra_bandwidth_bytes_per_s", math.nan, "positive and finite"),
        ("attainable_fraction", 0.0, "above 0 and at most 1"),
        ("attainable_fraction", 1.1, "above 0 and at most 1"),
        ("attainable_fraction", math.nan, "above 0 and at most 1"),
        ("intra_latency_s", -1.0, "finite and not negative"),
    ],
)
def test_a_domain_refuses_impossible_figures(field, value, allowed):
    with pytest.raises(ValueError, match=f"domain East: {field} must be {allowed}, got {value!r}"):
        dataclasses.replace(unit_domain("East"), **{field: value})


@pytest.mark.parametrize("name", ["", "  ", 5])
def test_a_domain_needs_a_name(name):
    with pytest.raises(ValueError, match="domain: name must be a non-empty text"):
        unit_domain(name)


@pytest.mark.parametrize("name", ["East*2", "A|B", "East, West", " East", "East\n"])
def test_a_name_that_plans_as_text_cannot_hold_is_refused(name):
    with pytest.raises(ValueError, match=r"domain: name must be printable.*without , \| \*, which"):
        unit_domain(name)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("bandwidth_bytes_per_s", 0.0, "positive and finite"),
        ("bandwidth_bytes_per_s", -1.0, "positive and finite"),
        ("bandwidth_bytes_per_s", math.nan, "positive and finite"),
        ("bandwidth_bytes_per_s", math.inf, "positive and finite"),
        ("latency_s", -1.0, "finite and not negative"),
        ("latency_s", math.nan, "finite and not negative"),
    ],
)
def test_a_link_refuses_impossible_figures(field, value, allowed):
    link = Link(source="A", target="B", bandwidth_bytes_per_s=1.0, latency_s=0.0)

    with pytest.raises(ValueError, match=f"link A->B: {field} must be {allowed}, got {value!r}"):
        dataclasses.replace(link, **{field: value})


def test_a_link_joins_two_domains():
    with pytest.raises(ValueError, match="link A->A: source and target must differ"):
        Link(source="A", target="A", bandwidth_bytes_per_s=1.0, latency_s=0.0)


def test_a_world_refuses_what_does_not_fit_together():
    a, b = unit_domain("A"), unit_domain("B")
    link = Link(source="A", target="B", bandwidth_bytes_per_s=1.0, latency_s=0.0)
    back = dataclasses.replace(link, source="B", target="A")
    with pytest.raises(ValueError, match="domains must hold at least one domain, got none"):
        Topology.of([], [])
    with pytest.raises(ValueError, match="domain names must be unique, got 'A' 2x"):
        Topology.of([a, b, a], [])
    with pytest.raises(ValueError, match=r"link A->Mars: domain must be one of A, B; got 'Mars'"):
        Topology.of([a, b], [link, dataclasses.replace(link, target="Mars")])
    with pytest.raises(ValueError, match="link A->B: must be given once, got a duplicate"):
        Topology.of([a, b], [link, back, dataclasses.replace(link, latency_s=1.0)])
    with pytest.raises(ValueError, match=r"links must be ordered; use Topology\.of"):
        Topology(domains=(a, b), links=(back, link))


@given(topology=topologies(), rng=st.randoms(use_true_random=False))
def test_worlds_are_equal_whatever_the_order_of_their_links(topology, rng):
    shuffled = list(topology.links)
    rng.shuffle(shuffled)

    again = Topology.of(topology.domains, shuffled, topology.dynamics)
    assert again == topology
    assert hash(again) == hash(topology)


@pytest.mark.parametrize(
    ("links", "ends", "way"),
    [
        # The direct link is taken even if a detour is quicker.
        ({"AC": DIRECT, "AB": FAST, "BC": FAST}, "AC", "A->C"),
        # The lowest latency, whatever hops and bandwidth: 2 + 2 over B, 1 + 1 + 1 over C and E.
        (
            {"AB": (9e9, 2), "BD": (9e9, 2), "AC": FAST, "CE": FAST, "ED": FAST},
            "AD",
            "A->C C->E E->D",
        ),
        # Of equal latencies the fewest hops: 1 + 1 + 1 over B and C, 1 + 2 over D.
        ({"AB": FAST, "BC": FAST, "CE": FAST, "AD": FAST, "DE": SLOW}, "AE", "A->D D->E"),
        # Of equal routes the domain that comes first, also where their hops differ.
        ({"AB": FAST, "BD": FAST, "AC": FAST, "CD": FAST}, "AD", "A->B B->D"),
        ({"AB": SLOW, "BD": FAST, "AC": SLOW, "CD": FAST}, "AD", "A->B B->D"),
        ({"AB": SLOW, "BD": FAST, "AC": FAST, "CD": SLOW}, "AD", "A->B B->D"),
    ],
)
def test_routes_by_hand(links, ends, way):
    assert hops(world("".join(sorted({*"".join(links)})), links), ends) == way


def test_only_the_direction_that_is_missing_is_unreachable():
    topology = world("ABC", {"AB": FAST, "BA": FAST, "BC": FAST})

    assert hops(topology, "AC") == "A->B B->C"
    with pytest.raises(UnreachableError, match="no path of links joins C -> A"):
        topology.route(2, 0)


@given(topology=topologies(fully=False))
def test_routes_join_their_ends_and_no_other_route_is_quicker(topology):
    """networkx's Bellman-Ford distance is the oracle; a direct link overrules it."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(topology.num_domains))
    for (source, target), index in topology.link_index.items():
        graph.add_edge(source, target, weight=topology.links[index].latency_s)
    for source, distances in nx.all_pairs_bellman_ford_path_length(graph):
        for target in set(distances) - {source}:
            route = [topology.links[index] for index in topology.route(source, target)]
            ends = [topology.index_of[link.source] for link in route] + [target]
            assert ends[0] == source
            assert topology.index_of[route[-1].target] == target
            assert [topology.index_of[link.target] for link in route] == ends[1:]
            if (source, target) in topology.link_index:
                assert len(route) == 1
            else:
                latency_s = sum(link.latency_s for link in route)
                assert latency_s == pytest.approx(distances[target], abs=1e-11)


@given(topology=topologies(min_domains=2))
def test_a_scaled_world_has_each_figure_times_its_factor(topology):
    count = len(topology.links)
    factors = np.arange(1.0, count + 1)

    scaled = topology.scaled(factors, 1 / factors)
    for index, (link, base) in enumerate(zip(scaled.links, topology.links, strict=True)):
        assert link.bandwidth_bytes_per_s == base.bandwidth_bytes_per_s * (index + 1)
        assert link.latency_s == base.latency_s * (1 / (index + 1))
    assert topology.scaled(np.ones(count), np.ones(count)).links == topology.links


@settings(max_examples=examples(20))
@given(domain=domains("A"), link=links("A", "B"))
def test_values_are_frozen(domain, link):
    for value, field in ((domain, "num_gpus"), (link, "latency_s")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, 1)
    assert isinstance(domain, Domain)
