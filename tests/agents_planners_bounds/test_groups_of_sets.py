"""Exchanges over single links, packings of sets, and groups in whole layers, by hand."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from strategies import free_world, unit_workload

from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.planners.bounds.checked_sets import CheckedSets, pack_sets
from agents.planners.bounds.due_exchanges import DueExchange, ExchangeWay, write_exchanges_s
from agents.planners.bounds.job_figures import JobFigures
from agents.planners.bounds.set_kernels import best_packing, best_rests
from des import Placement, Plan, simulate

TWO = ExchangeWay(is_pair=True, ring_factor=1.0, num_more=1, latency_s=0.5)
THREE = ExchangeWay(is_pair=False, ring_factor=4.0 / 3.0, num_more=1, latency_s=0.5)
SIZES = 4


def taken_s(links: list[float], due: DueExchange, way: ExchangeWay) -> float:
    found_s = np.empty(1)
    write_exchanges_s(np.array([links]), due, way, found_s)
    return float(found_s[0])


@pytest.mark.parametrize(
    ("links", "way", "expected"),
    [
        ([6.0, 0.0], TWO, 18.0 / 6.0 + 0.5),  # all three layers on one link
        ([6.0, 2.0], TWO, 18.0 / 6.0 + 0.5),  # another one would take 3 s for one layer, too
        ([6.0, 4.0], TWO, 12.0 / 6.0 + 0.5),  # two and one
        ([6.0, 0.0], THREE, 4.0 / 3.0 * 18.0 / 6.0 + 0.5),  # a ring; a tree takes 24 / 6 + 1
        ([6.0, 6.0], THREE, 4.0 / 3.0 * 12.0 / 6.0 + 0.5),
        ([0.0, 0.0], TWO, np.inf),
    ],
)
def test_three_layers_of_six_bytes_on_links_by_hand(links, way, expected):
    due = DueExchange(num_layers=3, num_bytes=18.0, least_bytes=6.0)
    assert taken_s(links, due, way) == pytest.approx(expected, rel=1e-12)


@given(
    links=arrays(float, 3, elements=st.floats(0.5, 8.0)),
    num_layers=st.integers(1, 4),
    num_more=st.integers(0, 1),
)
def test_layers_go_to_links_as_in_the_best_of_all_ways(links, num_layers, num_more):
    """Every layer to every link; a link that has any sends some more."""
    links = np.sort(links)[::-1]
    ways = []
    for way in product(range(3), repeat=num_layers):
        held = np.bincount(way, minlength=3)
        ways.append(np.where(held > 0, (held + num_more) / links, 0.0).max())
    due = DueExchange(num_layers=num_layers, num_bytes=float(num_layers), least_bytes=1.0)
    never = ExchangeWay(is_pair=False, ring_factor=np.inf, num_more=num_more, latency_s=0.0)
    assert taken_s(links.tolist(), due, never) == pytest.approx(min(ways), rel=1e-12)


def packings(sets: tuple[int, ...], members: int) -> list[tuple[int, ...]]:
    """All ways to take disjoint sets within a set."""
    found: list[tuple[int, ...]] = [()]
    for place, one in enumerate(sets):
        if one & ~members == 0:
            found += [(one, *rest) for rest in packings(sets[place + 1 :], members & ~one)]
    return found


@given(counts=arrays(float, 1 << SIZES, elements=st.integers(0, 9)), num_groups=st.integers(2, 4))
def test_packed_sets_are_the_best_of_all_packings(counts, num_groups):
    counts[0] = 0.0
    sets = tuple(int(one) for one in np.flatnonzero(counts))
    best = -1.0
    for own in packings(sets, counts.size - 1):
        is_right = 1 < len(own) <= (num_groups if num_groups < 4 else len(own))
        if is_right and any(one & (one - 1) for one in own):
            best = max(best, float(counts[list(own)].sum()))
    others = [best_rests(counts, num_groups - 1)]
    rests = (others[0], others[0])
    if num_groups < 4:
        fewer = [best_rests(counts, count) for count in range(num_groups - 1, 0, -1)]
        rests = (*fewer, np.zeros_like(counts))

    assert best_packing(counts, rests[0]) == best
    if best > 0.0:
        found = pack_sets(counts, rests)
        assert counts[found].sum() == best
        assert sum(found) == np.bitwise_or.reduce(found)


def test_a_group_does_as_many_microbatches_as_whole_layers_let_it():
    """Three layers of 3 s on two equal domains: one has two of them, so 6 s a microbatch.

    Behind a forward pass of 1 s a layer the last of five ends at 31 s.
    """
    topology, workload = free_world(2), unit_workload([(1.0, 2.0)] * 3, num_microbatches=5)
    job = TrainingJob(model="llama2_7b", num_sequences=16)
    problem = WholeProblem(topology=topology, job=job, space=PlanSpace(schedules=("zb_h2",)))
    checked = CheckedSets(figures=JobFigures.of(problem, workload))
    plan = Plan(placement=Placement.contiguous([0, 1], [1, 2]), schedule="zb_h2")

    assert simulate(topology, workload, plan).makespan_s == 31.0
    assert checked.most(0b11, 5.0, 31.0) == 5.0
    assert checked.most(0b11, 5.0, 30.5) == 5.0  # two layers first, which nothing delays
    assert checked.most(0b11, 5.0, 29.9) == 4.0
    assert checked.most(0b01, 5.0, 1.0) == 5.0  # single domains are not its matter
