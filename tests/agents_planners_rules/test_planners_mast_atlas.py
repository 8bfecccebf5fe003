"""MAST, and the chains of domains behind it."""

import dataclasses
import math
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joined_worlds import FOUR_LAYERS, joined, problem, rng
from strategies import plan, world

from agents.decision.situation import Situation
from agents.planners.choice.chains import (
    best_chain,
    best_ring,
    grow_chain,
    mutual_links,
    orders_to_look_at,
    sets_by_mutual_bandwidth,
)
from agents.planners.rules.mast import mast, placed
from agents.replanning.mast_scheduler import MastScheduler, busy_fractions, imbalance, rebalanced
from des import InfeasiblePlacementError, Plan, Topology
from des.plan.replacement import Replacement
from des.world.domain_load import DomainLoad


def drawn_links(seed: int, size: int, *, share_joined: float = 0.8) -> tuple[np.ndarray, ...]:
    """Bandwidths of few values, so that there are ties, and latencies."""
    generator = np.random.default_rng(seed)
    bandwidth = generator.integers(1, 9, (size, size)) * (
        generator.random((size, size)) < share_joined
    )
    latency = generator.random((size, size))
    upper = np.triu(np.ones((size, size)), 1)
    return tuple(each * upper + (each * upper).T for each in (bandwidth, latency))


# Chains of domains.


def test_links_count_by_their_worse_direction_and_slowest_hop():
    """A to C goes over B; from A to B there is less than back."""
    topology = world(
        "ABC", {"AB": (2.0, 1.0), "BA": (5.0, 2.0), "BC": (3.0, 4.0), "CB": (3.0, 8.0)}
    )
    bandwidth, latency = mutual_links(topology)

    assert bandwidth.tolist() == [[0, 2, 2], [2, 0, 3], [2, 3, 0]]
    assert latency[0].tolist() == [np.inf, 3, 15]
    nothing, endless = mutual_links(world("AB", {"AB": (1.0, 0.0)}))
    assert not nothing.any()
    assert np.isinf(endless).all()


@given(seed=st.integers(0, 2**32), size=st.integers(1, 6))
def test_no_chain_or_ring_has_a_faster_slowest_link(seed, size):
    bandwidth, latency = drawn_links(seed, size)
    everyone = range(size)

    def slowest(order: tuple[int, ...], is_ring: bool) -> float:
        hops = [*pairwise(order), (order[-1], order[0])][: None if is_ring else -1]
        return min((float(bandwidth[hop]) for hop in hops), default=math.inf)

    for found, is_ring in (
        (best_chain(bandwidth, latency, everyone), False),
        (best_ring(bandwidth, latency, everyone), size > 2),
    ):
        best = max(slowest(order, is_ring) for order in permutations(everyone))
        if found is None:
            assert best == 0
        else:
            assert sorted(found) == list(everyone)
            assert slowest(found, is_ring) == best > 0


@given(seed=st.integers(0, 2**32), size=st.integers(2, 6))
def test_sets_of_domains_come_by_their_slowest_link(seed, size):
    bandwidth, _ = drawn_links(seed, 6)
    slowest = [
        min(bandwidth[pair] for pair in combinations(members, 2))
        for members in sets_by_mutual_bandwidth(bandwidth, size)
    ]
    assert len(slowest) == math.comb(6, size)
    assert slowest == sorted(slowest, reverse=True)


def test_a_chain_grows_along_the_fastest_link():
    bandwidth = np.array([[0, 1, 3, 0], [1, 0, 2, 0], [3, 2, 0, 0], [0, 0, 0, 0]])

    assert grow_chain(bandwidth, 1) == (1, 2, 0)  # nothing leads to the last
    assert grow_chain(bandwidth, 3) == (3,)


@pytest.mark.parametrize(("size", "all_up_to", "count"), [(4, 4, 64), (4, 3, 15), (14, 6, 14 * 14)])
def test_orders_are_all_or_one_a_subset_or_those_that_grow(size, all_up_to, count):
    bandwidth, latency = drawn_links(1, size, share_joined=1.0)
    orders = list(orders_to_look_at(bandwidth, latency, most_stages=size, all_up_to=all_up_to))
    assert len(orders) == count
    assert max(map(len, orders)) == size
    few = orders_to_look_at(bandwidth, latency, most_stages=2, all_up_to=all_up_to)
    assert max(map(len, few)) == 2


# MAST.


def test_mast_does_not_split_what_one_domain_holds():
    """Split over free links it would take half as long."""
    whole = mast(problem(joined({"AB": 1e9, "BC": 1e9, "AC": 1e9}, speeds=(1.0, 3.0, 2.0))), rng())

    assert whole == plan(1, 1, 1, 1)  # all bid alike, so the fastest wins


