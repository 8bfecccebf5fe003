"""Looking ahead from proposed orders: neighbours of the best ones, then splits and depths of them.

All of it is one call, so a few thousand plans are a few milliseconds. Plans that cannot be better
than what is there already, see `agents.judge.quick_fill.least_time_s`, are not judged.
"""

import math
from typing import NamedTuple

from agents.judge.candidates import (
    CostObjective,
    ExploredPlans,
    Neighbourhood,
    copy_plan,
    is_new,
    judge_candidates,
    keep,
    limit_s_of,
    nth_cost,
)
from agents.judge.proposal_splits import AT_REST, MOVING, near_splits, take_splits
from agents.judge.quick_fill import (
    SearchContext,
    fill_in_memory,
    fill_in_time,
    fill_plan,
    is_below,
    least_level_s,
)
from des.base.jit import kernel
from des.compiled.kernels.intrinsics import views_of
from des.compiled.many.layout import ZERO, Small
from des.compiled.many.steady import Plans

PROPOSED, ORDERS = range(2)
"""First phase of a look-ahead: proposed orders, or orders near the best; then come their splits."""


class Limits(NamedTuple):
    """Limits of a look-ahead: it expands the ``width`` best orders, then refines plans.

    ``num_refined`` is their number. ``order_budget`` and ``budget`` are plans that are judged by
    the end of each phase (may overshoot by one round). Plans that cost ``most_behind`` more than
    the best are not refined.
    """

    width: int
    num_refined: int
    order_budget: int
    budget: int
    most_behind: float


class _Search(NamedTuple):
    """A look-ahead under way: tools and aim, what is found, and room for what is judged next."""

    tools: SearchContext
    aim: CostObjective
    pool: ExploredPlans
    near: Neighbourhood


@kernel
def explore(
    tools: SearchContext,
    aim: CostObjective,
    pool: ExploredPlans,
    near: Neighbourhood,
    orders: Small,
    sizes: Small,
    limits: Limits,
    phase: int,
) -> None:
    """Judge proposed orders (N, K) under all schedules, and expand the best.

    The best of an order's schedules is kept; its neighbours are judged under that. Only the
    ``width`` best orders are expanded, but neighbours are kept that may be refined. When that
    is done, or the budget for orders is spent, layers of the best plans move between stages and to
    other schedules.
    """
    search = _Search(views_of(tools), views_of(aim), views_of(pool), views_of(near))
    given = ZERO
    while phase == PROPOSED:
        num, given = _propose(search, views_of(orders), views_of(sizes), given)
        if num > 0:
            _judge(search, num)
            _keep_best_schedules(search.pool, search.near, num)
        if given == sizes.size:
            phase = ORDERS
    while True:
        at = _next_order(search.pool, nth_cost(pool.costs, pool.counts[0], limits.width))
        limit = nth_cost(pool.costs, pool.counts[0], max(limits.width, limits.num_refined))
        is_full = 2 * pool.counts[2] > pool.keys.size
        if at < 0 or is_full or pool.counts[1] >= limits.order_budget:
            break
        pool.state[at] = 1
        num = _near_orders(search, at, limit)
        _judge(search, num)
        for plan in range(num):
            if near.costs[plan] < limit:
                keep(search.pool, search.near, plan)
    last = -math.inf
    if limits.num_refined > 0:
        last = nth_cost(pool.costs, pool.counts[0], limits.num_refined)
    for plan in range(pool.counts[0]):
        pool.state[plan] = MOVING if pool.costs[plan] <= last else AT_REST
    while pool.counts[1] < limits.budget:
        num = near_splits(search.tools, search.pool, search.near, limits.most_behind)
        if num < 0:
            break
        _judge(search, num)
        take_splits(search.pool, search.near, num)


@kernel
def _judge(search: _Search, num: int) -> None:
    """Judge candidates, and count them."""
    search.pool.counts[1] += judge_candidates(search.tools, search.aim, search.near, num)


@kernel
def _propose(search: _Search, orders: Small, sizes: Small, given: int) -> tuple[int, int]:
    """Write the next proposed orders that are new, filled, under all schedules.

    Returns how many plans these are, and how many orders are dealt with.
    """
    tools, pool, near = search.tools, search.pool, search.near
    num_schedules = (near.starts.size - 1) // tools.programs.most_stages
    plans, num, spare = near.plans, ZERO, near.costs.size - 1
    while given < sizes.size and num + num_schedules <= spare:
        plans.num_stages[num] = sizes[given]
        for stage in range(sizes[given]):
            plans.domain[num, stage] = orders[given, stage]
        if sizes[given] > 0 and is_new(pool, plans, num):
            level_s = fill_in_time(tools, plans, num, near.weights)
            copy_plan(plans, spare, plans, num)
            for schedule in range(num_schedules):
                copy_plan(plans, num, plans, spare)
                plans.schedule[num] = schedule
                near.owner[num], near.limits[num] = given, math.inf
                if fill_in_memory(tools, plans, num, near.weights, level_s) < math.inf:
                    num += 1
        given += 1
    return num, given


