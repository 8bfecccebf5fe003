"""Trees of groups: their times by hand, and the search that finds them."""

import dataclasses
from itertools import permutations

import numpy as np
import pytest

from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.judge.step_times import step_times_s
from agents.planners.bounds.step_bound import step_lower_bound_s
from agents.planners.whole.exchange_kernels import best_star_s
from agents.planners.whole.search_whole import search_whole
from agents.planners.whole.trees import best_tree
from des import GradientExchange, Link, Topology, read_topology

REPLICAS = PlanSpace(families=("replicas",))


def symmetric(size: int, edges: dict[tuple[int, int], float], otherwise: float) -> np.ndarray:
    """Costs of all pairs."""
    found = np.full((size, size), otherwise)
    np.fill_diagonal(found, 0.0)
    for (one, other), cost in edges.items():
        found[one, other] = found[other, one] = cost
    return found


def test_a_chain_of_quick_links_beats_slow_direct_ones_by_hand():
    """Up 1 + 1, down 1 + 1 from the end; from the middle 1 up and 1 down."""
    cost_s = symmetric(3, {(0, 1): 1.0, (1, 2): 1.0}, otherwise=5.0)

    assert best_tree(cost_s, np.zeros((3, 3)), 1) == ((1, 0, 2), (0, 0), 2.0)


def test_many_chunks_take_wide_links_and_few_take_short_ways_by_hand():
    """To C it is 3 s directly and 2 s + 2 s over B; D is 2 s from A.

    From A one chunk is up in 3 s and down in 3 s; of a hundred each link of 3 s is as slow.
    """
    near = {(0, 1): 2.0, (1, 2): 2.0, (0, 2): 3.0, (0, 3): 2.0}
    cost_s, latency_s = symmetric(4, near, otherwise=9.0), np.zeros((4, 4))

    assert best_tree(cost_s, latency_s, 1) == ((0, 1, 3, 2), (0, 0, 0), 6.0)
    many = best_tree(cost_s, latency_s, 100)
    assert (many.order, many.above) == ((0, 1, 2, 3), (0, 1, 0))
    assert many.exchange_s == pytest.approx((4.0 + 4.0 + 99 * 2.0) / 100)
    assert best_star_s(cost_s, latency_s, 4, 100) == pytest.approx((3.0 + 3.0 + 99 * 3.0) / 100)


def far_apart(num_domains: int, latency_s: float) -> Topology:
    """Equal domains with room for the model, far from each other."""
    east = dataclasses.replace(read_topology("four_uneven").domains[0], gpu_memory_bytes=1e12)
    domains = [dataclasses.replace(east, name=name) for name in "ABCDEFGH"[:num_domains]]
    links = [
        Link(source=a.name, target=b.name, bandwidth_bytes_per_s=1e10, latency_s=latency_s)
        for a, b in permutations(domains, 2)
    ]
    return Topology.of(domains, links)


@pytest.mark.parametrize(("num_domains", "has_tree"), [(2, False), (5, True)])
def test_far_replicas_exchange_in_a_star_which_no_ring_beats(num_domains, has_tree):
    """With 0.5 s of latency a ring of five waits for eight flights, a star for two."""
    job = TrainingJob(model="llama2_7b", num_sequences=64)
    problem = WholeProblem(topology=far_apart(num_domains, 0.5), job=job, space=REPLICAS)

    best = search_whole(problem, max_judged=200).best
    assert bool(best.plan.exchange.tree) == has_tree
    assert len(best.plan.placements) == num_domains
    if has_tree:
        assert best.plan.exchange.tree == (0,) * (num_domains - 1)
        rings = [
            dataclasses.replace(best.plan, exchange=GradientExchange(bucket_bytes=size))
            for size in (None, best.plan.exchange.bucket_bytes)
        ]
        assert min(step_times_s(problem.topology, best.workload, rings)) > best.step_s + 2.0
    assert step_lower_bound_s(problem).step_s <= best.step_s
