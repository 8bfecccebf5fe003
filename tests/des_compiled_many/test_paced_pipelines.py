"""Pipelines simulated from their paces: times and memory of `des.simulate`, counts of their own."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_cases import drawn_case

from agents.judge.paced_judge import PacedJudge, order_rows
from des import NO_CORRECTIONS, domain_memory, simulate
from des.compiled.many.paced import paces_of
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import FITS
from des.schedules import SCHEDULES, has_pace, pace_of, stage_orders

PACED = (
    *("gpipe", "1f1b", "1f1b_0.5x", "1f1b_2.5x"),
    *("zb_h1", "zb_h1_0.5x", "zb_h1_3x", "zb_h2", "zb_h1_32x"),
)


@st.composite
def judged(draw):
    """Random pipelines on a drawn world; their microbatches may be more than those of the job."""
    seed = draw(st.integers(0, 10_000))
    topology, workload = drawn_case(seed, draw(st.integers(2, 6)), draw(st.integers(6, 12)))
    rng = np.random.default_rng(seed)
    judge = PacedJudge(topology, workload, NO_CORRECTIONS, schedules=PACED)
    sizes = rng.integers(1, topology.num_domains + 1, size=3).tolist()
    orders = [tuple(rng.permutation(topology.num_domains)[:size].tolist()) for size in sizes]
    counts = rng.integers(1, 2 * workload.num_microbatches + 1, size=3).tolist()
    return topology, workload, judge, judge.scored(orders, counts)


@given(judged())
def test_times_and_memory_are_those_of_the_simulator(drawn):
    topology, workload, judge, scored = drawn
    for row, count in enumerate(scored.counts.tolist()):
        own = dataclasses.replace(workload, num_microbatches=count)
        plan = judge.plan(scored.plans, row)
        overflow = max(one.overflow_fraction for one in domain_memory(topology, own, plan))
        if scored.overflow[row] == FITS:
            assert overflow <= 0.0
            assert scored.times_s[row] == simulate(topology, own, plan).makespan_s
        else:
            assert scored.overflow[row] == pytest.approx(overflow, rel=1e-12)
            assert scored.times_s[row] == np.inf


@given(judged())
def test_a_split_does_not_depend_on_the_plans_filled_with_it(drawn):
    """Several plans are filled in turn; each gets the layers that it gets by itself."""
    _, _, judge, scored = drawn
    for row in range(0, len(scored.counts), len(PACED)):
        own = slice(row, row + len(PACED))
        order = scored.plans.domain[row, : scored.plans.num_stages[row]].tolist()
        alone = judge.scored([tuple(order)], scored.counts[row : row + 1])
        ends = scored.plans.end_layer[own, : len(order)]
        assert (alone.plans.end_layer[:, : len(order)] == ends).all()


@given(judged())
def test_no_plan_below_a_limit_is_left_out(drawn):
    _, _, judge, scored = drawn
    for row in np.flatnonzero(np.isfinite(scored.times_s)).tolist():
        own, time_s = plan_rows(scored.plans, np.array([row])), scored.times_s[row]
        above_s = float(np.nextafter(time_s, np.inf))
        again = judge.judged(own, scored.counts[[row]], slack=1.0, best_s=above_s)
        assert again.times_s.tolist() == [time_s]


@given(st.integers(0, 10_000), st.integers(1, 8))
def test_the_quickest_of_a_group_is_that_of_all_its_orders(seed, count):
    """Orders that cannot be quicker are not simulated; the first of equals is kept."""
    topology, workload = drawn_case(seed, 4, 8)
    rng = np.random.default_rng(seed)
    judge = PacedJudge(topology, workload, NO_CORRECTIONS, schedules=PACED)
    orders = [tuple(rng.permutation(4)[:size].tolist()) for size in rng.integers(1, 5, size=7)]
    first, counts = np.array([0, 3, 3, 7]), np.full(3, min(count, workload.num_microbatches))
    schedules = np.tile(np.arange(len(PACED), dtype=np.int32), (3, 1))
    rows = order_rows(orders, judge.most_stages)
    found = judge.quickest(rows, first, counts, schedules)
    every = judge.scored(orders, counts[:1].repeat(7).tolist())
    times_s = found.times_s.reshape(3, -1)
    assert (times_s[1] == np.inf).all()
    for group, begin, end in ((0, 0, 3), (2, 3, 7)):
        own_s = every.times_s.reshape(7, -1)[begin:end]
        assert (times_s[group] == own_s.min(axis=0)).all()
        best = (begin + own_s.argmin(axis=0)) * len(PACED) + np.arange(len(PACED))
        of_group = np.arange(len(PACED)) + group * len(PACED)
        for field, all_rows in zip(found.plans, every.plans, strict=True):
            assert (field[of_group] == all_rows[best]).all()


@given(judged())
def test_refined_plans_are_no_slower_and_hold_all_layers(drawn):
    topology, workload, judge, scored = drawn
    before_s = scored.times_s.copy()
    refined = judge.refined(scored, 200)
    assert (refined.times_s <= before_s).all()
    for row in np.flatnonzero(np.isfinite(refined.times_s)).tolist():
        own = dataclasses.replace(workload, num_microbatches=int(refined.counts[row]))
        plan = judge.plan(refined.plans, row)
        assert len(plan.placement.domain_of_layer) == workload.num_layers
        assert refined.times_s[row] == simulate(topology, own, plan).makespan_s


@given(st.sampled_from(PACED), st.integers(1, 5), st.integers(1, 9))
def test_a_pace_tells_the_orders_of_its_schedule(name, num_stages, num_microbatches):
    pace = pace_of(name)
    for stage, order in enumerate(stage_orders(name, num_stages, num_microbatches)):
        kinds = [operation.kind for operation in order]
        begun = kinds.index("B" if pace.behind is None else "D")
        later = num_stages - 1 - stage
        assert begun == min(num_microbatches, pace.ahead + int(pace.depth * later) + 1)


def test_what_has_no_pace_is_refused():
    assert [name for name in SCHEDULES if has_pace(name)] == ["gpipe", "1f1b", "zb_h1", "zb_h2"]
    with pytest.raises(ValueError, match="must have a pace, as gpipe, 1f1b, zb_h1, zb_h2"):
        paces_of(["1f1b", "zb_auto"])
