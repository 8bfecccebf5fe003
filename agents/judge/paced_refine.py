"""Plans of schedules with a pace made better: layers that move between stages, other schedules."""

import math

from des.base.jit import lean_kernel
from des.compiled.many.desk import STAGE_ROWS, Desk, desk_rows, write_plan
from des.compiled.many.layout import Real
from des.compiled.many.paced import CountedPlans, paced_overflow
from des.compiled.many.paced_bound import paced_least_s
from des.compiled.many.recurrence import plan_time_s
from des.compiled.many.steady import FITS, Plans

_MOST_FOR_ALL_MOVES, _NUM_BUSIEST = 8, 4
"""Most stages that all give layers, and how many of more do."""


@lean_kernel
def paced_refine(
    batch: CountedPlans, desk: Desk, most: int, times_s: Real, any_schedule: bool
) -> int:
    """Move layers between stages, and change schedules if they may, while plans get quicker.

    ``times_s`` (N,) are those of the plans, ``inf`` where they do not fit; they are overwritten, as
    are splits and schedules. A plan takes any neighbour that is quicker, 1, 2 or 4 layers from any
    stage to any other, or another schedule, until none is or it has looked at ``most``.
    Of more than 8 stages only the busiest 4 give layers. Returns how many plans were judged.
    """
    num_judged = 0
    for plan in range(batch.counts.size):
        num_judged += _refine(batch, plan, desk, most, times_s, any_schedule)
    return num_judged


@lean_kernel
def _refine(
    batch: CountedPlans, plan: int, desk: Desk, most: int, times_s: Real, any_schedule: bool
) -> int:
    plans = batch.plans
    num_judged, num_stages = 0, plans.num_stages[plan]
    is_better = num_stages > 1
    while is_better and num_judged < most:
        is_better = False
        best = plans.schedule[plan]
        for schedule in range(batch.paces.depth.size if any_schedule else 0):
            if schedule == best:
                continue
            plans.schedule[plan] = schedule
            found_s = _score(batch, plan, desk, times_s[plan])
            num_judged += 1
            if found_s < times_s[plan]:
                is_better, best, times_s[plan] = True, schedule, found_s
        plans.schedule[plan] = best
        _write_work(batch, plan, desk)
        gives = True
        for move in range(3 * num_stages * num_stages):
            step, pair = 1 << move // (num_stages * num_stages), move % (num_stages * num_stages)
            source, target = pair // num_stages, pair % num_stages
            if target == 0:
                gives = num_stages <= _MOST_FOR_ALL_MOVES or _is_busy(
                    desk.work_s, num_stages, source
                )
            if source == target or not gives or not _move(plans, plan, source, target, step):
                continue
            found_s = _score(batch, plan, desk, times_s[plan])
            num_judged += 1
            if found_s < times_s[plan]:
                is_better, times_s[plan] = True, found_s
            else:
                _move(plans, plan, target, source, step)
            if num_judged >= most:
                break
    return num_judged


@lean_kernel
def _write_work(batch: CountedPlans, plan: int, desk: Desk) -> None:
    """Write the work of every stage on a microbatch. [s]"""
    write_plan(desk_rows(desk), 0, batch.job, batch.plans, plan)
    for stage in range(batch.plans.num_stages[plan]):
        at = stage * STAGE_ROWS
        desk.work_s[stage] = desk.stages[at] + desk.stages[at + 1]


@lean_kernel
def _is_busy(work_s: Real, num_stages: int, stage: int) -> bool:
    """Whether a stage is one of the busiest."""
    num_busier = 0
    for other in range(num_stages):
        if work_s[other] > work_s[stage] or (work_s[other] == work_s[stage] and other < stage):
            num_busier += 1
    return num_busier < _NUM_BUSIEST


@lean_kernel
def _score(batch: CountedPlans, plan: int, desk: Desk, limit_s: float) -> float:
    """Time of an iteration of a plan; ``inf`` where it does not fit, or takes no less than a limit.

    [s]
    """
    if paced_least_s(batch, plan, desk) >= limit_s or paced_overflow(batch, plan) != FITS:
        return math.inf
    time_s: float = plan_time_s(batch, plan, desk, limit_s)
    return time_s


@lean_kernel
def _move(plans: Plans, plan: int, source: int, target: int, step: int) -> bool:
    """Move layers from one stage to another, if the first keeps one; whether that is done."""
    begin = plans.end_layer[plan, source - 1] if source > 0 else 0
    if plans.end_layer[plan, source] - begin <= step:
        return False
    for stage in range(min(source, target), max(source, target)):
        plans.end_layer[plan, stage] += -step if source < target else step
    return True
