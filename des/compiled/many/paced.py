"""Pipelines of static schedules simulated straight from their paces, each with its own count.

A pace is the number of forwards with which a stage begins, and of microbatches by which its weight
gradients stay behind its input gradients. So no table of operations is needed, and every plan of a
batch may have its own number of microbatches, as searches need over thousands of microbatches, up
to 64 stages and groups of domains with uneven shares. Plans are those of
`des.compiled.many.steady`;
times are those of `des.simulate` to the last bit, and so is the memory.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from des.base.arithmetic import held_bytes
from des.base.jit import lean_kernel
from des.compiled.many.activations import ACTIVATION, PARAMETERS, WEIGHT_INPUT
from des.compiled.many.layout import Real
from des.compiled.many.paced_desk import Desk, earliest_end_s, write_tails
from des.compiled.many.steady import FITS, Job, Plans, slowest_update_s
from des.schedules import pace_of

_ROUNDING = 1.0 - 1e-9
"""Sums of the same terms in another order differ by less."""

WHOLE = -1.0
"""Pace of weight gradients of schedules that do the backward pass in one piece."""


class Paces(NamedTuple):
    """Paces of schedules by number, see `des.schedules.Pace`; ``behind`` may be `WHOLE`."""

    depth: Real
    behind: Real
    ahead: Real


def paces_of(schedules: Sequence[str]) -> Paces:
    """Return the paces of schedules.

    Raises
    ------
    ValueError
        If one of them has no pace, see `des.schedules.pace_of`.
    """
    found = [pace_of(name) for name in schedules]
    return Paces(
        depth=np.array([one.depth for one in found]),
        behind=np.array([WHOLE if one.behind is None else one.behind for one in found]),
        ahead=np.array([float(one.ahead) for one in found]),
    )


@lean_kernel
def paced_overflow(job: Job, paces: Paces, plans: Plans, plan: int, count: int) -> float:
    """Memory that a plan lacks, as a share of what the domain has that lacks most; or `FITS`."""
    begin, most = 0, FITS
    num_stages, schedule = plans.num_stages[plan], plans.schedule[plan]
    for stage in range(num_stages):
        end = plans.end_layer[plan, stage]
        moments = stage_moments(paces, schedule, num_stages, stage, count)
        needed = moments_bytes(job, moments, begin, end)
        capacity = job.capacity_bytes[plans.domain[plan, stage]]
        if needed > capacity:
            most = max(most, needed / capacity - 1.0)
        begin = end
    return most


class Moments(NamedTuple):
    """Microbatches that a stage holds at the moments at which its memory may be fullest.

    Every forward pass adds to all that is held; while input gradients drain, memory is linear
    between three moments, so one of these is the worst. Each has a number of whole microbatches,
    and one of halved ones.
    """

    whole_0: int
    halved_0: int
    whole_1: int
    halved_1: int
    whole_2: int
    halved_2: int
    halved_3: int


@lean_kernel
def stage_moments(paces: Paces, schedule: int, num_stages: int, stage: int, count: int) -> Moments:
    """Find the fullest moments of a stage."""
    warm_up = num_warm_up(paces, schedule, num_stages - 1 - stage, count)
    first = min(warm_up + 1, count)
    if paces.behind[schedule] == WHOLE:
        return Moments(first, 0, 0, 0, 0, 0, 0)
    behind = num_behind(paces, schedule, stage, count)
    put_off = min(count, behind + 1)
    return Moments(
        first,
        min(count - first, behind),
        first - 1,
        min(count - first + 1, put_off),
        min(first - 1, count - put_off),
        put_off,
        put_off,
    )


@lean_kernel
def moments_bytes(job: Job, moments: Moments, begin: int, end: int) -> float:
    """Memory of the layers from ``begin`` to ``end`` at the worst moment of a stage. [bytes]"""
    sums = job.sums_before
    whole = sums[end, ACTIVATION] - sums[begin, ACTIVATION]
    halved = sums[end, WEIGHT_INPUT] - sums[begin, WEIGHT_INPUT]
    state: float = job.bytes_per_parameter * (sums[end, PARAMETERS] - sums[begin, PARAMETERS])
    peak: float = held_bytes(moments.whole_0, moments.halved_0, whole, halved)
    if moments.halved_3 > 0:
        peak = max(peak, held_bytes(moments.whole_1, moments.halved_1, whole, halved))
        peak = max(peak, held_bytes(moments.whole_2, moments.halved_2, whole, halved))
        peak = max(peak, held_bytes(0, moments.halved_3, whole, halved))
    needed: float = state + peak
    return needed


@lean_kernel
def num_warm_up(paces: Paces, schedule: int, num_later: int, count: int) -> int:
    """Forwards with which a stage begins."""
    num_begun = paces.ahead[schedule] + math.floor(paces.depth[schedule] * num_later)
    return int(min(float(count), num_begun))


@lean_kernel
def num_behind(paces: Paces, schedule: int, stage: int, count: int) -> int:
    """Microbatches by which weight gradients are behind."""
    return int(min(float(count), math.floor(paces.behind[schedule] * stage)))


@lean_kernel
def written_time_s(
    job: Job, paces: Paces, plans: Plans, plan: int, count: int, desk: Desk, limit_s: float
) -> float:
    """Time of one iteration of a plan whose passes are written down; ``inf`` if not below a limit.

    Sweeps over the stages run the passes that are ready, from input to output and back: one
    direction carries activations all the way, the other gradients. [s]
    """
    num_stages, schedule = plans.num_stages[plan], plans.schedule[plan]
    is_halved = paces.behind[schedule] != WHOLE
    for stage in range(num_stages):
        desk.wires[0, stage] = desk.wires[1, stage] = desk.free[stage] = 0.0
        desk.done[stage, 0] = desk.done[stage, 1] = desk.done[stage, 2] = 0
        desk.pace[stage, 0] = num_warm_up(paces, schedule, num_stages - 1 - stage, count)
        desk.pace[stage, 1] = count
        if is_halved:
            desk.pace[stage, 1] = num_behind(paces, schedule, stage, count)
    is_limited = limit_s < math.inf
    if is_limited:
        write_tails(job, plans, plan, desk, is_halved)
    num_left, is_down = num_stages, True
    while num_left > 0:
        num_left = 0
        for place in range(num_stages):
            stage = place if is_down else num_stages - 1 - place
            if desk.done[stage, 1] == count:
                continue
            if _advance(job, plans, plan, stage, desk, count, is_halved):
                num_left += 1
            if is_limited:
                end_s = earliest_end_s(desk, stage, count, is_halved)
                if end_s * _ROUNDING >= limit_s:
                    return math.inf
        is_down = not is_down
    longest_s = 0.0
    for stage in range(num_stages):
        while is_halved and desk.done[stage, 2] < count:
            desk.free[stage] += desk.passes[stage, 3]
            desk.done[stage, 2] += 1
        longest_s = max(longest_s, desk.free[stage])
    whole_s: float = longest_s + slowest_update_s(job, plans, plan)
    return whole_s


@lean_kernel
def write_passes(job: Job, plans: Plans, plan: int, desk: Desk) -> None:
    """Write down the times of the passes of a plan's stages. [s]"""
    begin, work = 0, job.work_before
    for stage in range(plans.num_stages[plan]):
        domain, end = plans.domain[plan, stage], plans.end_layer[plan, stage]
        for kind in range(4):
            flops = work[end, 4 * domain + kind] - work[begin, 4 * domain + kind]
            desk.passes[stage, kind] = flops / job.rate_flops_per_s[domain]
        begin = end


