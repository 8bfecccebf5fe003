"""Looking ahead from proposed orders: neighbours of the best ones, then splits and depths of them.

All of it is one call, so a few thousand plans are a few milliseconds. Plans that cannot be better
than what is there already, see `agents.kernels.quick_fill.least_time_s`, are not judged.
"""

import math
from typing import NamedTuple

import numpy as np

from agents.kernels.candidates import (
    Aim,
    Near,
    Pool,
    copy_plan,
    cost_of,
    is_new,
    judge,
    keep,
    nth_cost,
)
from agents.kernels.layout import Small
from agents.kernels.proposal_splits import AT_REST, MOVING, near_splits, take_splits
from agents.kernels.quick_fill import Tools, fill_plan, least_level_s
from agents.kernels.steady import Plans
from des.kernels.jit import kernel

PROPOSED, ORDERS, SPLITS = range(3)
"""What a look-ahead begins with: proposed orders, orders near the best, their splits and depths."""


class Limits(NamedTuple):
    """How far a look-ahead goes: on from the ``width`` best orders, then ``num_refined`` plans.

    ``order_budget`` and ``budget`` are plans that are judged by the end of each, give or take one
    round. Plans that cost ``most_behind`` more than the best are not refined.
    """

    width: int
    num_refined: int
    order_budget: int
    budget: int
    most_behind: float


@kernel
def explore(
    tools: Tools,
    aim: Aim,
    pool: Pool,
    near: Near,
    orders: Small,
    sizes: Small,
    limits: Limits,
    phase: int,
) -> None:
    """Judge proposed orders (N, K) under all schedules, and go on from the best.

    The best of an order's schedules is kept; its neighbours are judged under that. Only the
    ``width`` best orders are gone on from, but neighbours are kept that may be refined. When that
    is done, or the budget for orders is spent, layers of the best plans move between stages and to
    other schedules.
    """
    given = 0
    while True:
        if phase == PROPOSED:
            num, given = _proposed(tools, pool, near, orders, sizes, given)
            if num > 0:
                pool.counts[1] += judge(tools, aim, near, num)
                _keep_best_schedules(pool, near, num)
            if given == sizes.size:
                phase = ORDERS
        elif phase == ORDERS:
            at = _next_order(pool, nth_cost(pool, limits.width))
            limit = nth_cost(pool, max(limits.width, limits.num_refined))
            is_full = 2 * pool.counts[2] > pool.keys.size
            if at < 0 or is_full or pool.counts[1] >= limits.order_budget:
                phase = SPLITS
                last = nth_cost(pool, limits.num_refined) if limits.num_refined > 0 else -math.inf
                for plan in range(pool.counts[0]):
                    pool.state[plan] = MOVING if pool.costs[plan] <= last else AT_REST
                continue
            pool.state[at] = 1
            num = _near_orders(tools, aim, pool, near, at, limit)
            pool.counts[1] += judge(tools, aim, near, num)
            for plan in range(num):
                if near.costs[plan] < limit:
                    keep(pool, near, plan)
        else:
            if pool.counts[1] >= limits.budget:
                break
            num = near_splits(tools, pool, near, limits.most_behind)
            if num < 0:
                break
            pool.counts[1] += judge(tools, aim, near, num)
            take_splits(pool, near, num)


@kernel
def _proposed(
    tools: Tools, pool: Pool, near: Near, orders: Small, sizes: Small, given: int
) -> tuple[int, int]:
    """Write the next proposed orders that are new, filled, under all schedules.

    Returns how many plans these are, and how many orders are dealt with.
    """
    num_schedules = (near.starts.size - 1) // tools.programs.most_stages
    plans, num = near.plans, 0
    while given < sizes.size and num + num_schedules <= near.costs.size:
        plans.num_stages[num] = sizes[given]
        for stage in range(sizes[given]):
            plans.domain[num, stage] = orders[given, stage]
        if sizes[given] > 0 and is_new(pool, plans, num):
            first = num
            for schedule in range(num_schedules):
                copy_plan(plans, num, plans, first)
                plans.schedule[num] = schedule
                near.owner[num], near.limits[num] = given, math.inf
                if fill_plan(tools.job, tools.programs, plans, num, near.weights) < math.inf:
                    num += 1
        given += 1
    return num, given


