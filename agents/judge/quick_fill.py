"""Even splits of layers found quickly, and levels below which no split of an order can stay."""

import math
from typing import NamedTuple

from des.base.jit import kernel
from des.compiled.kernels.intrinsics import views_of
from des.compiled.many.layout import Real
from des.compiled.many.least_times import LeastFigures
from des.compiled.many.paced import ScheduleParams
from des.compiled.many.pipeline_scratch import PipelineScratch
from des.compiled.many.steady import Job, Plans, Programs, needed_bytes

_PRECISION = 2.0**-9
_STEP = 1.04


class SearchContext(NamedTuple):
    """Arrays for judging plans of one job on one network."""

    scratch: PipelineScratch
    job: Job
    paces: ScheduleParams
    programs: Programs
    figures: LeastFigures


@kernel
def fill_evenly(tools: SearchContext, plans: Plans, weights: Real, levels_s: Real) -> None:
    """Split the layers of plans as `des.compiled.many.steady.water_fill` does, but quicker.

    The level is found from the one at which real numbers of layers would be even, which is a
    formula, and to 0.2 %. ``weights`` (N, S) multiply what a stage may take; with all 1 the split
    is even in time. A stage gets one layer at least and no more than it can hold; where the stages
    cannot hold all layers, the level is ``inf``.
    """
    by, split = views_of(tools), views_of(plans)
    for plan in range(plans.num_stages.size):
        levels_s[plan] = fill_plan(by, split, plan, views_of(weights[plan]))


@kernel
def fill_plan(tools: SearchContext, plans: Plans, plan: int, weights: Real) -> float:
    """Split the layers of one plan, see `fill_evenly`; returns the level. [s]

    Memory is looked at only where the split without it does not fit.
    """
    return fill_in_memory(tools, plans, plan, weights, fill_in_time(tools, plans, plan, weights))


@kernel
def fill_in_time(tools: SearchContext, plans: Plans, plan: int, weights: Real) -> float:
    """Split the layers of one plan as if memory were free; returns the level. [s]"""
    low_s = _even_level_s(tools, plans, plan, weights)
    return _fill_from(tools, plans, plan, weights, low_s, False)


@kernel
def fill_in_memory(
    tools: SearchContext, plans: Plans, plan: int, weights: Real, level_s: float
) -> float:
    """Continue from the result of `fill_in_time`; returns the level, see `fill_evenly`."""
    if fits(tools.job, tools.programs, plans, plan):
        return level_s
    if not _fill_to(tools, plans, plan, weights, math.inf, True):
        return math.inf
    return _fill_from(tools, plans, plan, weights, level_s, True)


@kernel
def is_below(tools: SearchContext, plans: Plans, plan: int, weights: Real, level_s: float) -> bool:
    """Whether some split of the layers is below a level, as `fill_plan` has it, memory aside."""
    return _fill_to(tools, plans, plan, weights, level_s, False)


@kernel
def _fill_from(
    tools: SearchContext,
    plans: Plans,
    plan: int,
    weights: Real,
    low_s: float,
    in_memory: bool,
) -> float:
    """Split at about the lowest level, no less than one, at which no layer is left; returns it."""
    if _fill_to(tools, plans, plan, weights, low_s, in_memory):
        return low_s
    high_s = low_s * _STEP
    while not _fill_to(tools, plans, plan, weights, high_s, in_memory):
        low_s, high_s = high_s, high_s * _STEP
    is_high = True
    while high_s - low_s > _PRECISION * high_s:
        middle_s = (low_s + high_s) / 2.0
        is_high = _fill_to(tools, plans, plan, weights, middle_s, in_memory)
        if is_high:
            high_s = middle_s
        else:
            low_s = middle_s
    if not is_high:
        _fill_to(tools, plans, plan, weights, high_s, in_memory)
    return high_s


