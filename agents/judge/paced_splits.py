"""Splits of layers for schedules with a pace: filled to a level, then better layer by layer."""

import math

from des.base.jit import kernel
from des.compiled.many.layout import Real, Whole
from des.compiled.many.paced import (
    WHOLE,
    Desk,
    Paces,
    paced_bytes,
    paced_overflow,
    paced_time_s,
)
from des.compiled.many.steady import FITS, Job, Plans

_PRECISION = 2.0**-8
_STEP = 1.08


@kernel
def paced_fill(job: Job, paces: Paces, plans: Plans, counts: Whole, levels_s: Real) -> None:
    """Split the layers of plans, whose domains and schedules are given, evenly in time.

    Every stage gets the most layers with which a common level holds: the time before its first
    forward, its work on all microbatches and, but for weight gradients that may come last, the time
    behind its last backward; and which fit into its memory. It gets one at least. Where the stages
    cannot hold all layers at any level, that is ``inf``. [s]
    """
    for plan in range(plans.num_stages.size):
        levels_s[plan] = _filled(job, paces, plans, plan, counts[plan])


@kernel
def _filled(job: Job, paces: Paces, plans: Plans, plan: int, count: int) -> float:
    if not _fill_to(job, paces, plans, plan, count, math.inf):
        return math.inf
    rate = 0.0
    for stage in range(plans.num_stages[plan]):
        rate += job.rate_flops_per_s[plans.domain[plan, stage]]
    low_s: float = count * (job.sums_before[-1, 0] + job.sums_before[-1, 1]) / rate
    high_s: float = low_s * _STEP
    while not _fill_to(job, paces, plans, plan, count, high_s):
        low_s, high_s = high_s, high_s * _STEP
    while high_s - low_s > _PRECISION * high_s:
        middle_s = (low_s + high_s) / 2.0
        if _fill_to(job, paces, plans, plan, count, middle_s):
            high_s = middle_s
        else:
            low_s = middle_s
    _fill_to(job, paces, plans, plan, count, high_s)
    return high_s


@kernel
def _fill_to(job: Job, paces: Paces, plans: Plans, plan: int, count: int, level_s: float) -> bool:
    """Give every stage what fits below a level, a layer at least; whether no layer is left."""
    num_stages, num_layers = plans.num_stages[plan], job.sums_before.shape[0] - 1
    is_halved = paces.behind[plans.schedule[plan]] != WHOLE
    begin, head_s, tail_s, is_below = 0, 0.0, 0.0, True
    for stage in range(num_stages):
        domain = plans.domain[plan, stage]
        if stage > 0:
            before = plans.domain[plan, stage - 1]
            head_s += job.wire_s[before, domain] + job.latency_s[before, domain] + job.overhead_s
            tail_s += job.wire_s[domain, before] + job.latency_s[domain, before] + job.overhead_s
        most = num_layers - (num_stages - 1 - stage)
        least = _last_that_fits(
            job, paces, plans, plan, stage, begin, most, count, head_s, tail_s, level_s
        )
        if least == begin:
            is_below, least = False, begin + 1
        work, first = job.work_before, 4 * domain
        rate = job.rate_flops_per_s[domain]
        head_s += (work[least, first] - work[begin, first]) / rate
        back = 2 if is_halved else 1
        tail_s += (work[least, first + back] - work[begin, first + back]) / rate
        plans.end_layer[plan, stage] = begin = least
    is_below = is_below and begin == num_layers
    plans.end_layer[plan, num_stages - 1] = num_layers
    return is_below


@kernel
def _last_that_fits(
    job: Job,
    paces: Paces,
    plans: Plans,
    plan: int,
    stage: int,
    begin: int,
    most: int,
    count: int,
    head_s: float,
    tail_s: float,
    level_s: float,
) -> int:
    """Last end with which a stage stays below a level and fits; ``begin`` if there is none.

    Layers are much alike, so the search sets out from where equal ones would end.
    """
    first, num_layers = 4 * plans.domain[plan, stage], job.sums_before.shape[0] - 1
    total = job.work_before[num_layers, first] + job.work_before[num_layers, first + 1]
    own_s = count * total / num_layers / job.rate_flops_per_s[plans.domain[plan, stage]]
    guess = (level_s - head_s - tail_s) / own_s
    end = int(max(begin + 1.0, min(float(most), begin + guess)))
    is_in = _stage_fits(job, paces, plans, plan, stage, begin, end, count, head_s, tail_s, level_s)
    while is_in and end < most:
        if not _stage_fits(
            job, paces, plans, plan, stage, begin, end + 1, count, head_s, tail_s, level_s
        ):
            return end
        end += 1
    while not is_in and end > begin:
        end -= 1
        is_in = end > begin and _stage_fits(
            job, paces, plans, plan, stage, begin, end, count, head_s, tail_s, level_s
        )
    return end