@lean_kernel
def _advance(
    job: Job, plans: Plans, plan: int, stage: int, desk: Desk, count: int, is_halved: bool
) -> bool:
    """Run the passes of a stage that are ready; return whether some wait for other stages.

    Its neighbours do not run meanwhile. Weight gradients behind the last input gradient are left.
    """
    last, done, passes = plans.num_stages[plan] - 1, desk.done, desk.passes
    num_forward, num_back, num_weight = done[stage, 0], done[stage, 1], done[stage, 2]
    has_forward = done[stage - 1, 0] if stage > 0 else count
    has_back = done[stage + 1, 1] if stage < last else count
    forward_s, weight_s = passes[stage, 0], passes[stage, 3]
    back_s = passes[stage, 2] if is_halved else passes[stage, 1]
    warm_up, behind = desk.pace[stage, 0], desk.pace[stage, 1]
    free_s, down_s, up_s = desk.free[stage], desk.wires[0, stage], desk.wires[1, stage]
    here, above, below = plans.domain[plan, stage], 0, 0
    if stage > 0:
        above = plans.domain[plan, stage - 1]
    if stage < last:
        below = plans.domain[plan, stage + 1]
    while num_back < count:
        if num_weight < num_back - behind:
            free_s += weight_s
            num_weight += 1
        elif num_forward < min(count, warm_up + num_back + 1):
            if num_forward >= has_forward:
                break
            if stage > 0:
                free_s = max(free_s, desk.arrivals[0, stage, num_forward])
            free_s += forward_s
            if stage < last:
                down_s = (max(free_s, down_s) + job.overhead_s) + job.wire_s[here, below]
                arrival_s = down_s + job.latency_s[here, below]
                desk.arrivals[0, stage + 1, num_forward] = arrival_s
            num_forward += 1
        else:
            if num_back >= has_back:
                break
            if stage < last:
                free_s = max(free_s, desk.arrivals[1, stage, num_back])
            free_s += back_s
            if stage > 0:
                up_s = (max(free_s, up_s) + job.overhead_s) + job.wire_s[here, above]
                desk.arrivals[1, stage - 1, num_back] = up_s + job.latency_s[here, above]
            num_back += 1
    done[stage, 0], done[stage, 1], done[stage, 2] = num_forward, num_back, num_weight
    desk.free[stage], desk.wires[0, stage], desk.wires[1, stage] = free_s, down_s, up_s
    return bool(num_back < count)


def paced_table(num: int, most_stages: int) -> Plans:
    """Make room for plans."""
    domain, end_layer = np.zeros((2, num, most_stages), dtype=np.int32)
    num_stages, schedule = np.zeros((2, num), dtype=np.int32)
    return Plans(num_stages, schedule, domain, end_layer)
