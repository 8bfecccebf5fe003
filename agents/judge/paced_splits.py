"""Splits of layers for schedules with a pace: every stage is filled up to one level of time."""

import math

from des.base.jit import kernel
from des.compiled.many.layout import Whole
from des.compiled.many.paced import (
    WHOLE,
    Paces,
    paced_bytes,
    paced_overflow,
)
from des.compiled.many.steady import FITS, Job, Plans

_PRECISION = 2.0**-8
_STEP = 1.03


@kernel
def paced_fill(job: Job, paces: Paces, plans: Plans, counts: Whole, per_order: int) -> None:
    """Split the layers of plans, whose domains and schedules are given, evenly in time.

    Every stage gets the most layers with which a common level holds: the time before its first
    forward, its work on all microbatches and, but for weight gradients that may come last, the time
    behind its last backward; and which fit into its memory. It gets one at least. Where the stages
    cannot hold all layers at any level, the split is arbitrary and does not fit; where no links
    lead from one stage to the next, it is arbitrary.

    Parameters
    ----------
    per_order
        Plans in a row that differ in their schedules alone: where memory does not matter, those of
        whole backward passes have one split, and those of halved ones.
    """
    for first in range(0, plans.num_stages.size, per_order):
        whole = halved = -1
        for plan in range(first, first + per_order):
            is_whole = paces.behind[plans.schedule[plan]] == WHOLE
            known = whole if is_whole else halved
            if known >= 0:
                for stage in range(plans.num_stages[plan]):
                    plans.end_layer[plan, stage] = plans.end_layer[known, stage]
            else:
                _fill(job, paces, plans, plan, counts[plan], False)
            if paced_overflow(job, paces, plans, plan, counts[plan]) != FITS:
                _fill(job, paces, plans, plan, counts[plan], True)
            elif is_whole:
                whole = plan
            else:
                halved = plan


@kernel
def _fill(job: Job, paces: Paces, plans: Plans, plan: int, count: int, in_memory: bool) -> None:
    if not _is_joined(job, plans, plan):
        _fill_any(plans, plan, 0, 0, job.sums_before.shape[0] - 1)
        return
    if in_memory and not _fill_to(job, paces, plans, plan, count, math.inf, True):
        return
    low_s = _even_level_s(job, paces, plans, plan, count)
    step = _STEP
    high_s: float = low_s * step
    while not _fill_to(job, paces, plans, plan, count, high_s, in_memory):
        step *= step
        low_s, high_s = high_s, high_s * step
    while high_s - low_s > _PRECISION * high_s:
        middle_s = (low_s + high_s) / 2.0
        if _fill_to(job, paces, plans, plan, count, middle_s, in_memory):
            high_s = middle_s
        else:
            low_s = middle_s
    _fill_to(job, paces, plans, plan, count, high_s, in_memory)


@kernel
def _is_joined(job: Job, plans: Plans, plan: int) -> bool:
    """Whether links lead from each stage to the next and back."""
    for stage in range(1, plans.num_stages[plan]):
        before, domain = plans.domain[plan, stage - 1], plans.domain[plan, stage]
        if math.isinf(job.wire_s[before, domain] + job.wire_s[domain, before]):
            return False
    return True


@kernel
def _even_level_s(job: Job, paces: Paces, plans: Plans, plan: int, count: int) -> float:
    """Level at which fractions of equal layers are even, without a least number a stage. [s]

    With ``a + b T`` the time outside of a stage for a level ``T``, the stage takes ``T - a - b T``
    over its time a layer: the sum over the stages is a line in ``T``.
    """
    num_layers, work = job.work_before.shape[0] - 1, job.work_before
    is_whole = paces.behind[plans.schedule[plan]] == WHOLE
    slope = offset_s = taken = taken_at_0 = 0.0
    for stage in range(plans.num_stages[plan]):
        domain = plans.domain[plan, stage]
        if stage > 0:
            before = plans.domain[plan, stage - 1]
            offset_s += job.wire_s[before, domain] + job.latency_s[before, domain] + job.overhead_s
            if is_whole:
                offset_s += job.wire_s[domain, before] + job.latency_s[domain, before]
                offset_s += job.overhead_s
        forward = work[num_layers, 4 * domain]
        both = forward + work[num_layers, 4 * domain + 1]
        layers = job.rate_flops_per_s[domain] * num_layers / (count * both)
        own_slope, own_offset = (1.0 - slope) * layers, -offset_s * layers
        taken += own_slope
        taken_at_0 += own_offset
        share = (both if is_whole else forward) / both / count
        slope += own_slope * share / layers
        offset_s += own_offset * share / layers
    level_s: float = (num_layers - taken_at_0) / taken
    return level_s


