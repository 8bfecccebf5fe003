"""Candidates that are judged together, and the pool of those that are kept."""

import math
from typing import NamedTuple

import numpy as np

from agents.judge.quick_fill import SearchContext, fits
from des.base.jit import kernel
from des.compiled.many.layout import Flags, Real, Small, Whole
from des.compiled.many.least_times import least_time_s
from des.compiled.many.paced import CountedPlans
from des.compiled.many.recurrence import makespans
from des.compiled.many.steady import Plans

_ROUNDING = 1.0 - 1e-9
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class CostObjective(NamedTuple):
    """Objective to minimise: ``time_weight`` ln T + ``toll_weight`` ln(1 + tolls of the borders).

    ``tolls`` (K, K) are what a border costs by its domains; ``can_follow`` (K, K) says which may
    stand one behind the other.
    """

    time_weight: float
    toll_weight: float
    tolls: Real
    can_follow: Flags


class ExploredPlans(NamedTuple):
    """At most P judged plans, with their times and costs.

    ``state`` says how far each was expanded. ``counts`` (3,) are the numbers of plans here, of
    plans judged and of orders seen. The orders are a set, ``keys``, of numbers but 0, in no more
    than about half of its room, which is a power of 2.
    """

    plans: Plans
    costs: Real
    times_s: Real
    state: Small
    keys: Whole
    counts: Whole


class Neighbourhood(NamedTuple):
    """Room for R candidates that are judged together.

    ``limits`` are costs from which on they are of no use, ``limits_s`` the times at these costs,
    ``owner`` the plan that each belongs to. ``counts`` are microbatches; ``weights`` (S,) all 1.
    """

    plans: Plans
    costs: Real
    times_s: Real
    limits: Real
    limits_s: Real
    owner: Whole
    counts: Whole
    ordered: Whole
    starts: Whole
    weights: Real


@kernel
def judge_candidates(
    tools: SearchContext, aim: CostObjective, near: Neighbourhood, num: int
) -> int:
    """Judge the first ``num`` plans that fit and may cost less than their limit; returns how many.

    The others get ``inf``, and so may those that cost no less than their limit.
    """
    plans, programs = near.plans, tools.programs
    starts, most = near.starts, programs.most_stages
    for group in range(starts.size):
        starts[group] = 0
    limit, limit_s = math.inf, math.inf
    for plan in range(num):
        near.costs[plan] = near.times_s[plan] = math.inf
        if near.limits[plan] != limit or aim.toll_weight > 0.0:
            limit = near.limits[plan]
            limit_s = limit_s_of(aim, plans, plan, limit)
        near.limits_s[plan] = limit_s
        enough_s = limit_s / _ROUNDING
        is_of_use = least_time_s(tools.figures, plans, plan, enough_s) < enough_s
        if is_of_use and fits(tools.job, programs, plans, plan):
            near.costs[plan] = 0.0
            starts[plans.schedule[plan] * most + plans.num_stages[plan]] += 1
    for group in range(1, starts.size):
        starts[group] += starts[group - 1]
    last = starts.size - 1
    total = starts[last]
    for plan in range(num - 1, -1, -1):  # from behind, so that starts end where groups begin
        if near.costs[plan] == 0.0:
            group = plans.schedule[plan] * most + plans.num_stages[plan]
            starts[group] -= 1
            near.ordered[starts[group]] = plan
    batch = CountedPlans(tools.job, tools.paces, plans, near.counts)
    makespans(tools.scratch, batch, near.ordered, total, near.limits_s, near.times_s)
    for plan in range(num):
        if near.costs[plan] == 0.0:
            is_run = near.times_s[plan] < math.inf  # else it was given up, or there is no way
            near.costs[plan] = (
                plan_cost(aim, plans, plan, near.times_s[plan]) if is_run else math.inf
            )
    return int(total)


@kernel
def limit_s_of(aim: CostObjective, plans: Plans, plan: int, limit: float) -> float:
    """The time from which on a plan does not cost less than a limit. [s]"""
    if limit == math.inf:
        return math.inf
    left = limit - plan_cost(aim, plans, plan, 1.0)
    if aim.time_weight > 0.0:
        return math.exp(left / aim.time_weight)
    return math.inf if left > 0.0 else 0.0


@kernel
def plan_cost(aim: CostObjective, plans: Plans, plan: int, time_s: float) -> float:
    """Cost of a plan with this iteration time."""
    tolls = 0.0
    if aim.toll_weight > 0.0:
        for stage in range(1, plans.num_stages[plan]):
            tolls += aim.tolls[plans.domain[plan, stage - 1], plans.domain[plan, stage]]
    return aim.time_weight * math.log(time_s) + aim.toll_weight * math.log(1.0 + tolls)


@kernel
def is_new(pool: ExploredPlans, plans: Plans, plan: int) -> bool:
    """Whether an order is seen for the first time; from now on it is not."""
    key = np.uint64(plans.num_stages[plan])
    for stage in range(plans.num_stages[plan]):
        key = (key ^ np.uint64(plans.domain[plan, stage] + 1)) * _MULTIPLIER
        key ^= key >> np.uint64(29)
    stored = np.int64(key >> np.uint64(1)) | 1
    keys, last = pool.keys, pool.keys.size - 1
    at = stored & last
    while keys[at] != 0:
        if keys[at] == stored:
            return False
        at = (at + 1) & last
    keys[at] = stored
    pool.counts[2] += 1
    return True


@kernel
def copy_plan(target: Plans, to: int, source: Plans, plan: int) -> None:
    """Write one plan where another one stands."""
    target.num_stages[to] = source.num_stages[plan]
    target.schedule[to] = source.schedule[plan]
    for stage in range(source.num_stages[plan]):
        target.domain[to, stage] = source.domain[plan, stage]
        target.end_layer[to, stage] = source.end_layer[plan, stage]


@kernel
def keep(pool: ExploredPlans, near: Neighbourhood, plan: int) -> None:
    """Put a judged plan into the pool, in place of the worst one where there is no room."""
    at = pool.counts[0]
    if at == pool.costs.size:
        at = 0
        for other in range(pool.costs.size):
            at = other if pool.costs[other] > pool.costs[at] else at
    else:
        pool.counts[0] += 1
    copy_plan(pool.plans, at, near.plans, plan)
    pool.costs[at], pool.times_s[at] = near.costs[plan], near.times_s[plan]
    pool.state[at] = 0


@kernel
def nth_cost(costs: Real, count: int, rank: int) -> float:
    """The cost that ``rank`` of the first ``count`` do not exceed; ``inf`` where there are fewer.

    Hoare's selection; ``np.partition`` takes 4 s to compile.
    """
    if count < rank:
        return math.inf
    left, place = costs[:count].copy(), rank - 1
    low, high = 0, count - 1
    while low < high:
        pivot, first, last = left[(low + high) // 2], low, high
        while first <= last:
            while left[first] < pivot:
                first += 1
            while pivot < left[last]:
                last -= 1
            if first <= last:
                left[first], left[last] = left[last], left[first]
                first, last = first + 1, last - 1
        if place <= last:
            high = last
        elif place >= first:
            low = first
        else:
            break
    return float(left[place])
