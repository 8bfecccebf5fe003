"""Iterations of pipelines by recurrence from the paces of their schedules, one or many at once.

A pace says in which order a stage does its passes, so on links that stand still and serve in turn
nothing that happens changes an order: a pass starts when the stage has done the one before and its
input has arrived, a message takes its wire when it is ready and the one before has left. After the
first forwards each stage does a backward pass and a forward one in turn. Times are those of
`des.simulate` to the last bit, and of the expanded `des.program.program.Program`.
"""

import math

from des.base.jit import kernel, lean_kernel
from des.compiled.kernels.intrinsics import LANES, Vector, below, larger, load, store, views_of
from des.compiled.many.layout import Real, Whole
from des.compiled.many.paced import WHOLE, CountedPlans
from des.compiled.many.pipeline_scratch import (
    FREE,
    LATENCY,
    LIMIT,
    MAKESPAN,
    NOTHING,
    STAGE_ROWS,
    START,
    WAY_ROWS,
    WIRE,
    WIRE_FREE,
    PipelineScratch,
    ScratchRows,
    scratch_rows,
    write_pace,
    write_plan,
)
from des.compiled.many.steady import Job, slowest_update_s

_NUM_LOOKS = 6
"""Number of checks per block whether any of its plans is still of use."""

_ROUNDING = 1.0 - 1e-9
"""Sums of the same terms in another order differ by less."""


@lean_kernel
def plan_time_s(batch: CountedPlans, plan: int, scratch: PipelineScratch, limit_s: float) -> float:
    """Time of one iteration of a plan that is written down; ``inf`` if not below a limit. [s]"""
    rows = scratch_rows(scratch)
    rows.own[LIMIT, 0] = limit_s
    if not _run(rows, batch, plan, limit_s < math.inf):
        return math.inf
    whole_s: float = rows.own[MAKESPAN, 0] + slowest_update_s(batch.job, batch.plans, plan)
    return whole_s


@kernel
def makespans(
    scratch: PipelineScratch,
    batch: CountedPlans,
    ordered: Whole,
    num: int,
    limits_s: Real,
    makespans_s: Real,
) -> None:
    """Write how long an iteration of plans takes, (N,), side by side in the lanes of the scratch.

    The first ``num`` of ``ordered`` are positions of plans, those of equal stages, schedules and
    microbatches in a row; what they leave out is not written. Plans that take ``limits_s`` (N,) or
    longer may get ``inf``.
    """
    rows, given, order = scratch_rows(scratch), views_of(batch), views_of(ordered)
    is_updated = _has_updates(given.job)
    begin = 0
    while begin < num:
        size, least_s = num_alike(given, order, begin, num), math.inf
        for lane in range(LANES):
            rows.own[LIMIT, lane] = limits_s[order[begin + min(lane, size - 1)]]
            least_s = min(least_s, rows.own[LIMIT, lane])
        is_done = run_block(rows, given, order, begin, size, least_s < math.inf)
        for lane in range(size):
            plan = order[begin + lane]
            makespans_s[plan] = rows.own[MAKESPAN, lane] if is_done else math.inf
            if is_updated:
                makespans_s[plan] += slowest_update_s(given.job, given.plans, plan)
        begin += size


@kernel
def num_alike(batch: CountedPlans, ordered: Whole, begin: int, num: int) -> int:
    """Number of plans in a row that fit into the lanes together, from a position on."""
    plans, counts, first, end = batch.plans, batch.counts, ordered[begin], begin + 1
    while end < min(begin + LANES, num):
        plan = ordered[end]
        if plans.num_stages[plan] != plans.num_stages[first]:
            break
        if plans.schedule[plan] != plans.schedule[first] or counts[plan] != counts[first]:
            break
        end += 1
    return end - begin


