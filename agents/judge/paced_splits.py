"""Splits of layers for schedules with a pace: every stage is filled up to one level of time."""

import math
from typing import NamedTuple

import numpy as np

from des.base.jit import lean_kernel
from des.compiled.many.layout import Real, Small, Whole
from des.compiled.many.paced import (
    WHOLE,
    Moments,
    Paces,
    moments_bytes,
    paced_overflow,
    stage_moments,
)
from des.compiled.many.paced_bound import least_bytes, room_bytes
from des.compiled.many.steady import FITS, Job, Plans

_PRECISION = 2.0**-8
_STEP = 1.03


class LayerTimes(NamedTuple):
    """Times of the layers before each, domain by domain, and of messages between domains. [s]

    ``head_s`` and ``tail_s`` (2, K, L + 1) are of the passes outside of a stage's own work: forward
    passes, and what follows of them; ``work_s`` (2, K, L + 1) of what a stage does of a microbatch
    between its first pass and its last, ``all_s`` (K, L + 1) with weight gradients put off. First
    come those of whole backward passes, then of halved ones. ``hop_s`` (K, K) is of a message.
    """

    head_s: Real
    tail_s: Real
    work_s: Real
    all_s: Real
    hop_s: Real


def layer_times(job: Job) -> LayerTimes:
    """Work the times of a job out."""
    num_domains = len(job.rate_flops_per_s)
    passes_s = job.work_before.T.reshape(num_domains, 4, -1)
    passes_s = passes_s / job.rate_flops_per_s[:, np.newaxis, np.newaxis]
    forward_s, backward_s, gradient_s, weight_s = np.ascontiguousarray(passes_s.swapaxes(0, 1))
    return LayerTimes(
        head_s=forward_s,
        tail_s=np.array([backward_s, gradient_s]),
        work_s=np.array([forward_s + backward_s, forward_s + gradient_s]),
        all_s=forward_s + gradient_s + weight_s,
        hop_s=job.wire_s + job.latency_s + job.overhead_s,
    )


@lean_kernel
def paced_fill(
    job: Job, times: LayerTimes, paces: Paces, plans: Plans, counts: Whole, per_order: int
) -> None:
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
        known = (-1, -1)
        is_tight = room_bytes(job, plans, first) < least_bytes(job)
        for plan in range(first, first + per_order):
            kind = 0 if paces.behind[plans.schedule[plan]] == WHOLE else 1
            if known[kind] >= 0:
                for stage in range(plans.num_stages[plan]):
                    plans.end_layer[plan, stage] = plans.end_layer[known[kind], stage]
            elif not is_tight or _fill_to(
                job, times, paces, plans, plan, counts[plan], math.inf, True
            ):
                _fill(job, times, paces, plans, plan, counts[plan], False)
            if paced_overflow(job, paces, plans, plan, counts[plan]) != FITS:
                _fill(job, times, paces, plans, plan, counts[plan], True)
            else:
                known = (plan, known[1]) if kind == 0 else (known[0], plan)


@lean_kernel
def paced_levels(
    job: Job, times: LayerTimes, paces: Paces, plans: Plans, counts: Whole, levels_s: Real
) -> None:
    """Write about how long plans take at least, whose domains and schedules are given. [s]

    It is the time at which layers in fractions are even, or that of the slowest wire; ``inf`` where
    links are missing, or where the model's state and a microbatch have no room.
    """
    needed = least_bytes(job)
    for plan in range(plans.num_stages.size):
        levels_s[plan] = math.inf
        hops_s, slowest_s = 0.0, 0.0
        for stage in range(plans.num_stages[plan]):
            domain = plans.domain[plan, stage]
            if stage > 0:
                before = plans.domain[plan, stage - 1]
                hops_s += times.hop_s[before, domain] + times.hop_s[domain, before]
                wire_s = max(job.wire_s[before, domain], job.wire_s[domain, before])
                slowest_s = max(slowest_s, wire_s + job.overhead_s)
        if room_bytes(job, plans, plan) >= needed and hops_s < math.inf:
            even_s = _even_level_s(times, paces, plans, plan, counts[plan])
            levels_s[plan] = max(even_s, hops_s + (counts[plan] - 1) * slowest_s)


@lean_kernel
def _fill(
    job: Job,
    times: LayerTimes,
    paces: Paces,
    plans: Plans,
    plan: int,
    count: int,
    in_memory: bool,
) -> None:
    if not _is_joined(times.hop_s, plans, plan):
        num_layers = times.all_s.shape[1] - 1
        _fill_any(plans.end_layer[plan], plans.num_stages[plan], 0, 0, num_layers)
        return
    if in_memory and not _fill_to(job, times, paces, plans, plan, count, math.inf, True):
        return
    low_s = _even_level_s(times, paces, plans, plan, count)
    step = _STEP
    high_s: float = low_s * step
    while not _fill_to(job, times, paces, plans, plan, count, high_s, in_memory):
        step *= step
        low_s, high_s = high_s, high_s * step
    is_filled = True
    while high_s - low_s > _PRECISION * high_s:
        middle_s = (low_s + high_s) / 2.0
        is_filled = _fill_to(job, times, paces, plans, plan, count, middle_s, in_memory)
        if is_filled:
            high_s = middle_s
        else:
            low_s = middle_s
    if not is_filled:
        _fill_to(job, times, paces, plans, plan, count, high_s, in_memory)


