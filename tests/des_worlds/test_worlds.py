"""Sources of the episodes' worlds."""

from itertools import combinations

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import topologies, world

from agents.flat.worlds import DrawnWorld, GivenWorld, path_matrices
from des import STEADY, UniformLaw, UnreachableError, read_topology
from des.base.random_numbers import uniform_pair
from des.worlds import EAST_CENTRAL_WEST

GBIT_PER_S = 1e9 / 8
CHAIN = world(
    "ABC", {"AB": (2.0, 0.25), "BA": (4.0, 0.5), "BC": (6.0, 1.0), "CB": (4.0, 2.0)}
)  # fmt: skip


def drawn(num_domains: int) -> DrawnWorld:
    return DrawnWorld(num_domains=num_domains, dynamics=STEADY)


def test_figures_between_all_pairs_by_hand():
    """A->C stores and forwards: 1 / (1/2 + 1/6) = 1.5 bytes/s; C->A 1 / (1/4 + 1/4) = 2."""
    bandwidth, latency = path_matrices(CHAIN)

    np.testing.assert_allclose(bandwidth, [[1, 2, 1.5], [4, 1, 6], [2, 4, 1]], rtol=1e-15)
    np.testing.assert_array_equal(latency, [[0, 0.25, 1.25], [0.5, 0, 1.0], [2.5, 2.0, 0]])


def test_given_world_is_the_same_in_every_episode():
    source = GivenWorld(topology=CHAIN)

    rng = np.random.default_rng(0)
    assert source.draw(rng) is source.draw(rng) is source.world(3) is CHAIN
    assert source.num_domains == 3
    assert source.dynamics == CHAIN.dynamics
    assert source.largest_bandwidth_bytes_per_s == 6.0
    assert source.largest_latency_s == 2.5  # C->A, over both hops


@pytest.mark.parametrize(
    ("topology", "pair"),
    [
        (world("AB", {}), "A -> B"),
        (world("AB", {"AB": (1.0, 0.0)}), "B -> A"),
        (world("ABC", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)}), "A -> C"),
    ],
    ids=["no link", "one way", "island"],
)
def test_given_world_with_an_unreachable_pair_is_refused(topology, pair):
    with pytest.raises(UnreachableError, match=f"no path of links joins {pair}"):
        GivenWorld(topology=topology)


@given(topology=topologies())
def test_no_base_figure_is_above_the_largest(topology):
    source = GivenWorld(topology=topology)

    bandwidth, latency = path_matrices(topology)
    largest = source.largest_bandwidth_bytes_per_s
    of_a_path = 1.0 / (1.0 / largest)  # what a link of its own gives as a path of one hop
    assert bandwidth.max() <= max(largest, of_a_path)
    assert latency.max() <= source.largest_latency_s
    assert bandwidth.min() > 0
    assert latency.min() >= 0


@settings(max_examples=examples(30), deadline=None)
@given(num_domains=st.integers(1, 5), seed=st.integers(0, 2**63 - 1))
def test_drawn_links_are_within_bounds_and_the_same_both_ways(num_domains, seed):
    source = drawn(num_domains)
    topology = source.world(seed)

    bandwidth, latency = path_matrices(topology)
    np.testing.assert_array_equal(bandwidth, bandwidth.T)
    np.testing.assert_array_equal(latency, latency.T)
    assert topology.num_domains == source.num_domains == num_domains
    assert len(topology.links) == num_domains * (num_domains - 1)
    for link in topology.links:
        assert 2 * GBIT_PER_S <= link.bandwidth_bytes_per_s <= 5 * GBIT_PER_S
        assert 0.020 <= link.latency_s <= 0.100
    pairs = list(combinations(range(num_domains), 2))
    assert len({topology.link_between(*pair).latency_s for pair in pairs}) == len(pairs)
    assert bandwidth.max() <= source.largest_bandwidth_bytes_per_s
    assert latency.max() <= source.largest_latency_s


def test_drawn_links_fill_their_range():
    """The mean of 3000 uniform numbers is within 4 deviations of the middle: 4 r / sqrt(36000)."""
    links = [link for seed in range(500) for link in drawn(4).world(seed).links]

    bandwidths = np.array([link.bandwidth_bytes_per_s for link in links]) / GBIT_PER_S
    latencies = np.array([link.latency_s for link in links])
    for figures, low, high in ((bandwidths, 2.0, 5.0), (latencies, 0.02, 0.1)):
        middle, width = (low + high) / 2, high - low
        assert figures.mean() == pytest.approx(middle, abs=4 * width / np.sqrt(36_000))
        assert figures.min() < low + 0.01 * width
        assert figures.max() > high - 0.01 * width
    assert abs(np.corrcoef(bandwidths, latencies)[0, 1]) < 0.1


def test_drawn_domains_are_those_of_the_shipped_world():
    domains = drawn(4).world(0).domains

    (model, *_) = read_topology(EAST_CENTRAL_WEST).domains
    assert [domain.name for domain in domains] == ["domain0", "domain1", "domain2", "domain3"]
    assert {domain.attainable_flops_per_s for domain in domains} == {model.attainable_flops_per_s}
    assert {domain.memory_bytes for domain in domains} == {model.memory_bytes}
    assert drawn(1).largest_bandwidth_bytes_per_s == model.intra_bandwidth_bytes_per_s


def test_drawn_world_follows_from_the_seed_and_a_generator_gives_seeds():
    one, again, other = (drawn(3).world(seed) for seed in (1, 1, 2))
    rng = np.random.default_rng(5)

    assert one == again
    assert one.links != other.links
    first, second = (int(seed) for seed in np.random.default_rng(5).integers(2**63, size=2))
    assert drawn(3).draw(rng) == drawn(3).world(first)
    assert drawn(3).draw(rng) == drawn(3).world(second)


def test_each_pair_of_domains_has_numbers_of_its_own():
    """Pairs in order: 01, 02, 03, 12, ...; the draw is fixed, as recorded figures rest on it."""
    topology = drawn(4).world(31)

    for pair, (one, other) in enumerate(combinations(range(4), 2)):
        bandwidth_eps, latency_eps = uniform_pair(31, pair, 0)
        link = topology.link_between(one, other)
        assert link.bandwidth_bytes_per_s == pytest.approx((3.5 + 1.5 * bandwidth_eps) * GBIT_PER_S)
        assert link.latency_s == pytest.approx(0.06 + 0.04 * latency_eps)
    # Links of the first two domains do not depend on how many there are.
    assert drawn(2).world(31).link_between(0, 1) == topology.link_between(0, 1)


@pytest.mark.parametrize("seed", [-1, 2**63, 0.5])
def test_a_drawn_world_of_an_impossible_seed_is_refused(seed):
    with pytest.raises(ValueError, match=r"environment: seed must be a whole number within \[0, 2"):
        drawn(2).world(seed)


def test_drawn_world_declares_its_dynamics():
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    topology = DrawnWorld(num_domains=2, dynamics=law).world(0)

    assert topology.dynamics == law


@pytest.mark.parametrize("num_domains", [0, -1, 2.0, True, "3"])
def test_number_of_domains_out_of_range_is_refused(num_domains):
    with pytest.raises(ValueError, match="environment: num_domains must be a whole number"):
        drawn(num_domains)