@kernel
def _keep_best_schedules(pool: Pool, near: Near, num: int) -> None:
    """Keep the best of the plans of each order."""
    begin = 0
    while begin < num:
        best = end = begin
        while end < num and near.owner[end] == near.owner[begin]:
            best = end if near.costs[end] < near.costs[best] else best
            end += 1
        if near.costs[best] < math.inf:
            keep(pool, near, best)
        begin = end


@kernel
def _next_order(pool: Pool, limit: float) -> int:
    """The best plan of no more than a cost that was not gone on from; -1 where there is none."""
    best, least = -1, math.inf
    for at in range(pool.counts[0]):
        if pool.state[at] == 0 and pool.costs[at] <= limit and pool.costs[at] < least:
            best, least = at, pool.costs[at]
    return best


@kernel
def _near_orders(tools: Tools, aim: Aim, pool: Pool, near: Near, at: int, limit: float) -> int:
    """Write the new orders one change away, filled, and return how many.

    A domain moves, two change places, a part is turned round, another domain takes the place of
    one, one is left out, or one more comes in.
    """
    order, size = pool.plans.domain[at], pool.plans.num_stages[at]
    num_domains = aim.can_follow.shape[0]
    is_used = np.zeros(num_domains, dtype=np.bool_)
    for stage in range(size):
        is_used[order[stage]] = True
    num = 0
    for one in range(size):
        for place in range(size - 1):  # out of its place, and in again elsewhere
            row = _without(near.plans, num, order, size, one)
            _insert(row, size - 1, place + (1 if place >= one else 0), order[one])
            num = _filled(tools, aim, pool, near, at, limit, num, size)
        if size > 1:
            _without(near.plans, num, order, size, one)
            num = _filled(tools, aim, pool, near, at, limit, num, size - 1)
        for end in range(one + 1, size):
            row = near.plans.domain[num]
            row[:size] = order[:size]
            row[one], row[end] = order[end], order[one]
            num = _filled(tools, aim, pool, near, at, limit, num, size)
            row = near.plans.domain[num]
            row[:size] = order[:size]
            row[one : end + 1] = order[one : end + 1][::-1]
            num = _filled(tools, aim, pool, near, at, limit, num, size)
        for other in range(num_domains):
            if not is_used[other]:
                row = near.plans.domain[num]
                row[:size] = order[:size]
                row[one] = other
                num = _filled(tools, aim, pool, near, at, limit, num, size)
    for other in range(num_domains if size < tools.programs.most_stages else 0):
        for place in range(0 if is_used[other] else size + 1):
            row = near.plans.domain[num]
            row[:size] = order[:size]
            _insert(row, size, place, other)
            num = _filled(tools, aim, pool, near, at, limit, num, size + 1)
    return num


@kernel
def _without(plans: Plans, to: int, order: Small, size: int, one: int) -> Small:
    row: Small = plans.domain[to]
    for stage in range(size):
        if stage != one:
            row[stage - (1 if stage > one else 0)] = order[stage]
    return row


@kernel
def _insert(row: Small, size: int, place: int, domain: int) -> None:
    for stage in range(size, place, -1):
        row[stage] = row[stage - 1]
    row[place] = domain


@kernel
def _filled(
    tools: Tools, aim: Aim, pool: Pool, near: Near, at: int, limit: float, num: int, size: int
) -> int:
    """Split the layers of a neighbour if it is new, can be and may cost less than a limit.

    Returns the place of the next.
    """
    plans = near.plans
    plans.num_stages[num] = size
    plans.schedule[num] = pool.plans.schedule[at]
    for stage in range(1, size):
        if not aim.can_follow[plans.domain[num, stage - 1], plans.domain[num, stage]]:
            return num
    if not is_new(pool, plans, num):
        return num
    least_s = least_level_s(tools.job, tools.programs, plans, num, near.weights)
    if cost_of(aim, plans, num, least_s) >= limit:
        return num
    near.limits[num] = limit
    level_s = fill_plan(tools.job, tools.programs, plans, num, near.weights)
    return num + (1 if level_s < math.inf else 0)