@kernel
def run_block(
    rows: ScratchRows, batch: CountedPlans, ordered: Whole, begin: int, size: int, is_limited: bool
) -> bool:
    """Run plans in the lanes, see `run_rows`; spare lanes repeat the last one."""
    for lane in range(LANES):
        write_plan(rows, lane, batch.job, batch.plans, ordered[begin + min(lane, size - 1)])
    return _run(rows, batch, ordered[begin], is_limited)


@kernel
def _run(rows: ScratchRows, batch: CountedPlans, plan: int, is_limited: bool) -> bool:
    """Run plans like one that are written down, see `run_rows`."""
    num_stages, schedule, count = (
        batch.plans.num_stages[plan],
        batch.plans.schedule[plan],
        batch.counts[plan],
    )
    write_pace(rows, batch.paces, schedule, num_stages, count)
    is_halved = batch.paces.behind[schedule] != WHOLE
    return run_rows(rows, num_stages, count, is_halved, batch.job.overhead_s, is_limited)


@kernel
def run_rows(
    rows: ScratchRows,
    num_stages: int,
    count: int,
    is_halved: bool,
    overhead_s: float,
    is_limited: bool,
) -> bool:
    """Run an iteration in all lanes, and write its makespan; whether any may be below its limit.

    If none can be any more, the iteration is given up.
    """
    last, pace, back = num_stages - 1, rows.pace, 2 if is_halved else 1
    lag = _begin(rows, num_stages, count)
    for stage in range(num_stages):
        for microbatch in range(min(count, pace[stage, 0] + 1)):
            _forward(rows, stage, last, microbatch, overhead_s)
    num_steps = count + lag * last
    pause = num_steps // _NUM_LOOKS + 1
    for step in range(num_steps):
        if is_limited and step % pause == 0:
            least = _least(rows, num_stages, count, is_halved, overhead_s, lag, step)
            if below(least * _ROUNDING, load(rows.own, LIMIT)) == 0:
                return False
        first, end = 0, num_stages  # stages that have a backward pass to do
        if lag == 1:
            first, end = max(0, last - step), min(num_stages, last - step + count)
        for place in range(end - first):
            stage = first + place if lag == 1 else last - place
            _backward(rows, stage, back, overhead_s)
            if is_halved and pace[stage, 1] <= step - lag * (last - stage) < count - 1:
                _weigh(rows, stage)
        for stage in range(first, end):
            microbatch = pace[stage, 0] + 1 + step - lag * (last - stage)
            if microbatch < count:
                _forward(rows, stage, last, microbatch, overhead_s)
    _end(rows, num_stages, count, is_halved)
    return True


@kernel
def _begin(rows: ScratchRows, num_stages: int, count: int) -> int:
    """Let all be free; returns by how many steps a stage's backward passes lag behind the next's.

    With a lag of 1 passes side by side wait for nothing of each other. With 0 the gradient of a
    microbatch goes all the way up in a step, so that forwards can follow which wait for it.
    """
    nothing, lag = load(rows.own, NOTHING), 1
    for stage in range(num_stages):
        store(rows.stages, stage * STAGE_ROWS + FREE, nothing)
        store(rows.ways, 2 * stage * WAY_ROWS + WIRE_FREE, nothing)
        store(rows.ways, (2 * stage + 1) * WAY_ROWS + WIRE_FREE, nothing)
        num_first = rows.pace[stage, 0]
        if stage > 0 and num_first == rows.pace[stage - 1, 0] and num_first < count:
            lag = 0
    store(rows.arrivals, num_stages * rows.num_slots - 1, nothing)  # the output waits for nothing
    return lag


@kernel
def _forward(rows: ScratchRows, stage: int, last: int, microbatch: int, overhead_s: float) -> None:
    """Do a forward pass, and send the activations on; those of the input are there."""
    at, slot = stage * STAGE_ROWS, stage * rows.num_slots + microbatch
    free = larger(load(rows.stages, at + FREE), load(rows.arrivals, slot))
    free = free + load(rows.stages, at)
    store(rows.stages, at + FREE, free)
    if stage < last:
        _send(rows, 2 * stage, slot + rows.num_slots, free, overhead_s)


