"""Room for iterations of pipelines: of one plan, or of as many as there are lanes, side by side."""

from typing import NamedTuple

import numpy as np

from des.base.jit import inlined, lean_kernel
from des.compiled.kernels.intrinsics import LANES, Rows, vector_rows, views_of
from des.compiled.lanes import aligned_zeros
from des.compiled.many.layout import Real, Whole
from des.compiled.many.paced import WHOLE, ScheduleParams, num_behind, num_warm_up
from des.compiled.many.steady import Job, Plans

FREE, START, STAGE_ROWS = 4, 5, 6
"""Rows of a stage after the durations of its passes F, B, D and W: when its last operation ends;
when its last backward pass, or weight gradients where they are apart, began. [s]"""

WIRE, LATENCY, WIRE_FREE, WAY_ROWS = range(4)
"""Rows of a way from a stage, number ``2 stage`` to the next one and ``2 stage + 1`` back: how long
a message takes the wire and flies; when the last one has left. [s]"""

MAKESPAN, LIMIT, NOTHING, OWN_ROWS = range(4)
"""Rows of the lanes themselves: time of the last pass; the time from which on an iteration is of no
use; 0. [s]"""


class PipelineScratch(NamedTuple):
    """Arrays for plans of at most S stages, whose last axis are lanes; of one plan it is missing.

    ``stages`` (S STAGE_ROWS,), ``ways`` (2 S WAY_ROWS,) and ``own`` (OWN_ROWS,) have rows as above,
    ``arrivals`` (S num_slots,) a row for each microbatch of a stage, and its last gradient behind
    them. ``pace`` (S, 2) is how many F come before the first backward pass but one, and by how many
    microbatches W is behind; ``work_s`` (S,) is free for what a search knows of stages.
    """

    stages: Real
    ways: Real
    arrivals: Real
    own: Real
    pace: Whole
    work_s: Real
    num_slots: int


class ScratchRows(NamedTuple):
    """Rows of scratch arrays, for kernels that run one lane or all."""

    stages: Rows
    ways: Rows
    arrivals: Rows
    own: Rows
    pace: Whole
    num_slots: int


def new_scratch(most_stages: int, most_microbatches: int, *lanes: int) -> PipelineScratch:
    """Make room for one plan, or for `LANES` of them if that is given."""
    num_slots = most_microbatches + 1
    return PipelineScratch(
        stages=aligned_zeros(most_stages * STAGE_ROWS, *lanes),
        ways=aligned_zeros(2 * most_stages * WAY_ROWS, *lanes),
        arrivals=aligned_zeros(most_stages * num_slots, *lanes),
        own=aligned_zeros(OWN_ROWS, *lanes),
        pace=np.zeros((most_stages, 2), dtype=np.int64),
        work_s=np.zeros(most_stages),
        num_slots=num_slots,
    )


def new_lane_scratch(most_stages: int, most_microbatches: int) -> PipelineScratch:
    """Make room for a plan in each lane."""
    return new_scratch(most_stages, most_microbatches, LANES)


@inlined
def scratch_rows(scratch: PipelineScratch) -> ScratchRows:
    """Rows of scratch arrays."""
    return ScratchRows(
        vector_rows(scratch.stages),
        vector_rows(scratch.ways),
        vector_rows(scratch.arrivals),
        vector_rows(scratch.own),
        views_of(scratch.pace),
        scratch.num_slots,
    )


@lean_kernel
def write_plan(rows: ScratchRows, lane: int, job: Job, plans: Plans, plan: int) -> None:
    """Write the times of the passes and messages of a plan into a lane."""
    stages, ways, work = rows.stages, rows.ways, job.work_before
    begin, before = 0, -1
    for stage in range(plans.num_stages[plan]):
        domain, end = plans.domain[plan, stage], plans.end_layer[plan, stage]
        rate, at, column = job.rate_flops_per_s[domain], stage * STAGE_ROWS, 4 * domain
        for kind in range(4):
            flops = work[end, column + kind] - work[begin, column + kind]
            stages[at + kind, lane] = flops / rate
        if stage > 0:
            down, up = (2 * stage - 2) * WAY_ROWS, (2 * stage + 1) * WAY_ROWS
            ways[down + WIRE, lane] = job.wire_s[before, domain]
            ways[down + LATENCY, lane] = job.latency_s[before, domain]
            ways[up + WIRE, lane] = job.wire_s[domain, before]
            ways[up + LATENCY, lane] = job.latency_s[domain, before]
        begin, before = end, domain


@lean_kernel
def write_pace(
    rows: ScratchRows, paces: ScheduleParams, schedule: int, num_stages: int, count: int
) -> None:
    """Write the pace of the stages of a pipeline."""
    for stage in range(num_stages):
        rows.pace[stage, 0] = num_warm_up(paces, schedule, num_stages - 1 - stage, count)
        rows.pace[stage, 1] = count
        if paces.behind[schedule] != WHOLE:
            rows.pace[stage, 1] = num_behind(paces, schedule, stage, count)
