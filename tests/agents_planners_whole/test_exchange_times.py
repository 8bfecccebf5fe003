"""Times of exchanges between groups: all rings, sums over layers, and by hand."""

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest

from agents.planners.whole.exchange_kernels import grown_ring, widest_tree_s
from agents.planners.whole.rings import ExchangeTimes
from des import NO_CORRECTIONS, Link, Placement, Topology, build_workload, read_topology
from des.compiled.many.paced import paced_table
from des.compiled.many.steady import Plans

WORKLOAD = build_workload("llama2_7b", num_layers=8)


def drawn_world(num_domains: int) -> Topology:
    """Domains joined by drawn links."""
    rng = np.random.default_rng(num_domains)
    east = read_topology("four_uneven").domains[0]
    names = "ABCDEFGHIJ"[:num_domains]
    links = [
        Link(
            source=a,
            target=b,
            bandwidth_bytes_per_s=float(rng.uniform(1e8, 1e9)),
            latency_s=float(rng.uniform(0.01, 0.1)),
        )
        for a, b in permutations(names, 2)
    ]
    return Topology.of([replace(east, name=name) for name in names], links)


def written(groups: list[Placement]) -> Plans:
    """Groups as rows."""
    plans = paced_table(len(groups), 8)
    for row, group in enumerate(groups):
        plans.num_stages[row] = len(group.stages)
        for stage in group.stages:
            plans.domain[row, stage.index] = stage.domain
            plans.end_layer[row, stage.index] = stage.first_layer + stage.num_layers
    return plans


def edge_s(world: Topology, one: Placement, other: Placement) -> tuple[float, float]:
    """Slowest pair of domains, and their latency; a byte for each parameter. [s]"""
    passed: dict[tuple[int, int], float] = {}
    pairs = zip(one.domain_of_layer, other.domain_of_layer, strict=True)
    for pair, count in zip(pairs, WORKLOAD.num_parameters, strict=True):
        passed[pair] = passed.get(pair, 0.0) + count
    links = {pair: world.links[world.link_index[pair]] for pair in passed}
    cost_s = max(num / links[pair].bandwidth_bytes_per_s for pair, num in passed.items())
    return cost_s, max(link.latency_s for link in links.values())


@pytest.mark.parametrize("layers", [[[8], [8], [8]], [[5, 3], [2, 6], [8]], [[4, 4]] * 4])
def test_the_best_ring_is_the_best_of_all(layers):
    """Of R groups with R parts each, twice R - 1 times the slowest way."""
    world, begin, groups = drawn_world(8), 0, []
    for own in layers:
        groups.append(Placement.contiguous(range(begin, begin + len(own)), own))
        begin += len(own)
    exchanges = ExchangeTimes(world, WORKLOAD, NO_CORRECTIONS)
    size = len(groups)

    rows = np.arange(size)[np.newaxis]
    ring_s, _ = exchanges.rings_and_stars_s(written(groups), rows, np.array([size]))
    expected = []
    for rest in permutations(range(1, size)):
        way = [edge_s(world, groups[a], groups[b]) for a, b in pairwise((0, *rest, 0))]
        expected.append(2 * (size - 1) * max(cost / size + flight for cost, flight in way))
    assert ring_s[0] == pytest.approx(min(expected), rel=1e-12)


def test_a_ring_grows_by_the_nearest_by_hand():
    """From 2 to 0 in 1 s, on to 1 in 4 s, to 3 in 2 s, and back in 9 s."""
    step_s = np.array(
        [[0.0, 4.0, 1.0, 5.0], [7.0, 0.0, 1.0, 2.0], [1.0, 3.0, 0.0, 6.0], [8.0, 8.0, 9.0, 0.0]]
    )
    order = np.empty(4)

    assert grown_ring(step_s, 4, 2, order) == (9.0, 1.0 + 4.0 + 2.0 + 9.0)
    assert order.tolist() == [2.0, 0.0, 1.0, 3.0]


def test_the_widest_tree_by_hand():
    """0 to 1 takes 6 s, 1 to 2 takes 3 s, 0 to 2 takes 9 s: the slowest of the tree takes 6 s.

    Three chunks: two of 2 s behind the first, which passes two links up and two down with 1 s each.
    """
    cost_s = np.array([[0.0, 6.0, 9.0], [5.0, 0.0, 3.0], [9.0, 3.0, 0.0]])
    latency_s = np.ones((3, 3))
    assert widest_tree_s(cost_s, latency_s, 3, 3, np.empty(3)) == 2 * 2.0 + 4 * (2.0 + 1.0)
    apart = np.where(np.eye(3, dtype=bool), 0.0, np.inf)
    assert widest_tree_s(apart, latency_s, 3, 3, np.empty(3)) == np.inf
