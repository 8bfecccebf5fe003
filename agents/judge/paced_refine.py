"""Descent of plans with a pace: layers that move between stages, and other schedules."""

import math

from des.base.jit import kernel
from des.compiled.many.layout import Real, Whole
from des.compiled.many.paced import Desk, Paces, paced_overflow, paced_time_s
from des.compiled.many.steady import FITS, Job, Plans


@kernel
def paced_refine(
    job: Job, paces: Paces, plans: Plans, counts: Whole, desk: Desk, most: int, times_s: Real
) -> int:
    """Move layers between stages, and change schedules, while that makes plans quicker.

    ``times_s`` (N,) are those of the plans, ``inf`` where they do not fit; they are overwritten, as
    are splits and schedules. A plan takes the best of its neighbours, 1, 2 or 4 layers from any
    stage to any other, or another schedule, until none is quicker or ``most`` were judged.
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
    """Move layers from one stage to another, if the first keeps one; returns whether it did."""
    begin = plans.end_layer[plan, source - 1] if source > 0 else 0
    if plans.end_layer[plan, source] - begin <= step:
        return False
    for stage in range(min(source, target), max(source, target)):
        plans.end_layer[plan, stage] += -step if source < target else step
    return True