@kernel
def _stage_fits(
    job: Job,
    paces: Paces,
    plans: Plans,
    plan: int,
    stage: int,
    begin: int,
    end: int,
    count: int,
    head_s: float,
    tail_s: float,
    level_s: float,
) -> bool:
    """Whether a stage of some layers stays below a level and within its memory."""
    domain = plans.domain[plan, stage]
    work, first, rate = job.work_before, 4 * domain, job.rate_flops_per_s[domain]
    forward_s = (work[end, first] - work[begin, first]) / rate
    if paces.behind[plans.schedule[plan]] == WHOLE:
        backward_s = (work[end, first + 1] - work[begin, first + 1]) / rate
        busy_s = head_s + count * (forward_s + backward_s) + tail_s
    else:
        back_s = (work[end, first + 2] - work[begin, first + 2]) / rate
        put_off_s = (work[end, first + 3] - work[begin, first + 3]) / rate
        busy_s = head_s + count * (forward_s + back_s)
        busy_s = max(busy_s + tail_s, busy_s + count * put_off_s)
    if busy_s > level_s:
        return False
    needed = paced_bytes(job, paces, plans, plan, stage, begin, end, count)
    return bool(needed <= job.capacity_bytes[domain])


@kernel
def paced_refine(
    job: Job, paces: Paces, plans: Plans, counts: Whole, desk: Desk, most: int, times_s: Real
) -> int:
    """Move layers between stages, and change schedules, while that makes plans quicker.

    ``times_s`` (N,) are those of the plans, ``inf`` where they do not fit; they are overwritten, as
    are splits and schedules. A plan takes the best of its neighbours, 1, 2 or 4 layers from any
    stage to any other, or another schedule, until none is quicker or it has looked at ``most``.
    Returns how many plans were judged.
    """
    num_judged = 0
    for plan in range(plans.num_stages.size):
        num_judged += _refine(job, paces, plans, plan, counts[plan], desk, most, times_s)
    return num_judged


@kernel
def _refine(
    job: Job,
    paces: Paces,
    plans: Plans,
    plan: int,
    count: int,
    desk: Desk,
    most: int,
    times_s: Real,
) -> int:
    num_judged, num_stages = 0, plans.num_stages[plan]
    is_better = num_stages > 1
    while is_better and num_judged < most:
        is_better = False
        best_s, best_kind, best_source, best_target = times_s[plan], 0, 0, 0
        own = plans.schedule[plan]
        for schedule in range(paces.depth.size):
            if schedule == own:
                continue
            plans.schedule[plan] = schedule
            found_s = _score(job, paces, plans, plan, count, desk)
            num_judged += 1
            if found_s < best_s:
                best_s, best_kind, best_source = found_s, -1, schedule
        plans.schedule[plan] = own
        for power in range(3):
            step = 1 << power
            for source in range(num_stages):
                for target in range(num_stages):
                    if source == target or not _move(plans, plan, source, target, step):
                        continue
                    found_s = _score(job, paces, plans, plan, count, desk)
                    num_judged += 1
                    if found_s < best_s:
                        best_s, best_kind, best_source, best_target = found_s, step, source, target
                    _move(plans, plan, target, source, step)
        if best_s < times_s[plan]:
            is_better, times_s[plan] = True, best_s
            if best_kind == -1:
                plans.schedule[plan] = best_source
            else:
                _move(plans, plan, best_source, best_target, best_kind)
    return num_judged


@kernel
def _score(job: Job, paces: Paces, plans: Plans, plan: int, count: int, desk: Desk) -> float:
    """Time of an iteration of a plan; ``inf`` where it does not fit. [s]"""
    if paced_overflow(job, paces, plans, plan, count) != FITS:
        return math.inf
    time_s: float = paced_time_s(job, paces, plans, plan, count, desk)
    return time_s


@kernel
def _move(plans: Plans, plan: int, source: int, target: int, step: int) -> bool:
    """Move layers from one stage to another, if the first keeps one; whether that is done."""
    begin = plans.end_layer[plan, source - 1] if source > 0 else 0
    if plans.end_layer[plan, source] - begin <= step:
        return False
    for stage in range(min(source, target), max(source, target)):
        plans.end_layer[plan, stage] += -step if source < target else step
    return True