@kernel
def _fill_to(
    job: Job,
    paces: Paces,
    plans: Plans,
    plan: int,
    count: int,
    level_s: float,
    in_memory: bool,
) -> bool:
    """Give every stage what fits below a level; returns whether all layers are given."""
    num_stages, num_layers = plans.num_stages[plan], job.sums_before.shape[0] - 1
    back = 1 if paces.behind[plans.schedule[plan]] == WHOLE else 2
    begin, head_s, tail_s = 0, 0.0, 0.0
    for stage in range(num_stages):
        domain = plans.domain[plan, stage]
        if stage > 0:
            before = plans.domain[plan, stage - 1]
            head_s += job.wire_s[before, domain] + job.latency_s[before, domain] + job.overhead_s
            tail_s += job.wire_s[domain, before] + job.latency_s[domain, before] + job.overhead_s
        most = num_layers - (num_stages - 1 - stage)
        end = _last_that_fits(
            job, paces, plans, plan, stage, begin, most, count, head_s, tail_s, level_s, in_memory
        )
        if end == begin:
            _fill_any(plans, plan, stage, begin, num_layers)
            return False
        work, first, rate = job.work_before, 4 * domain, job.rate_flops_per_s[domain]
        head_s += (work[end, first] - work[begin, first]) / rate
        tail_s += (work[end, first + back] - work[begin, first + back]) / rate
        plans.end_layer[plan, stage] = begin = end
    plans.end_layer[plan, num_stages - 1] = num_layers
    return bool(begin == num_layers)


@kernel
def _fill_any(plans: Plans, plan: int, stage: int, begin: int, num_layers: int) -> None:
    """Give one layer to each remaining stage, and the others to the last stage."""
    for later in range(stage, plans.num_stages[plan]):
        begin += 1
        plans.end_layer[plan, later] = begin
    plans.end_layer[plan, plans.num_stages[plan] - 1] = num_layers


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
    in_memory: bool,
) -> int:
    """Last end with which a stage stays below a level and fits; ``begin`` if there is none.

    Layers are much alike, so the search begins where equal ones would end, doubles its steps, then
    bisects.
    """
    first, num_layers = 4 * plans.domain[plan, stage], job.sums_before.shape[0] - 1
    total = job.work_before[num_layers, first] + job.work_before[num_layers, first + 1]
    own_s = count * total / num_layers / job.rate_flops_per_s[plans.domain[plan, stage]]
    guess = begin + (level_s - head_s - tail_s) / own_s
    at = int(max(begin + 1.0, min(float(most), guess)))
    least, above, step = begin, most + 1, 1  # what fits, what does not
    while above - least > 1:
        if _stage_fits(
            job, paces, plans, plan, stage, begin, at, count, head_s, tail_s, level_s, in_memory
        ):
            least = at
        else:
            above = at
        if above == most + 1:
            at = min(most, at + step)
        elif least == begin:
            at = max(begin + 1, at - step)
        else:
            at = (least + above) // 2
        if at <= least or at >= above:
            at = (least + above) // 2
        step *= 2
    return least


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
    in_memory: bool,
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
    if busy_s > level_s or not in_memory:
        return bool(busy_s <= level_s)
    needed = paced_bytes(job, paces, plans, plan, stage, begin, end, count)
    return bool(needed <= job.capacity_bytes[domain])
