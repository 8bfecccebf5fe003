"""Pipelines of schedules with a pace: their layers split and judged in one go."""

import math

from agents.judge.paced_splits import LayerTimes, fill_as
from des.base.jit import lean_kernel
from des.compiled.many.layout import Real, Whole
from des.compiled.many.paced import Desk, Paces, paced_time_s
from des.compiled.many.paced_bound import paced_least_s
from des.compiled.many.steady import FITS, Job, Plans


@lean_kernel
def paced_filled_scores(
    job: Job,
    times: LayerTimes,
    paces: Paces,
    plans: Plans,
    counts: Whole,
    per_order: int,
    desk: Desk,
    slack: float,
    best_s: float,
    times_s: Real,
    overflow: Real,
) -> None:
    """Split the layers of plans as `paced_fill` does and judge them as `paced_scores` does."""
    limit_s = slack * best_s
    for first in range(0, plans.num_stages.size, per_order):
        known = (-1, -1)
        for plan in range(first, first + per_order):
            count, num_stages = counts[plan], plans.num_stages[plan]
            times_s[plan], overflow[plan] = math.inf, FITS
            known, overflow[plan] = fill_as(job, times, paces, plans, plan, count, known)
            if overflow[plan] != FITS:
                continue
            if num_stages > 1 and paced_least_s(job, paces, plans, plan, count, desk) >= limit_s:
                continue
            times_s[plan] = paced_time_s(job, paces, plans, plan, count, desk, math.inf)
            if num_stages > 1:
                limit_s = min(limit_s, slack * times_s[plan])
