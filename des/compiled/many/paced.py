"""Parameters of schedules, and the memory of pipelines that keep them.

A pace is the number of forwards with which a stage begins, and of microbatches by which its weight
gradients stay behind its input gradients. So no table of operations is needed, and every plan of a
batch may have its own number of microbatches, as searches need over thousands of microbatches, up
to 64 stages and groups of domains with uneven shares. Memory is that of `des.domain_memory`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from des.base.arithmetic import held_bytes
from des.base.jit import lean_kernel
from des.compiled.many.activations import ACTIVATION, PARAMETERS, WEIGHT_INPUT
from des.compiled.many.layout import Real, Whole
from des.compiled.many.steady import FITS, Job, Plans
from des.schedules import pace_of

WHOLE = -1.0
"""Pace of weight gradients of schedules that do the backward pass in one piece."""


class ScheduleParams(NamedTuple):
    """Parameters of schedules by number, see `des.schedules.Pace`; ``behind`` may be `WHOLE`."""

    depth: Real
    behind: Real
    ahead: Real


class CountedPlans(NamedTuple):
    """N plans of a job that are judged together, and the microbatches of each, (N,)."""

    job: Job
    paces: ScheduleParams
    plans: Plans
    counts: Whole


def paces_of(schedules: Sequence[str]) -> ScheduleParams:
    """Return the paces of schedules.

    Raises
    ------
    ValueError
        If one of them has no pace, see `des.schedules.pace_of`.
    """
    found = [pace_of(name) for name in schedules]
    return ScheduleParams(
        depth=np.array([one.depth for one in found]),
        behind=np.array([WHOLE if one.behind is None else one.behind for one in found]),
        ahead=np.array([float(one.ahead) for one in found]),
    )


@lean_kernel
def paced_overflow(batch: CountedPlans, plan: int) -> float:
    """Memory that a plan lacks, as a share of what the domain has that lacks most; or `FITS`."""
    job, plans, begin, most = batch.job, batch.plans, 0, FITS
    for stage in range(plans.num_stages[plan]):
        end = plans.end_layer[plan, stage]
        needed = moments_bytes(job, stage_moments(batch, plan, stage), begin, end)
        capacity = job.capacity_bytes[plans.domain[plan, stage]]
        if needed > capacity:
            most = max(most, needed / capacity - 1.0)
        begin = end
    return most


class PeakCandidates(NamedTuple):
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
def stage_moments(batch: CountedPlans, plan: int, stage: int) -> PeakCandidates:
    """Find the fullest moments of a stage."""
    paces, schedule, count = batch.paces, batch.plans.schedule[plan], batch.counts[plan]
    warm_up = num_warm_up(paces, schedule, batch.plans.num_stages[plan] - 1 - stage, count)
    first = min(warm_up + 1, count)
    if paces.behind[schedule] == WHOLE:
        return PeakCandidates(first, 0, 0, 0, 0, 0, 0)
    behind = num_behind(paces, schedule, stage, count)
    put_off = min(count, behind + 1)
    return PeakCandidates(
        first,
        min(count - first, behind),
        first - 1,
        min(count - first + 1, put_off),
        min(first - 1, count - put_off),
        put_off,
        put_off,
    )


@lean_kernel
def moments_bytes(job: Job, moments: PeakCandidates, begin: int, end: int) -> float:
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
def num_warm_up(paces: ScheduleParams, schedule: int, num_later: int, count: int) -> int:
    """Forwards with which a stage begins."""
    num_begun = paces.ahead[schedule] + math.floor(paces.depth[schedule] * num_later)
    return int(min(float(count), num_begun))


@lean_kernel
def num_behind(paces: ScheduleParams, schedule: int, stage: int, count: int) -> int:
    """Microbatches by which weight gradients are behind."""
    return int(min(float(count), math.floor(paces.behind[schedule] * stage)))


def paced_table(num: int, most_stages: int) -> Plans:
    """Make room for plans."""
    domain, end_layer = np.zeros((2, num, most_stages), dtype=np.int32)
    num_stages, schedule = np.zeros((2, num), dtype=np.int32)
    return Plans(num_stages, schedule, domain, end_layer)
