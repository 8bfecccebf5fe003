"""Domains, links, routes and how worlds move."""

import dataclasses
import math

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import domains, dynamics, links, topologies, unit_domain, world

from des import Domain, Dynamics, Link, Topology, UnreachableError, read_topology
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


def test_the_direct_link_is_taken_even_if_a_detour_is_quicker():
    topology = world("ABC", {"AC": DIRECT, "AB": FAST, "BC": FAST})

    assert hops(topology, "AC") == "A->C"


def test_a_detour_takes_the_lowest_latency_whatever_its_hops_and_bandwidth():
    """A to D: 2 + 2 over B, 1 + 1 + 1 over C and E."""
    topology = world("ABCDE", {"AB": (9e9, 2), "BD": (9e9, 2), "AC": FAST, "CE": FAST, "ED": FAST})

    assert hops(topology, "AD") == "A->C C->E E->D"


def test_among_equal_latencies_the_fewest_hops_win():
    """A to E: 1 + 1 + 1 over B and C, 1 + 2 over D."""
    topology = world("ABCDE", {"AB": FAST, "BC": FAST, "CE": FAST, "AD": FAST, "DE": SLOW})

    assert hops(topology, "AE") == "A->D D->E"


def test_among_equal_routes_the_domain_that_comes_first_wins():
    for first in (FAST, SLOW):
        topology = world("ABCD", {"AB": first, "BD": FAST, "AC": first, "CD": FAST})

        assert hops(topology, "AD") == "A->B B->D"


def test_equal_routes_tie_by_domain_order_also_when_their_hops_differ():
    """A to D: 2 + 1 over B equals 1 + 2 over C; the route over B comes first."""
    topology = world("ABCD", {"AB": SLOW, "BD": FAST, "AC": FAST, "CD": SLOW})

    assert hops(topology, "AD") == "A->B B->D"


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


@given(
    law=dynamics(),
    correlation=st.just(0.0) | st.floats(0.0, 1.0),
    seed=st.integers(0, 2**63 - 1),
    segment=st.integers(0, 2**40),
)
def test_draws_stay_within_the_declared_swings(law, correlation, seed, segment):
    law = dataclasses.replace(law, correlation=correlation)
    bandwidth, latency = law.factors(50, seed, segment)

    assert np.all(np.abs(bandwidth - 1) <= law.bandwidth_fluctuation + 1e-15)
    assert np.all(np.abs(latency - 1) <= law.latency_jitter + 1e-15)
    assert np.all(bandwidth > 0)
    assert np.all(latency > 0)


def test_draws_are_uniform_and_every_link_direction_moves_on_its_own():
    """Mean 1, standard deviation swing / sqrt(3), no correlation, over 20 000 seeds."""
    law = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    draws = np.array([np.concatenate(law.factors(2, seed, 0)) for seed in range(20_000)])

    assert draws.mean(axis=0) == pytest.approx([1.0] * 4, abs=0.006)
    assert draws.std(axis=0) == pytest.approx(np.array([0.3, 0.3, 0.2, 0.2]) / 3**0.5, rel=0.02)
    assert np.corrcoef(draws.T) == pytest.approx(np.eye(4), abs=0.03)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("bandwidth_fluctuation", 1.0, "at least 0 and below 1"),
        ("latency_jitter", -0.1, "at least 0 and below 1"),
        ("latency_jitter", math.nan, "at least 0 and below 1"),
        ("update_interval_s", 0.0, "at least 0.001 and finite"),
        ("update_interval_s", math.inf, "at least 0.001 and finite"),
        ("update_interval_s", math.nan, "at least 0.001 and finite"),
    ],
)
def test_a_law_refuses_impossible_figures(field, value, allowed):
    fields = {"bandwidth_fluctuation": 0.3, "latency_jitter": 0.2, field: value}

    with pytest.raises(ValueError, match=f"dynamics: {field} must be {allowed}, got {value!r}"):
        Dynamics(**fields)


@given(topology=topologies(min_domains=2), seed=st.integers(0, 2**32))
def test_epochs_repeat_with_the_seed_and_stay_within_the_law(topology, seed):
    world_then = topology.draw_epoch(np.random.default_rng(seed)).at_start()
    world_again = topology.draw_epoch(np.random.default_rng(seed)).at_start()

    assert world_then == world_again
    assert world_then.domains == topology.domains
    law = topology.dynamics
    for link, base in zip(world_then.links, topology.links, strict=True):
        assert (link.source, link.target) == (base.source, base.target)
        bandwidth, base_bandwidth = link.bandwidth_bytes_per_s, base.bandwidth_bytes_per_s
        assert bandwidth == pytest.approx(base_bandwidth, rel=law.bandwidth_fluctuation + 1e-9)
        assert link.latency_s == pytest.approx(base.latency_s, rel=law.latency_jitter + 1e-9)