@kernel
def _even_level_s(tools: SearchContext, plans: Plans, plan: int, weights: Real) -> float:
    """Level at which real numbers of layers would do, none at least: a line in the level. [s]"""
    job, figures, before = tools.job, tools.figures, 0
    slope = flops_slope = 0.0
    offset_s = flops_offset = 0.0
    for stage in range(plans.num_stages[plan]):
        domain = plans.domain[plan, stage]
        rate = job.rate_flops_per_s[domain]
        if stage > 0:
            offset_s += figures.crossing_s[before, domain]
        before = domain
        taken = rate * weights[stage] / job.num_microbatches
        own_slope, own_offset = (1.0 - slope) * taken, -offset_s * taken
        flops_slope += own_slope
        flops_offset += own_offset
        slope += own_slope / rate
        offset_s += own_offset / rate
    total_flops, level_s = figures.work[figures.work.size - 1], figures.even_s
    if flops_slope > 0.0:
        level_s = max((total_flops - flops_offset) / flops_slope, level_s)
    return level_s


@kernel
def least_level_s(
    tools: SearchContext, plans: Plans, plan: int, weights: Real, enough_s: float
) -> float:
    """Time that about no split of a plan's layers goes below; a lesser one if that is enough. [s]

    The largest of: the level at which real numbers of layers would be even; what the slowest wire
    takes; and the journeys of a microbatch there and back, one after the other as far as the
    schedule has it, as if all stages were as quick as the quickest.
    """
    figures, num_stages = tools.figures, plans.num_stages[plan]
    first = figures.first[plans.schedule[plan] * figures.most_stages + num_stages - 1]
    wire_s, journey_s, before = 0.0, 0.0, 0
    quickest = math.inf
    for stage in range(num_stages):
        domain = plans.domain[plan, stage]
        quickest = min(quickest, figures.s_per_flop[domain])
        if stage > 0:
            wire_s = max(wire_s, figures.wire_s[before, domain])
            journey_s += figures.crossing_s[before, domain]
        before = domain
    journey_s += figures.work[figures.work.size - 1] * quickest
    by_journey_s = figures.journeys[first] * journey_s
    by_wire_s = journey_s + (figures.num_microbatches - 1.0) * wire_s
    least_s: float = max(by_journey_s, by_wire_s)
    if least_s >= enough_s:
        return least_s
    return max(least_s, _even_level_s(tools, plans, plan, weights))


@kernel
def _fill_to(
    tools: SearchContext,
    plans: Plans,
    plan: int,
    weights: Real,
    level_s: float,
    in_memory: bool,
) -> bool:
    """Give every stage what fits below a level, a layer at least; whether no layer is left."""
    job, figures, moments = tools.job, tools.figures, tools.programs.moments
    work, num_stages = figures.work, plans.num_stages[plan]
    group = plans.schedule[plan] * figures.most_stages + num_stages - 1
    num_layers = work.size - 1
    layers_per_flop = num_layers / work[num_layers]
    begin, before, outside_s, is_below = 0, 0, 0.0, True
    for stage in range(num_stages):
        domain = plans.domain[plan, stage]
        rate = job.rate_flops_per_s[domain]
        if stage > 0:
            outside_s += figures.crossing_s[before, domain]
        before = domain
        flops = (level_s - outside_s) * rate * weights[stage] / job.num_microbatches
        done = work[begin]
        most = num_layers - (num_stages - 1 - stage)
        guess = flops * layers_per_flop  # no more than a start: layers need not be equal
        end = most if guess >= most - begin else begin + max(1, int(guess))
        while end < most and work[end + 1] - done <= flops:
            end += 1
        while end > begin + 1 and work[end] - done > flops:
            end -= 1
        if in_memory:
            capacity = job.capacity_bytes[domain]
            while end > begin and needed_bytes(job, moments, group, stage, begin, end) > capacity:
                end -= 1
            is_below = is_below and end > begin
            end = max(end, begin + 1)
        taken = work[end] - done
        is_below = is_below and taken <= flops
        outside_s += taken / rate
        plans.end_layer[plan, stage] = begin = end
    plans.end_layer[plan, num_stages - 1] = num_layers
    return is_below and begin == num_layers


@kernel
def fits(job: Job, programs: Programs, plans: Plans, plan: int) -> bool:
    """Whether all stages of a plan hold their layers."""
    num_stages, begin = plans.num_stages[plan], 0
    group = plans.schedule[plan] * programs.most_stages + num_stages - 1
    for stage in range(num_stages):
        end, capacity = plans.end_layer[plan, stage], job.capacity_bytes[plans.domain[plan, stage]]
        if needed_bytes(job, programs.moments, group, stage, begin, end) > capacity:
            return False
        begin = end
    return True
