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
from des.compiled.many.layout import Real, Whole
from des.compiled.many.steady import FITS, Job, Plans, slowest_update_s
from des.schedules import pace_of

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


class Desk(NamedTuple):
    """Room for the simulation of one plan of at most S stages and M microbatches.

    ``passes`` (S, 4) are times of F, B, D and W; ``arrivals`` (2, S, M) times at which activations
    and gradients arrive; ``wires`` (2, S) times from which they are free; ``free`` (S,) those of
    stages; ``done`` (S, 3) counts of F, B or D, and W; ``work_s`` (S,) is for the work of stages.
    """

    passes: Real
    arrivals: Real
    wires: Real
    free: Real
    done: Whole
    work_s: Real


def new_desk(most_stages: int, most_microbatches: int) -> Desk:
    """Make room."""
    return Desk(
        passes=np.zeros((most_stages, 4)),
        arrivals=np.zeros((2, most_stages, most_microbatches)),
        wires=np.zeros((2, most_stages)),
        free=np.zeros(most_stages),
        done=np.zeros((most_stages, 3), dtype=np.int64),
        work_s=np.zeros(most_stages),
    )


@lean_kernel
def paced_overflow(job: Job, paces: Paces, plans: Plans, plan: int, count: int) -> float:
    """Memory that a plan lacks, as a share of what the domain has that lacks most; or `FITS`."""
    begin, most = 0, FITS
    for stage in range(plans.num_stages[plan]):
        end = plans.end_layer[plan, stage]
        needed = paced_bytes(job, paces, plans, plan, stage, begin, end, count)
        capacity = job.capacity_bytes[plans.domain[plan, stage]]
        if needed > capacity:
            most = max(most, needed / capacity - 1.0)
        begin = end
    return most


@lean_kernel
def paced_bytes(
    job: Job, paces: Paces, plans: Plans, plan: int, stage: int, begin: int, end: int, count: int
) -> float:
    """Memory of the layers from ``begin`` to ``end`` at the worst moment of a stage. [bytes]

    While forwards begin, more is held of everything with each; while input gradients drain, what
    is held follows lines between three moments, so one of those is the worst.
    """
    sums, schedule = job.sums_before, plans.schedule[plan]
    whole = sums[end, ACTIVATION] - sums[begin, ACTIVATION]
    halved = sums[end, WEIGHT_INPUT] - sums[begin, WEIGHT_INPUT]
    state: float = job.bytes_per_parameter * (sums[end, PARAMETERS] - sums[begin, PARAMETERS])
    warm_up = num_warm_up(paces, schedule, plans.num_stages[plan] - 1 - stage, count)
    first = min(warm_up + 1, count)
    if paces.behind[schedule] == WHOLE:
        held: float = held_bytes(first, 0, whole, halved)
        return state + held
    behind = num_behind(paces, schedule, stage, count)
    put_off = min(count, behind + 1)
    peak: float = held_bytes(first, min(count - first, behind), whole, halved)
    peak = max(peak, held_bytes(first - 1, min(count - first + 1, put_off), whole, halved))
    peak = max(peak, held_bytes(min(first - 1, count - put_off), put_off, whole, halved))
    peak = max(peak, held_bytes(0, put_off, whole, halved))
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
def paced_time_s(job: Job, paces: Paces, plans: Plans, plan: int, count: int, desk: Desk) -> float:
    """Time of one iteration of a plan, its update included. [s]"""
    num_stages, schedule = plans.num_stages[plan], plans.schedule[plan]
    write_passes(job, plans, plan, desk)
    is_halved = paces.behind[schedule] != WHOLE
    num_left = num_stages
    while num_left > 0:
        num_left = 0
        for stage in range(num_stages):
            warm_up = num_warm_up(paces, schedule, num_stages - 1 - stage, count)
            behind = num_behind(paces, schedule, stage, count) if is_halved else 0
            if _advance(job, plans, plan, stage, desk, count, warm_up, behind, is_halved):
                num_left += 1
    longest_s = 0.0
    for stage in range(num_stages):
        longest_s = max(longest_s, desk.free[stage])
    whole_s: float = longest_s + slowest_update_s(job, plans, plan)
    return whole_s


@lean_kernel
def write_passes(job: Job, plans: Plans, plan: int, desk: Desk) -> None:
    """Write down the passes of a plan's stages; nothing is done yet."""
    begin, work = 0, job.work_before
    for stage in range(plans.num_stages[plan]):
        domain, end = plans.domain[plan, stage], plans.end_layer[plan, stage]
        for kind in range(4):
            flops = work[end, 4 * domain + kind] - work[begin, 4 * domain + kind]
            desk.passes[stage, kind] = flops / job.rate_flops_per_s[domain]
        desk.wires[0, stage] = desk.wires[1, stage] = desk.free[stage] = 0.0
        desk.done[stage, 0] = desk.done[stage, 1] = desk.done[stage, 2] = 0
        begin = end


@lean_kernel
def _advance(
    job: Job,
    plans: Plans,
    plan: int,
    stage: int,
    desk: Desk,
    count: int,
    warm_up: int,
    behind: int,
    is_halved: bool,
) -> bool:
    """Let a stage do what it can; whether something is left that waits for others."""
    done, last = desk.done, plans.num_stages[plan] - 1
    while True:
        num_forward, num_back = done[stage, 0], done[stage, 1]
        if is_halved and done[stage, 2] < num_back - behind:
            desk.free[stage] += desk.passes[stage, 3]
            done[stage, 2] += 1
        elif num_forward < min(count, warm_up + num_back + 1):
            if stage > 0 and num_forward >= done[stage - 1, 0]:
                return True
            start_s = desk.free[stage]
            if stage > 0:
                start_s = max(start_s, desk.arrivals[0, stage, num_forward])
            desk.free[stage] = start_s + desk.passes[stage, 0]
            done[stage, 0] += 1
            if stage < last:
                _send(job, plans, plan, stage, stage + 1, desk, num_forward)
        elif num_back < count:
            if stage < last and num_back >= done[stage + 1, 1]:
                return True
            start_s = desk.free[stage]
            if stage < last:
                start_s = max(start_s, desk.arrivals[1, stage, num_back])
            desk.free[stage] = start_s + desk.passes[stage, 2 if is_halved else 1]
            done[stage, 1] += 1
            if stage > 0:
                _send(job, plans, plan, stage, stage - 1, desk, num_back)
        else:
            while is_halved and done[stage, 2] < count:
                desk.free[stage] += desk.passes[stage, 3]
                done[stage, 2] += 1
            return False


@lean_kernel
def _send(
    job: Job, plans: Plans, plan: int, source: int, target: int, desk: Desk, microbatch: int
) -> None:
    """Send what a stage has just made to a neighbour."""
    here, there = plans.domain[plan, source], plans.domain[plan, target]
    way = 0 if target > source else 1
    taken = max(desk.free[source], desk.wires[way, source])
    left = (taken + job.overhead_s) + job.wire_s[here, there]
    desk.wires[way, source] = left
    arrival = left + job.latency_s[here, there]
    desk.arrivals[way, target, microbatch] = arrival


def paced_table(num: int, most_stages: int) -> Plans:
    """Make room for plans."""
    domain, end_layer = np.zeros((2, num, most_stages), dtype=np.int32)
    num_stages, schedule = np.zeros((2, num), dtype=np.int32)
    return Plans(num_stages, schedule, domain, end_layer)
