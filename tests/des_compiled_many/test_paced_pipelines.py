"""Pipelines simulated from their paces: times and memory of `des.simulate`, counts of their own."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_cases import drawn_case

from agents.judge.level_fills import layer_times
from agents.judge.paced_splits import paced_fill
from des import NO_CORRECTIONS, Placement, Plan, domain_memory, simulate
from des.compiled.many.job import job_on
from des.compiled.many.paced import CountedPlans, paced_table, paces_of
from des.compiled.many.paced_bound import paced_scores
from des.compiled.many.pipeline_scratch import new_scratch
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import FITS
from des.schedules import SCHEDULES, has_pace, pace_of, stage_orders

PACED = (
    *("gpipe", "1f1b", "1f1b_0.5x", "1f1b_2.5x"),
    *("zb_h1", "zb_h1_0.5x", "zb_h1_3x", "zb_h2", "zb_h1_32x"),
)


class Scored(NamedTuple):
    """Pipelines of orders under `PACED` in turn, their microbatches, times and missing memory."""

    batch: CountedPlans
    times_s: np.ndarray
    overflow: np.ndarray


def scored(topology, workload, orders, counts):
    """Pipelines with their layers filled in, judged."""
    job, num = job_on(topology, workload, NO_CORRECTIONS), len(PACED)
    most = min(topology.num_domains, workload.num_layers)
    plans = paced_table(len(orders) * num, most)
    for row, order in enumerate(orders):
        own = slice(row * num, (row + 1) * num)
        plans.num_stages[own], plans.schedule[own] = len(order), np.arange(num)
        plans.domain[own, : len(order)] = order
    batch = CountedPlans(job, paces_of(PACED), plans, np.repeat(np.array(counts, np.int64), num))
    paced_fill(batch, layer_times(job), num, np.empty(most, dtype=np.int32))
    return limited(batch)


def limited(batch, slack=np.inf, best_s=np.inf):
    """Times and missing memory of pipelines, those left out that a limit rules out."""
    times_s, overflow = np.empty((2, len(batch.counts)))
    scratch = new_scratch(batch.plans.domain.shape[1], int(batch.counts.max()))
    paced_scores(batch, scratch, slack, best_s, times_s, overflow)
    return Scored(batch, times_s, overflow)


def plan_of(batch, row):
    """A row as a plan."""
    size = batch.plans.num_stages[row]
    layers = np.diff(batch.plans.end_layer[row, :size], prepend=0).tolist()
    placement = Placement.contiguous(batch.plans.domain[row, :size].tolist(), layers)
    return Plan(placement=placement, schedule=PACED[batch.plans.schedule[row]])


@st.composite
def judged(draw):
    """Random pipelines on a drawn world; their microbatches may be more than those of the job."""
    seed = draw(st.integers(0, 10_000))
    topology, workload = drawn_case(seed, draw(st.integers(2, 6)), draw(st.integers(6, 12)))
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, topology.num_domains + 1, size=3).tolist()
    orders = [tuple(rng.permutation(topology.num_domains)[:size].tolist()) for size in sizes]
    counts = rng.integers(1, 2 * workload.num_microbatches + 1, size=3).tolist()
    return topology, workload, scored(topology, workload, orders, counts)


@given(judged())
def test_times_and_memory_are_those_of_the_simulator(drawn):
    topology, workload, found = drawn
    for row, count in enumerate(found.batch.counts.tolist()):
        own = dataclasses.replace(workload, num_microbatches=count)
        plan = plan_of(found.batch, row)
        overflow = max(one.overflow_fraction for one in domain_memory(topology, own, plan))
        if found.overflow[row] == FITS:
            assert overflow <= 0.0
            assert found.times_s[row] == simulate(topology, own, plan).makespan_s
        else:
            assert found.overflow[row] == pytest.approx(overflow, rel=1e-12)
            assert found.times_s[row] == np.inf


@given(judged())
def test_a_split_does_not_depend_on_the_plans_filled_with_it(drawn):
    """Several plans are filled in turn; each gets the layers that it gets by itself."""
    topology, workload, found = drawn
    plans, counts = found.batch.plans, found.batch.counts
    for row in range(0, len(counts), len(PACED)):
        order = tuple(plans.domain[row, : plans.num_stages[row]].tolist())
        alone = scored(topology, workload, [order], counts[row : row + 1]).batch.plans
        ends = plans.end_layer[row : row + len(PACED), : len(order)]
        assert (alone.end_layer[:, : len(order)] == ends).all()


@given(judged())
def test_no_plan_below_a_limit_is_left_out(drawn):
    _, _, found = drawn
    for row in np.flatnonzero(np.isfinite(found.times_s)).tolist():
        batch, time_s = found.batch, found.times_s[row]
        own = batch._replace(
            plans=plan_rows(batch.plans, np.array([row])), counts=batch.counts[[row]]
        )
        above_s = float(np.nextafter(time_s, np.inf))
        assert limited(own, slack=1.0, best_s=above_s).times_s.tolist() == [time_s]


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
