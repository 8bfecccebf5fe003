"""Levels of time up to which the stages of pipelines are filled with layers, several at a time."""

from typing import NamedTuple

import numpy as np

from des.base.jit import inlined, lean_kernel
from des.compiled.many.layout import Flags, Real, Small, Whole
from des.compiled.many.paced import WHOLE, Moments, Paces, moments_bytes, stage_moments
from des.compiled.many.steady import Job, Plans

_PRECISION = 2.0**-8
_STEP = 1.03

_AT_ONCE = 4
"""Plans that are filled in turn: while a processor waits for a quotient of one, it divides for the
next."""


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


class FillDesk(NamedTuple):
    """Room to fill N plans of at most S stages, W at a time.

    ``waiting`` (N,) are plans to fill, and ``leader`` (N,) those whose split each has too. Of the
    plans in work, ``plan`` (W,), -1 for none: whether their passes are halved, ``kind``, where the
    next stage begins, ``begin``, -1 behind a stage that holds nothing, and ``is_bounded`` once a
    level is known at which all layers have room (W,). ``levels_s`` (W, 3) are the level that is
    tried, one that is too low and one that is not; ``steps`` (W,) the factor to the next one;
    ``around_s`` (W, 2) is before a stage's first pass and behind its last one; ``ends`` (W, S)
    layers behind stages. [s]
    """

    waiting: Whole
    leader: Whole
    plan: Whole
    kind: Whole
    begin: Whole
    is_bounded: Flags
    levels_s: Real
    steps: Real
    around_s: Real
    ends: Small


def new_fill_desk(num_plans: int, most_stages: int) -> FillDesk:
    """Make room."""
    waiting, leader = np.full((2, num_plans), -1)
    plan, kind, begin = np.full((3, _AT_ONCE), -1)
    return FillDesk(
        waiting=waiting,
        leader=leader,
        plan=plan,
        kind=kind,
        begin=begin,
        is_bounded=np.zeros(_AT_ONCE, dtype=np.bool_),
        levels_s=np.zeros((_AT_ONCE, 3)),
        steps=np.zeros(_AT_ONCE),
        around_s=np.zeros((_AT_ONCE, 2)),
        ends=np.zeros((_AT_ONCE, most_stages), dtype=np.int32),
    )


@lean_kernel
def fill_waiting(
    job: Job,
    times: LayerTimes,
    paces: Paces,
    plans: Plans,
    counts: Whole,
    desk: FillDesk,
    num_waiting: int,
    in_memory: bool,
) -> None:
    """Fill waiting plans, which links join, up to the least level that holds all layers, about.

    Some level must; where memory counts it is known that one does.
    """
    num_begun = num_working = 0
    while num_begun < num_waiting or num_working > 0:
        for place in range(desk.plan.size):
            if desk.plan[place] < 0 and num_begun < num_waiting:
                plan = desk.waiting[num_begun]
                num_begun, num_working = num_begun + 1, num_working + 1
                low_s = even_level_s(times, paces, plans, plan, counts[plan])
                desk.plan[place], desk.is_bounded[place] = plan, False
                desk.kind[place] = 0 if paces.behind[plans.schedule[plan]] == WHOLE else 1
                desk.levels_s[place, 0] = desk.levels_s[place, 2] = low_s * _STEP
                desk.levels_s[place, 1], desk.steps[place] = low_s, _STEP
        _fill_levels(job, times, paces, plans, counts, desk, in_memory)
        for place in range(desk.plan.size):
            if desk.plan[place] >= 0 and not _next_level(plans, desk, place, times.all_s.shape[1]):
                desk.plan[place] = -1
                num_working -= 1


@lean_kernel
def _next_level(plans: Plans, desk: FillDesk, place: int, num_ends: int) -> bool:
    """Keep what a level has filled, and choose the next one; returns whether one is needed."""
    plan, levels_s = desk.plan[place], desk.levels_s[place]
    if desk.begin[place] == num_ends - 1:
        desk.is_bounded[place], levels_s[2] = True, levels_s[0]
        for stage in range(plans.num_stages[plan]):
            plans.end_layer[plan, stage] = desk.ends[place, stage]
    elif desk.is_bounded[place]:
        levels_s[1] = levels_s[0]
    else:
        desk.steps[place] *= desk.steps[place]
        levels_s[1], levels_s[2] = levels_s[2], levels_s[2] * desk.steps[place]
        levels_s[0] = levels_s[2]
        return True
    levels_s[0] = (levels_s[1] + levels_s[2]) / 2.0
    return bool(levels_s[2] - levels_s[1] > _PRECISION * levels_s[2])


@lean_kernel
def _fill_levels(
    job: Job,
    times: LayerTimes,
    paces: Paces,
    plans: Plans,
    counts: Whole,
    desk: FillDesk,
    in_memory: bool,
) -> None:
    """Fill the plans in work up to their levels, stage by stage."""
    most_stages = 0
    for place in range(desk.plan.size):
        desk.begin[place] = -1
        if desk.plan[place] >= 0:
            desk.begin[place] = 0
            desk.around_s[place, 0] = desk.around_s[place, 1] = 0.0
            most_stages = max(most_stages, plans.num_stages[desk.plan[place]])
    for stage in range(most_stages):
        for place in range(desk.plan.size):
            if desk.begin[place] >= 0 and stage < plans.num_stages[desk.plan[place]]:
                _fill_stage(job, times, paces, plans, counts, desk, place, stage, in_memory)


@inlined
def _fill_stage(
    job: Job,
    times: LayerTimes,
    paces: Paces,
    plans: Plans,
    counts: Whole,
    desk: FillDesk,
    place: int,
    stage: int,
    in_memory: bool,
) -> None:
    """Give a stage what fits below the level of its plan."""
    plan, kind, begin = desk.plan[place], desk.kind[place], desk.begin[place]
    num_stages, count = plans.num_stages[plan], counts[plan]
    domain = plans.domain[plan, stage]
    outside_s, back_s = desk.around_s[place, 0], desk.around_s[place, 1]
    if stage > 0:
        before = plans.domain[plan, stage - 1]
        outside_s += times.hop_s[before, domain]
        back_s += times.hop_s[domain, before]
    left_s = (desk.levels_s[place, 0] - outside_s) / count
    most = times.all_s.shape[1] - num_stages + stage
    end = _end_below(times, kind, domain, begin, most, left_s, back_s / count)
    if in_memory:
        moments = stage_moments(paces, plans.schedule[plan], num_stages, stage, count)
        end = last_in_memory(job, moments, job.capacity_bytes[domain], begin, end)
    if end == begin:
        desk.begin[place] = -1
        return
    tail_s = times.tail_s[kind, domain]
    desk.around_s[place, 0] = outside_s + (times.head_s[domain, end] - times.head_s[domain, begin])
    desk.around_s[place, 1] = back_s + (tail_s[end] - tail_s[begin])
    desk.ends[place, stage] = desk.begin[place] = end


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

    Of what is ``left_s``, ``back_s`` are behind its last pass, where weight gradients may be. [s]
    """
    own_s = times.work_s[kind, domain]
    end = _last_below(own_s, begin, most, own_s[begin] + left_s - back_s)
    if kind == 1:
        all_s = times.all_s[domain]
        end = _last_below(all_s, begin, end, all_s[begin] + left_s)
    return end


@lean_kernel
def even_level_s(times: LayerTimes, paces: Paces, plans: Plans, plan: int, count: int) -> float:
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
def last_in_memory(job: Job, moments: Moments, capacity: float, begin: int, most: int) -> int:
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
