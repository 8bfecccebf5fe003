"""Iterations of plans that stand still, side by side: `des.compiled.kernels.recurrence` without
the rest.

Links stand still, no utilisation is recorded, and plans over their time limit are abandoned early.
Times are those of `des.compiled.many.steady.makespans` to the last bit: the messages of a wire
arrive in the order in which they leave, as all fly as long.
"""

import math

import numpy as np

from des.base.jit import kernel
from des.compiled.kernels.intrinsics import (
    LANES,
    Rows,
    Vector,
    larger,
    load,
    splat,
    store,
    vector_rows,
    views_of,
)
from des.compiled.kernels.lanes import (
    BASE_LATENCY,
    MAKESPAN,
    NUM_BYTES,
    OVERHEAD,
    STAGE_FREE,
    STAGE_ROWS,
    WIRE_FREE,
    WIRE_ROWS,
    Lanes,
)
from des.compiled.many.layout import Real, Small, Whole
from des.compiled.many.steady import Job, Plans, Programs, add_updates

_NUM_KINDS = 4
_NUM_LOOKS = 6
"""Number of checks per block whether any of its plans is still of use."""

_ROUNDING = 1.0 - 1e-9


@kernel
def plain_makespans(
    lanes: Lanes,
    job: Job,
    programs: Programs,
    plans: Plans,
    ordered: Whole,
    starts: Whole,
    limits_s: Real,
    makespans_s: Real,
) -> None:
    """Write how long an iteration of plans takes; those of group ``g`` are from ``starts[g]`` on.

    ``ordered`` are positions of plans; what it leaves out is not written. Those that take
    ``limits_s`` (N,) or longer may get ``inf``.
    """
    run_plain(
        views_of(lanes),
        views_of(job),
        views_of(programs),
        views_of(plans),
        views_of(ordered),
        views_of(starts),
        views_of(limits_s),
        views_of(makespans_s),
    )


@kernel
def run_plain(
    lanes: Lanes,
    job: Job,
    programs: Programs,
    plans: Plans,
    ordered: Whole,
    starts: Whole,
    limits_s: Real,
    makespans_s: Real,
) -> None:
    """As `plain_makespans`, of views."""
    array = np.empty((_NUM_LOOKS, programs.most_stages * _NUM_KINDS))
    num_left = views_of(array)
    for group in range(starts.size - 1):
        if starts[group] == starts[group + 1]:
            continue
        first, end = programs.first_row[group], programs.first_row[group + 1]
        num_stages = group % programs.most_stages + 1
        _count_left(programs.rows, first, end, num_stages, num_left)
        for begin in range(starts[group], starts[group + 1], LANES):
            size = min(LANES, starts[group + 1] - begin)
            fill_plain_lanes(lanes, job, plans, num_stages, ordered, begin, size)
            _run(
                lanes,
                programs.rows,
                first,
                end,
                num_stages,
                num_left,
                limits_s,
                ordered,
                begin,
                size,
            )
            for lane in range(size):
                makespans_s[ordered[begin + lane]] = lanes.own[MAKESPAN, lane]
    add_updates(job, plans, ordered, starts, makespans_s)
    array[0, 0] = 0.0  # so that it outlives its view


@kernel
def _count_left(rows: Small, first: int, end: int, num_stages: int, num_left: Real) -> None:
    """Write how many operations are left at each look, by stage and kind; none at the last one."""
    last = _NUM_LOOKS - 1
    for entry in range(num_stages * _NUM_KINDS):
        num_left[last, entry] = 0.0
    for look in range(last, 0, -1):
        for entry in range(num_stages * _NUM_KINDS):
            num_left[look - 1, entry] = num_left[look, entry]
        for row in range(
            first + _rows_until(look, end - first), first + _rows_until(look + 1, end - first)
        ):
            num_left[look - 1, rows[row, 0] * _NUM_KINDS + rows[row, 1]] += 1.0


@kernel
def _rows_until(look: int, num_rows: int) -> int:
    return num_rows * look // _NUM_LOOKS