@kernel
def _keep_best_schedules(pool: ExploredPlans, near: Neighbourhood, num: int) -> None:
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
def _next_order(pool: ExploredPlans, limit: float) -> int:
    """Best unexpanded plan with cost <= limit; -1 if there is none."""
    best, least = -1, math.inf
    for at in range(pool.counts[0]):
        if pool.state[at] == 0 and pool.costs[at] <= limit and pool.costs[at] < least:
            best, least = at, pool.costs[at]
    return best


@kernel
def _near_orders(search: _Search, at: int, limit: float) -> int:
    """Write the new orders one change away that may cost less than a limit, and split their layers.

    Returns how many these are.
    """
    tools, aim, pool, near = search
    plans, num_new = near.plans, _new_orders(search, at)
    enough_s, num = limit_s_of(aim, pool.plans, at, limit), ZERO
    for new in range(num_new):
        size = plans.num_stages[new]
        plans.num_stages[num], plans.schedule[num] = size, pool.plans.schedule[at]
        for stage in range(size):
            plans.domain[num, stage] = plans.domain[new, stage]
        if aim.toll_weight > 0.0:
            enough_s = limit_s_of(aim, plans, num, limit)
        if least_level_s(tools, plans, num, near.weights, enough_s) >= enough_s:
            continue
        if enough_s < math.inf and not is_below(tools, plans, num, near.weights, enough_s):
            continue
        near.limits[num] = limit
        num += 1 if fill_plan(tools, plans, num, near.weights) < math.inf else 0
    return num


@kernel
def _new_orders(search: _Search, at: int) -> int:
    """Write the new orders one change away, and return how many; no more than there is room for.

    A domain moves, two change places, a part is turned round, another domain takes the place of
    one, one is left out, or one more comes in.
    """
    tools, _, pool, near = search
    plans, size, most = near.plans, pool.plans.num_stages[at], tools.figures.most_stages
    num_domains, is_used = tools.figures.s_per_flop.size, near.ordered
    for domain in range(num_domains):
        is_used[domain] = 0
    for stage in range(size):
        is_used[pool.plans.domain[at, stage]] = 1
    num = ZERO
    for one in range(size):
        for place in range(size - 1):  # out of its place, and in again elsewhere
            _copy_without(plans, num, pool.plans, at, one)
            behind = place + (1 if place >= one else 0)
            _insert(plans, num, behind, pool.plans.domain[at, one])
            num += _is_new(search, num)
        if size > 1:
            _copy_without(plans, num, pool.plans, at, one)
            num += _is_new(search, num)
        for end in range(one + 1, size):
            _copy_order(plans, num, pool.plans, at)
            plans.domain[num, one] = pool.plans.domain[at, end]
            plans.domain[num, end] = pool.plans.domain[at, one]
            num += _is_new(search, num)
            _copy_order(plans, num, pool.plans, at)
            for stage in range(one, end + 1):
                plans.domain[num, stage] = pool.plans.domain[at, one + end - stage]
            num += _is_new(search, num)
        for other in range(num_domains):
            if is_used[other] == 0:
                _copy_order(plans, num, pool.plans, at)
                plans.domain[num, one] = other
                num += _is_new(search, num)
    for other in range(num_domains if size < most else 0):
        for place in range(0 if is_used[other] == 1 else size + 1):
            _copy_order(plans, num, pool.plans, at)
            _insert(plans, num, place, other)
            num += _is_new(search, num)
    return num


@kernel
def _copy_order(plans: Plans, to: int, source: Plans, plan: int) -> None:
    plans.num_stages[to] = source.num_stages[plan]
    for stage in range(source.num_stages[plan]):
        plans.domain[to, stage] = source.domain[plan, stage]


@kernel
def _copy_without(plans: Plans, to: int, source: Plans, plan: int, one: int) -> None:
    size = source.num_stages[plan] - 1
    plans.num_stages[to] = size
    for stage in range(size):
        plans.domain[to, stage] = source.domain[plan, stage + (1 if stage >= one else 0)]


@kernel
def _insert(plans: Plans, plan: int, place: int, domain: int) -> None:
    size = plans.num_stages[plan]
    for stage in range(size, place, -1):
        plans.domain[plan, stage] = plans.domain[plan, stage - 1]
    plans.domain[plan, place] = domain
    plans.num_stages[plan] = size + 1


@kernel
def _is_new(search: _Search, plan: int) -> int:
    """Whether an order can be and is seen for the first time, and there is room for one more."""
    plans, can_follow = search.near.plans, search.aim.can_follow
    for stage in range(1, plans.num_stages[plan]):
        if not can_follow[plans.domain[plan, stage - 1], plans.domain[plan, stage]]:
            return 0
    has_room = plan + 1 < search.near.costs.size
    return 1 if has_room and is_new(search.pool, plans, plan) else 0
