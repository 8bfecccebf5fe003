"""Splits and depths of plans that were found, made better step by step."""

import math

from agents.judge.candidates import ExploredPlans, Neighbourhood, copy_plan
from agents.judge.quick_fill import SearchContext
from des.base.jit import kernel
from des.compiled.many.layout import ZERO

MOVING, DEEPENING, AT_REST = range(3)
"""States of a plan: its layers move under the same schedule; no move helps, so it takes other
schedules; none of these helps either."""

_NUM_STEPS = 4
"""1, 2, 4 and 8 layers move at once."""

_MOST_TOGETHER = 4


@kernel
def near_splits(
    tools: SearchContext, pool: ExploredPlans, near: Neighbourhood, most_behind: float
) -> int:
    """Write what lies next to the best few plans that are not at rest; -1 where all are.

    Next to a plan lies one move of layers under the same schedule. If none of these was better, so
    do the same split under other schedules, and moves of one layer under the next ones. Plans that
    cost ``most_behind`` more than the best one are left alone.
    """
    num_schedules = (near.starts.size - 1) // tools.programs.most_stages
    num, last, last_cost = ZERO, -1, -math.inf
    most_cost = math.inf
    for plan in range(pool.counts[0]):
        most_cost = min(most_cost, pool.costs[plan] + most_behind)
    for together in range(_MOST_TOGETHER):
        at, least = ZERO - 1, math.inf
        for plan in range(pool.counts[0]):
            cost = pool.costs[plan]
            is_behind = cost > last_cost or (cost == last_cost and plan > last)
            if pool.state[plan] != AT_REST and is_behind and cost < min(least, most_cost):
                at, least = plan, cost
        if at < 0:
            return -1 if together == 0 else num
        size, begin = pool.plans.num_stages[at], num
        if num > 0 and num + num_schedules + _NUM_STEPS * size * (size - 1) > near.costs.size:
            return num
        last, last_cost = at, least
        own = ZERO + pool.plans.schedule[at]
        if pool.state[at] == MOVING:
            num = _moves(tools, pool, near, at, own, ZERO + _NUM_STEPS, num)
            pool.state[at] += 1 if num == begin else 0
            continue
        for schedule in range(num_schedules):
            if schedule != own and num < near.costs.size:
                copy_plan(near.plans, num, pool.plans, at)
                near.plans.schedule[num] = schedule
                near.owner[num], near.limits[num] = at, pool.costs[at]
                num += 1
            if abs(schedule - own) == 1:
                num = _moves(tools, pool, near, at, schedule, ZERO + 1, num)
        pool.state[at] += 1 if num == begin else 0
    return num


@kernel
def take_splits(pool: ExploredPlans, near: Neighbourhood, num: int) -> None:
    """Replace plans by their best judged neighbours; one without advances to its next state."""
    begin = 0
    while begin < num:
        at, best, end = near.owner[begin], begin, begin
        while end < num and near.owner[end] == at:
            best = end if near.costs[end] < near.costs[best] else best
            end += 1
        if near.costs[best] < pool.costs[at]:
            copy_plan(pool.plans, at, near.plans, best)
            pool.costs[at], pool.times_s[at] = near.costs[best], near.times_s[best]
            pool.state[at] = MOVING
        else:
            pool.state[at] += 1
        begin = end


@kernel
def _moves(
    tools: SearchContext,
    pool: ExploredPlans,
    near: Neighbourhood,
    at: int,
    schedule: int,
    num_steps: int,
    num: int,
) -> int:
    """Write the plans whose layers lie one move away behind the first ``num``; returns how many.

    Those of which the stage that gets more layers takes as long as the plan now are left out.
    """
    source, size, limit_s = pool.plans, pool.plans.num_stages[at], pool.times_s[at]
    sums, count, work = tools.job.sums_before, tools.job.num_microbatches, tools.figures.work
    ends, rates = source.end_layer, tools.job.rate_flops_per_s
    mean_flops = work[work.size - 1] / (work.size - 1)
    for taker in range(size):
        begin, end = ends[at, taker - 1] if taker > 0 else 0, ends[at, taker]
        flops = sums[end, 0] + sums[end, 1] - sums[begin, 0] - sums[begin, 1]
        for power in range(num_steps):
            step = 1 << power
            least_flops = flops + 0.5 * step * mean_flops  # layers differ
            if least_flops * count >= limit_s * rates[source.domain[at, taker]]:
                break
            for giver in range(size):
                own = ends[at, giver] - (ends[at, giver - 1] if giver > 0 else 0)
                if giver == taker or own <= step:
                    continue
                if num == near.costs.size:
                    return num
                copy_plan(near.plans, num, source, at)
                near.plans.schedule[num] = schedule
                near.owner[num], near.limits[num] = at, pool.costs[at]
                change = step if taker < giver else -step
                for stage in range(min(giver, taker), max(giver, taker)):
                    near.plans.end_layer[num, stage] += change
                num += 1
    return num