@kernel
def fill_plain_lanes(
    lanes: Lanes, job: Job, plans: Plans, num_stages: int, ordered: Whole, first: int, size: int
) -> None:
    """Write down the stages and wires of plans, one a lane; spare lanes repeat the last."""
    stages, wires = vector_rows(lanes.stages), vector_rows(lanes.wires)
    domains, end_layers, work = plans.domain, plans.end_layer, job.work_before
    for lane in range(LANES):
        plan = ordered[first + min(lane, size - 1)]
        begin, before = 0, -1
        for stage in range(num_stages):
            domain, end = domains[plan, stage], end_layers[plan, stage]
            rate, at, column = job.rate_flops_per_s[domain], stage * STAGE_ROWS, 4 * domain
            for kind in range(_NUM_KINDS):
                flops = work[end, column + kind] - work[begin, column + kind]
                stages[at + kind, lane] = flops / rate
            stages[at + STAGE_FREE, lane] = 0.0
            for way in range(2 if stage > 0 else 0):
                source, target = (before, domain) if way == 0 else (domain, before)
                wire = (2 * (stage - 1) + way) * WIRE_ROWS
                wires[wire + NUM_BYTES, lane] = job.wire_s[source, target]
                wires[wire + BASE_LATENCY, lane] = job.latency_s[source, target]
                wires[wire + OVERHEAD, lane] = job.overhead_s
                wires[wire + WIRE_FREE, lane] = 0.0
            begin, before = end, domain


@kernel
def _run(
    lanes: Lanes,
    rows: Small,
    first: int,
    last: int,
    num_stages: int,
    num_left: Real,
    limits_s: Real,
    ordered: Whole,
    first_plan: int,
    size: int,
) -> None:
    """Go through a table of operations, as long as a plan of the block is of use."""
    stages, wires = vector_rows(lanes.stages), vector_rows(lanes.wires)
    arrivals, own = vector_rows(lanes.arrivals), vector_rows(lanes.own)
    store(arrivals, 0, splat(0.0))
    begin, num_others = first, 0.0
    for stage in range(num_stages):
        at = stage * _NUM_KINDS
        num_others += num_left[0, at + 2] + num_left[0, at + 3]
    for row in range(first, first + _rows_until(1, last - first)):
        num_others += 1.0 if rows[row, 1] >= 2 else 0.0
    has_tails = num_others == 0.0  # the last operation of a stage is a B, which goes up
    for look in range(_NUM_LOOKS):
        end = first + _rows_until(look + 1, last - first)
        for row in range(begin, end):
            run_row(stages, wires, arrivals, rows, row)
        begin, is_last = end, look == _NUM_LOOKS - 1
        least = _least(stages, wires, num_stages, num_left, look, has_tails and not is_last)
        store(own, MAKESPAN, least)
        is_of_use = is_last
        for lane in range(size):
            least_s = own[MAKESPAN, lane] * _ROUNDING
            is_of_use = is_of_use or least_s < limits_s[ordered[first_plan + lane]]
        if not is_of_use:
            store(own, MAKESPAN, splat(math.inf))
            return


@kernel
def run_row(stages: Rows, wires: Rows, arrivals: Rows, rows: Small, row: int) -> None:
    """Run an operation, and send what it makes."""
    stage, wire = rows[row, 0] * STAGE_ROWS, (rows[row, 3] - 1) * WIRE_ROWS
    start = larger(load(stages, stage + STAGE_FREE), load(arrivals, rows[row, 2]))
    end = start + load(stages, stage + rows[row, 1])
    store(stages, stage + STAGE_FREE, end)
    if wire >= 0:
        taken = larger(end, load(wires, wire + WIRE_FREE))
        left = taken + load(wires, wire + OVERHEAD) + load(wires, wire + NUM_BYTES)
        store(wires, wire + WIRE_FREE, left)
        store(arrivals, rows[row, 4], left + load(wires, wire + BASE_LATENCY))


@kernel
def _least(
    stages: Rows, wires: Rows, num_stages: int, num_left: Real, look: int, has_tails: bool
) -> Vector:
    """Time below which iterations cannot stay any more: the makespans, when nothing is left.

    A stage has its operations left, and a wire up its messages. With tails, the last of them goes
    on up to the input, stage by stage.
    """
    least = tail = splat(0.0)
    for stage in range(num_stages):
        at, wire = stage * STAGE_ROWS, (2 * stage - 1) * WIRE_ROWS
        if stage > 0 and has_tails:
            sent = load(wires, wire + OVERHEAD) + load(wires, wire + NUM_BYTES)
            flown = load(wires, wire + BASE_LATENCY)
            by_wire = load(wires, wire + WIRE_FREE) + sent * splat(
                num_left[look, stage * _NUM_KINDS + 1]
            )
            least = larger(least, by_wire + (flown + tail))
            tail = tail + (sent + flown)
        own = load(stages, at + STAGE_FREE)
        for kind in range(_NUM_KINDS):
            count = num_left[look, stage * _NUM_KINDS + kind]
            if count > 0.0:
                own = own + load(stages, at + kind) * splat(count)
        least = larger(least, own + tail)
        if has_tails:
            tail = tail + load(stages, at + 1)
    return least