@lean_kernel
def _is_joined(hop_s: Real, plans: Plans, plan: int) -> bool:
    """Whether links lead from each stage to the next and back."""
    for stage in range(1, plans.num_stages[plan]):
        before, domain = plans.domain[plan, stage - 1], plans.domain[plan, stage]
        if math.isinf(hop_s[before, domain] + hop_s[domain, before]):
            return False
    return True


@lean_kernel
def _even_level_s(times: LayerTimes, paces: Paces, plans: Plans, plan: int, count: int) -> float:
    """Level at which fractions of equal layers are even, without a least number a stage. [s]

    With ``a + b T`` the time outside of a stage for a level ``T``, the stage takes ``T - a - b T``
    over its time a layer: the sum over the stages is a line in ``T``.
    """
    num_layers, head_s, hop_s = times.all_s.shape[1] - 1, times.head_s, times.hop_s
    is_whole = paces.behind[plans.schedule[plan]] == WHOLE
    slope = offset_s = taken = taken_at_0 = 0.0
    before = 0
    for stage in range(plans.num_stages[plan]):
        domain = plans.domain[plan, stage]
        if stage > 0:
            offset_s += hop_s[before, domain]
            if is_whole:
                offset_s += hop_s[domain, before]
        before = domain
        forward_s, both_s = head_s[domain, num_layers], times.work_s[0, domain, num_layers]
        layers = num_layers / (count * both_s)
        own_slope, own_offset = (1.0 - slope) * layers, -offset_s * layers
        taken += own_slope
        taken_at_0 += own_offset
        share = (1.0 if is_whole else forward_s / both_s) / count
        slope += own_slope * share / layers
        offset_s += own_offset * share / layers
    level_s: float = (num_layers - taken_at_0) / taken
    return level_s


@lean_kernel
def _fill_to(
    job: Job,
    times: LayerTimes,
    paces: Paces,
    plans: Plans,
    plan: int,
    count: int,
    level_s: float,
    in_memory: bool,
) -> bool:
    """Give every stage what fits below a level; returns whether all layers are given."""
    num_stages, num_layers = plans.num_stages[plan], times.all_s.shape[1] - 1
    kind = 0 if paces.behind[plans.schedule[plan]] == WHOLE else 1
    hop_s, all_s = times.hop_s, times.all_s
    begin, before, outside_s, back_s = 0, 0, 0.0, 0.0
    for stage in range(num_stages):
        domain = plans.domain[plan, stage]
        if stage > 0:
            outside_s += hop_s[before, domain]
            back_s += hop_s[domain, before]
        before = domain
        most = num_layers - (num_stages - 1 - stage)
        own_s, tail_s = times.work_s[kind, domain], times.tail_s[kind, domain]
        left_s = (level_s - outside_s) / count
        end = _last_below(own_s, begin, most, own_s[begin] + left_s - back_s / count)
        if kind == 1:
            end = _last_below(all_s[domain], begin, end, all_s[domain, begin] + left_s)
        if in_memory:
            moments = stage_moments(paces, plans.schedule[plan], num_stages, stage, count)
            end = _last_in_memory(job, moments, job.capacity_bytes[domain], begin, end)
        if end == begin:
            _fill_any(plans.end_layer[plan], num_stages, stage, begin, num_layers)
            return False
        outside_s += times.head_s[domain, end] - times.head_s[domain, begin]
        back_s += tail_s[end] - tail_s[begin]
        plans.end_layer[plan, stage] = begin = end
    plans.end_layer[plan, num_stages - 1] = num_layers
    return bool(begin == num_layers)


@lean_kernel
def _fill_any(ends: Small, num_stages: int, stage: int, begin: int, num_layers: int) -> None:
    """Give one layer to each remaining stage, and the others to the last stage."""
    for later in range(stage, num_stages):
        begin += 1
        ends[later] = begin
    ends[num_stages - 1] = num_layers


@lean_kernel
def _last_below(before_s: Real, begin: int, most: int, limit_s: float) -> int:
    """Last end, ``begin`` to ``most``, before which layers take no more than a limit.

    Layers are much alike, so the search begins where equal ones would end, doubles its steps, then
    bisects.
    """
    if before_s[most] <= limit_s:
        return most
    if before_s[begin + 1] > limit_s:
        return begin
    first_s = before_s[begin]
    guess = begin + int((limit_s - first_s) * (most - begin) / (before_s[most] - first_s))
    least, above, step = begin + 1, most, 1  # what is below, what is not
    at = min(max(guess, least), above - 1)
    if before_s[at] <= limit_s:
        least = at
        while before_s[least + 1] <= limit_s:
            least += 1
        return least
    while before_s[at] > limit_s:
        at -= 1
    return at


@lean_kernel
def _last_in_memory(job: Job, moments: Moments, capacity: float, begin: int, most: int) -> int:
    """Last end, ``begin`` to ``most``, with which a stage fits into its memory.

    The search begins where equal layers would end, see `_last_below`.
    """
    needed = moments_bytes(job, moments, begin, most)
    if needed <= capacity:
        return most
    least, above, step = begin, most, 1  # what fits, what does not
    at = begin + int((most - begin) * (capacity / needed))
    while above - least > 1:
        if at <= least or at >= above:
            at = (least + above) // 2
        if moments_bytes(job, moments, begin, at) <= capacity:
            least = at
            at += step
        else:
            above = at
            at -= step
        step *= 2
    return least