@pytest.mark.parametrize("update_interval_s", [None, 5.0])
def test_epochs_change_with_the_generator(update_interval_s):
    law = Dynamics(
        bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=update_interval_s
    )
    topology = dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=law)
    rng = np.random.default_rng(7)

    epochs = [topology.draw_epoch(rng).at_start().links for _ in range(3)]
    assert len({*epochs, topology.links}) == 4


@given(topology=topologies(min_domains=2), seed=st.integers(0, 2**63 - 1))
def test_an_epoch_that_is_drawn_once_has_the_factors_of_segment_0_of_its_seed(topology, seed):
    """So a world that moves in time starts as one that is drawn once, to the last bit."""
    law = dataclasses.replace(topology.dynamics, update_interval_s=None)
    once = dataclasses.replace(topology, dynamics=law).epoch_of(seed)
    moving = dataclasses.replace(
        topology, dynamics=dataclasses.replace(law, update_interval_s=3.0)
    ).epoch_of(seed)

    assert moving.movement.seed == seed
    assert once.movement is None
    assert once.links == topology.scaled(*law.factors(len(topology.links), seed, 0)).links
    assert moving.at_start().links == once.links


@pytest.mark.parametrize("update_interval_s", [None, 5.0])
def test_an_epoch_drawn_by_a_generator_is_that_of_its_next_seed(update_interval_s):
    law = Dynamics(
        bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=update_interval_s
    )
    topology = dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=law)
    seed = int(np.random.default_rng(7).integers(2**63))

    assert topology.draw_epoch(np.random.default_rng(7)) == topology.epoch_of(seed)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, True, None])
@pytest.mark.parametrize("update_interval_s", [None, 5.0])
def test_an_epoch_of_an_impossible_seed_is_refused(seed, update_interval_s):
    law = Dynamics(
        bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=update_interval_s
    )
    topology = dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=law)

    with pytest.raises(ValueError, match=r"topology: seed must be a whole number within \[0, 2"):
        topology.epoch_of(seed)


def test_links_that_move_within_the_iteration_keep_their_base_figures():
    law = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=5.0)
    topology = dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=law)

    epoch = topology.draw_epoch(np.random.default_rng(7))
    assert epoch.movement is not None
    assert epoch.links == topology.links
    start = epoch.at_start()
    assert start.movement is None
    assert start == topology.scaled(*epoch.factors_at_start())


@given(topology=topologies(min_domains=2))
def test_a_scaled_world_has_each_figure_times_its_factor(topology):
    count = len(topology.links)
    factors = np.arange(1.0, count + 1)

    scaled = topology.scaled(factors, 1 / factors)
    for index, (link, base) in enumerate(zip(scaled.links, topology.links, strict=True)):
        assert link.bandwidth_bytes_per_s == base.bandwidth_bytes_per_s * (index + 1)
        assert link.latency_s == base.latency_s * (1 / (index + 1))
    assert topology.scaled(np.ones(count), np.ones(count)).links == topology.links


def test_routes_do_not_follow_jitter():
    """A-B-D is nominally quicker than A-C-D; an epoch in which it is slower does not re-route."""
    names = ("A", "B", "C", "D")
    ways = {("A", "B"): 0.01, ("B", "D"): 0.01, ("A", "C"): 0.011, ("C", "D"): 0.011}
    world = Topology.of(
        [dataclasses.replace(unit_domain("A"), name=name) for name in names],
        [
            Link(source=source, target=target, bandwidth_bytes_per_s=1e9, latency_s=latency_s)
            for (source, target), latency_s in ways.items()
        ],
    )
    nominal = world.route(0, 3)
    factors = np.array([1.5, 1.0, 1.0, 1.0])  # of A-B, A-C, B-D, C-D

    slower = world.scaled(np.ones(4), factors)

    assert [str(world.links[hop]) for hop in nominal] == ["link A->B", "link B->D"]
    assert slower.route(0, 3) == nominal
    assert slower.scaled(np.ones(4), factors).route(0, 3) == nominal


@settings(max_examples=examples(20))
@given(domain=domains("A"), link=links("A", "B"))
def test_values_are_frozen(domain, link):
    for value, field in ((domain, "num_gpus"), (link, "latency_s")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, 1)
    assert isinstance(domain, Domain)