@kernel
def _backward(rows: ScratchRows, stage: int, back: int, overhead_s: float) -> None:
    """Do a backward pass, and send the gradient back."""
    at, slot = stage * STAGE_ROWS, (stage + 1) * rows.num_slots - 1
    start = larger(load(rows.stages, at + FREE), load(rows.arrivals, slot))
    free = start + load(rows.stages, at + back)
    store(rows.stages, at + START, start)
    store(rows.stages, at + FREE, free)
    if stage > 0:
        _send(rows, 2 * stage + 1, slot - rows.num_slots, free, overhead_s)


@kernel
def _send(rows: ScratchRows, way: int, slot: int, ready: Vector, overhead_s: float) -> None:
    """Send a message that is ready, and write when it arrives."""
    at = way * WAY_ROWS
    taken = larger(ready, load(rows.ways, at + WIRE_FREE))
    left = taken + overhead_s + load(rows.ways, at + WIRE)
    store(rows.ways, at + WIRE_FREE, left)
    store(rows.arrivals, slot, left + load(rows.ways, at + LATENCY))


@kernel
def _weigh(rows: ScratchRows, stage: int) -> None:
    """Make the weight gradients of a microbatch."""
    at = stage * STAGE_ROWS
    start = load(rows.stages, at + FREE)
    store(rows.stages, at + START, start)
    store(rows.stages, at + FREE, start + load(rows.stages, at + 3))


@kernel
def _end(rows: ScratchRows, num_stages: int, count: int, is_halved: bool) -> None:
    """Make the weight gradients that are left, and write the time of the last pass."""
    makespan = load(rows.own, NOTHING)
    for stage in range(num_stages):
        for _ in range(count - max(0, count - 1 - rows.pace[stage, 1]) if is_halved else 0):
            _weigh(rows, stage)
        makespan = larger(makespan, load(rows.stages, stage * STAGE_ROWS + FREE))
    store(rows.own, MAKESPAN, makespan)


@kernel
def _least(
    rows: ScratchRows,
    num_stages: int,
    count: int,
    is_halved: bool,
    overhead_s: float,
    lag: int,
    step: int,
) -> Vector:
    """Time below which iterations cannot stay any more.

    A stage has its passes left, and a wire up its messages; the last gradient goes on up to the
    input, stage by stage.
    """
    stages, ways, back = rows.stages, rows.ways, 2 if is_halved else 1
    least = tail = load(rows.own, NOTHING)
    for stage in range(num_stages):
        num_back = min(max(step - lag * (num_stages - 1 - stage), 0), count)
        num_forward = min(count, rows.pace[stage, 0] + 1 + num_back)
        at, way = stage * STAGE_ROWS, (2 * stage + 1) * WAY_ROWS
        if stage > 0:
            sent, flown = load(ways, way + WIRE) + overhead_s, load(ways, way + LATENCY)
            by_wire = load(ways, way + WIRE_FREE) + sent * float(count - num_back)
            least = larger(least, by_wire + (flown + tail))
            tail = tail + (sent + flown)
        own = load(stages, at + FREE) + load(stages, at) * float(count - num_forward)
        own = own + load(stages, at + back) * float(count - num_back)
        least = larger(least, own + tail)
        if is_halved:
            num_weighed = max(0, min(num_back, count - 1) - rows.pace[stage, 1])
            least = larger(least, own + load(stages, at + 3) * float(count - num_weighed))
        tail = tail + load(stages, at + back)
    return least


@kernel
def _has_updates(job: Job) -> bool:
    """Whether any domain takes time to update parameters."""
    for domain in range(job.capacity_bytes.size):
        if job.update_s[domain, 0] != 0.0 or job.update_s[domain, 1] != 0.0:
            return True
    return False
