"""Levels of time up to which the stages of pipelines are filled with layers."""

from typing import NamedTuple

import numpy as np

from des.base.jit import inlined, lean_kernel
from des.compiled.many.layout import Real, Small
from des.compiled.many.paced import (
    WHOLE,
    CountedPlans,
    PeakCandidates,
    moments_bytes,
    stage_moments,
)
from des.compiled.many.steady import Job

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
def fill_to_level(
    batch: CountedPlans, times: LayerTimes, plan: int, ends: Small, in_memory: bool
) -> None:
    """Fill a plan, which links join, up to the least level that holds all layers, about.

    Some level must; where memory counts it is known that one does. ``ends`` (S,) is room.
    """
    plans, low_s = batch.plans, even_level_s(batch, times, plan)
    level_s = high_s = low_s * _STEP
    step, is_bounded = _STEP, False
    while not is_bounded or high_s - low_s > _PRECISION * high_s:
        if _fills(batch, times, plan, ends, level_s, in_memory):
            is_bounded, high_s = True, level_s
            for stage in range(plans.num_stages[plan]):
                plans.end_layer[plan, stage] = ends[stage]
        elif is_bounded:
            low_s = level_s
        else:
            step *= step
            low_s, high_s = high_s, high_s * step
        level_s = (low_s + high_s) / 2.0 if is_bounded else high_s


@lean_kernel
def _fills(
    batch: CountedPlans, times: LayerTimes, plan: int, ends: Small, level_s: float, in_memory: bool
) -> bool:
    """Give each stage what fits below a level; returns whether no layer is left."""
    job, plans, count = batch.job, batch.plans, batch.counts[plan]
    num_stages, num_layers = plans.num_stages[plan], times.all_s.shape[1] - 1
    kind = 0 if batch.paces.behind[plans.schedule[plan]] == WHOLE else 1
    outside_s = back_s = 0.0
    begin = before = 0
    for stage in range(num_stages):
        domain = plans.domain[plan, stage]
        if stage > 0:
            outside_s += times.hop_s[before, domain]
            back_s += times.hop_s[domain, before]
        most = num_layers - (num_stages - 1 - stage)
        end = _end_below(
            times, kind, domain, begin, most, (level_s - outside_s) / count, back_s / count
        )
        if in_memory:
            moments = stage_moments(batch, plan, stage)
            end = last_in_memory(job, moments, job.capacity_bytes[domain], begin, end)
        if end == begin:
            return False
        head_s, tail_s = times.head_s[domain], times.tail_s[kind, domain]
        outside_s += head_s[end] - head_s[begin]
        back_s += tail_s[end] - tail_s[begin]
        ends[stage] = begin = end
        before = domain
    return bool(begin == num_layers)


@inlined
def _end_below(
    times: LayerTimes,
    kind: int,
    domain: int,
    begin: int,
    most: int,
    left_s: float,
    back_s: float,
) -> int:
    """End of a stage, ``most`` at the latest, whose work on a microbatch is done in time.

    Of what is ``left_s``, ``back_s`` are after its last pass, where weight gradients may be. [s]
    """
    own_s = times.work_s[kind, domain]
    end = _last_below(own_s, begin, most, own_s[begin] + left_s - back_s)
    if kind == 1:
        all_s = times.all_s[domain]
        end = _last_below(all_s, begin, end, all_s[begin] + left_s)
    return end


@lean_kernel
def even_level_s(batch: CountedPlans, times: LayerTimes, plan: int) -> float:
    """Level at which fractions of equal layers are even, without a least number a stage. [s]

    With ``a + b T`` the time outside of a stage for a level ``T``, the stage takes ``T - a - b T``
    over its time a layer: the sum over the stages is a line in ``T``.
    """
    plans, count = batch.plans, batch.counts[plan]
    num_layers, head_s, hop_s = times.all_s.shape[1] - 1, times.head_s, times.hop_s
    is_whole = batch.paces.behind[plans.schedule[plan]] == WHOLE
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


@inlined
def _last_below(before_s: Real, begin: int, most: int, limit_s: float) -> int:
    """Last end, ``begin`` to ``most``, before which layers take no more than a limit.

    Layers are much alike, so the search begins where equal ones would end.
    """
    first_s = before_s[begin]
    if before_s[most] <= limit_s:
        return most
    if before_s[begin + 1] > limit_s:
        return begin
    end = begin + int((limit_s - first_s) * (most - begin) / (before_s[most] - first_s))
    end = min(max(end, begin + 1), most - 1)
    while before_s[end + 1] <= limit_s:
        end += 1
    while before_s[end] > limit_s:
        end -= 1
    return end


@inlined
def last_in_memory(
    job: Job, moments: PeakCandidates, capacity: float, begin: int, most: int
) -> int:
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