def test_bids_compete_by_locality_then_load_then_time():
    asked = problem(joined({"AB": 1.0, "BC": 1.0, "AC": 1.0}, speeds=(1.0, 3.0, 2.0)))
    there = dataclasses.replace(asked, last_plan=plan(0, 0, 0, 2))
    everyone = range(3)

    assert placed(asked, everyone, (0.0, 0.5, 0.0)) == plan(2, 2, 2, 2)
    assert placed(asked, everyone, (0.0, 0.5, 0.1)) == plan(0, 0, 0, 0)
    assert placed(there, everyone, (0.9, 0.0, 0.0)) == plan(0, 0, 0, 0)
    assert placed(there, [1, 2], (0.9, 0.0, 0.0)) == plan(2, 2, 2, 2)


def test_a_job_that_no_domain_holds_takes_the_smallest_set_of_the_best_bandwidth():
    """Four layers of 16 bytes and activations; a domain holds two of them."""
    rates = {"AB": 1.0, "AC": 2.0, "AD": 3.0, "BC": 5.0, "BD": 4.0, "CD": 4.5}
    found = mast(problem(joined(rates, memory_bytes=2 * 16 + 2 * 2)), rng())

    assert found == plan(1, 1, 2, 2)
    assert placed(problem(joined(rates, memory_bytes=16.0)), range(4), (0.0,) * 4) is None
    asked = problem(joined(rates, memory_bytes=16.0))
    assert mast(asked, rng()) == plan(0, 1, 2, 3)
    assert not asked.judge(mast(asked, rng())).fits_memory


def test_whether_to_split_does_not_depend_on_the_depth():
    """Under GPipe a domain would have to keep all 8 microbatches."""
    topology = joined({"AB": 1e9}, memory_bytes=4 * 16 + 4)

    assert mast(problem(topology, schedule="gpipe"), rng()) == plan(0, 0, 0, 0)
    both = problem(topology, schedules=("gpipe", "1f1b"))
    assert mast(both, rng()) == plan(0, 0, 0, 0)


def test_overload_weighs_more_than_idleness():
    """The job on a domain that is half busy: half too much there, 1 idle elsewhere."""
    assert imbalance([0.5, 0.2], frozenset({0})) == pytest.approx(10 * 0.5**2 + 0.8**2)
    assert imbalance([0.5, 0.2], frozenset({1})) == pytest.approx(10 * 0.2**2 + 0.5**2)


def test_balancing_swaps_the_busiest_for_the_idlest_as_long_as_that_helps():
    busy = [0.6, 0.5, 0.1, 0.0]

    assert rebalanced(busy, frozenset({0, 1}), lambda _: True) == {2, 3}
    assert rebalanced(busy, frozenset({0, 1}), lambda members: 1 in members) == {1, 3}
    assert rebalanced(busy, frozenset({2, 3}), lambda _: True) == {2, 3}


def situation(topology: Topology, epoch: int, last: Plan | None, *busy: float, **load) -> Situation:
    loads = tuple(DomainLoad(utilisation=share, **load) for share in busy)
    return Situation(
        topology=topology,
        base=topology,
        workload=FOUR_LAYERS,
        epoch=epoch,
        epoch_s=60.0,
        replacement=Replacement(),
        last_plan=last,
        loads=loads,
    )


def test_the_job_moves_only_when_the_slow_path_says_so():
    """Idle A gets the job; then A is busy, which is noticed after three epochs."""
    topology = joined({"AB": 1.0})
    scheduler = MastScheduler(slow_every=3)
    for _ in range(2):
        scheduler.begin()
        last, taken = None, []
        for epoch in range(8):
            busy = (0.0, 0.5) if epoch == 0 else (0.9, 0.1)
            decision = scheduler.decide(situation(topology, epoch, last, *busy))
            last = decision.plan
            taken.append((last.placement.domain_of_layer[0], decision.level))

        assert taken[:3] == [(0, "order"), (0, "nothing"), (0, "nothing")]
        assert taken[3:] == [(1, "order")] + [(1, "nothing")] * 4


def test_the_fast_path_leaves_a_domain_where_the_job_does_not_fit_any_more():
    topology = joined({"AB": 1.0}, memory_bytes=4 * 17.0)
    scheduler = MastScheduler()
    full, free = DomainLoad(memory_occupancy=0.5), DomainLoad()
    start = situation(topology, 0, None)

    first = scheduler.decide(start)
    assert first.plan == plan(0, 0, 0, 0)
    pressed = dataclasses.replace(start, last_plan=first.plan, loads=(full, free))
    assert scheduler.decide(pressed).plan == plan(1, 1, 1, 1)
    nowhere = dataclasses.replace(pressed, loads=(full, full))
    stuck = scheduler.decide(nowhere)
    assert (stuck.plan, stuck.is_fallback) == (plan(0, 0, 0, 0), True)
    with pytest.raises(InfeasiblePlacementError, match="MAST: no domains hold the job"):
        scheduler.decide(dataclasses.replace(nowhere, last_plan=None))


def test_domains_without_reports_are_as_busy_as_they_are_slower():
    base = joined({"AB": 1.0})
    slower = joined({"AB": 1.0}, speeds=(0.75, 1.5))
    seen = dataclasses.replace(situation(base, 0, None), topology=slower)

    assert busy_fractions(seen) == (0.25, 0.0)
    assert busy_fractions(situation(base, 0, None, 0.3, 0.6)) == (0.3, 0.6)
