"""Even splits of layers found quickly, and times below which no iteration of a plan can stay."""

import math
from typing import NamedTuple

from agents.kernels.layout import Real
from agents.kernels.steady import Job, Plans, Programs, needed_bytes
from des.kernels.jit import kernel
from des.kernels.lanes import Lanes, Record, Rules

_PRECISION = 2.0**-9
_STEP = 1.04


class Tools(NamedTuple):
    """What judging plans of one job on one network takes, see `agents.kernels.steady.makespans`."""

    lanes: Lanes
    rules: Rules
    record: Record
    job: Job
    programs: Programs


@kernel
def fill_evenly(job: Job, programs: Programs, plans: Plans, weights: Real, levels_s: Real) -> None:
    """Split the layers of plans as `agents.kernels.steady.water_fill` does, but quicker.

    The level is found from the one at which real numbers of layers would be even, which is a
    formula, and to 0.2 %. ``weights`` (N, S) multiply what a stage may take; with all 1 the split
    is even in time. A stage gets one layer at least and no more than it can hold; where the stages
    cannot hold all layers, the level is ``inf``.
    """
    for plan in range(plans.num_stages.size):
        levels_s[plan] = fill_plan(job, programs, plans, plan, weights[plan])


@kernel
def fill_plan(job: Job, programs: Programs, plans: Plans, plan: int, weights: Real) -> float:
    """Split the layers of one plan, see `fill_evenly`; returns the level. [s]

    Memory is looked at only where the split without it does not fit.
    """
    low_s = _even_level_s(job, plans, plan, weights)
    level_s = _filled_from(job, programs, plans, plan, weights, low_s, False)
    if fits(job, programs, plans, plan):
        return level_s
    if not _fill_to(job, programs, plans, plan, weights, math.inf, True):
        return math.inf
    return _filled_from(job, programs, plans, plan, weights, level_s, True)


@kernel
def _filled_from(
    job: Job,
    programs: Programs,
    plans: Plans,
    plan: int,
    weights: Real,
    low_s: float,
    in_memory: bool,
) -> float:
    """Split at about the lowest level, no less than one, at which no layer is left; returns it."""
    if _fill_to(job, programs, plans, plan, weights, low_s, in_memory):
        return low_s
    high_s = low_s * _STEP
    while not _fill_to(job, programs, plans, plan, weights, high_s, in_memory):
        low_s, high_s = high_s, high_s * _STEP
    while high_s - low_s > _PRECISION * high_s:
        middle_s = (low_s + high_s) / 2.0
        if _fill_to(job, programs, plans, plan, weights, middle_s, in_memory):
            high_s = middle_s
        else:
            low_s = middle_s
    _fill_to(job, programs, plans, plan, weights, high_s, in_memory)
    return high_s


@kernel
def _even_level_s(job: Job, plans: Plans, plan: int, weights: Real) -> float:
    """Level at which real numbers of layers would do, none at least: a line in the level. [s]"""
    slope = flops_slope = 0.0
    offset_s = flops_offset = 0.0
    for stage in range(plans.num_stages[plan]):
        domain = plans.domain[plan, stage]
        rate = job.rate_flops_per_s[domain]
        if stage > 0:
            offset_s += border_s(job, plans.domain[plan, stage - 1], domain)
        taken = rate * weights[stage] / job.num_microbatches
        own_slope, own_offset = (1.0 - slope) * taken, -offset_s * taken
        flops_slope += own_slope
        flops_offset += own_offset
        slope += own_slope / rate
        offset_s += own_offset / rate
    total_flops = job.sums_before[-1, 0] + job.sums_before[-1, 1]
    level_s: float = total_flops / job.rate_flops_per_s.sum()
    if flops_slope > 0.0:
        level_s = max((total_flops - flops_offset) / flops_slope, level_s)
    return level_s


@kernel
def least_level_s(job: Job, programs: Programs, plans: Plans, plan: int, weights: Real) -> float:
    """Time that about no split of a plan's layers goes below, without splitting them. [s]

    The largest of: the level at which real numbers of layers would be even; what the slowest wire
    takes; and the journeys of a microbatch there and back, one after the other as far as the
    schedule has it, as if all stages were as quick as the quickest.
    """
    sums, num_stages, count = job.sums_before, plans.num_stages[plan], job.num_microbatches
    group = plans.schedule[plan] * programs.most_stages + num_stages - 1
    wire_s = journey_s = rate = 0.0
    for stage in range(num_stages):
        domain = plans.domain[plan, stage]
        rate = max(rate, job.rate_flops_per_s[domain])
        if stage > 0:
            before = plans.domain[plan, stage - 1]
            wire_s = max(wire_s, job.wire_s[before, domain], job.wire_s[domain, before])
            journey_s += border_s(job, before, domain)
    journey_s += (sums[-1, 0] + sums[-1, 1]) / rate
    window = min(programs.window[programs.moments.first[group]], count)
    by_journey_s = ((count - 1) // window + 1) * journey_s
    by_wire_s = journey_s + (count - 1) * (wire_s + job.overhead_s)
    least_s: float = max(_even_level_s(job, plans, plan, weights), by_journey_s, by_wire_s)
    return least_s


@kernel
def border_s(job: Job, before: int, behind: int) -> float:
    """Time of a message there and one back. [s]"""
    there_s = job.wire_s[before, behind] + job.latency_s[before, behind]
    back_s = job.wire_s[behind, before] + job.latency_s[behind, before]
    both_s: float = there_s + back_s + 2.0 * job.overhead_s
    return both_s


@kernel
def _fill_to(
    job: Job,
    programs: Programs,
    plans: Plans,
    plan: int,
    weights: Real,
    level_s: float,
    in_memory: bool,
) -> bool:
    """Give every stage what fits below a level, a layer at least; whether no layer is left."""
    sums, num_stages = job.sums_before, plans.num_stages[plan]
    group = plans.schedule[plan] * programs.most_stages + num_stages - 1
    num_layers = sums.shape[0] - 1
    layers_per_flop = num_layers / (sums[num_layers, 0] + sums[num_layers, 1])
    begin, outside_s, is_below = 0, 0.0, True
    for stage in range(num_stages):
        domain = plans.domain[plan, stage]
        rate = job.rate_flops_per_s[domain]
        if stage > 0:
            outside_s += border_s(job, plans.domain[plan, stage - 1], domain)
        flops = (level_s - outside_s) * rate * weights[stage] / job.num_microbatches
        done = sums[begin, 0] + sums[begin, 1]
        most = num_layers - (num_stages - 1 - stage)
        guess = flops * layers_per_flop  # no more than a start: layers need not be equal
        end = most if guess >= most - begin else begin + max(1, int(guess))
        while end < most and sums[end + 1, 0] + sums[end + 1, 1] - done <= flops:
            end += 1
        while end > begin + 1 and sums[end, 0] + sums[end, 1] - done > flops:
            end -= 1
        if in_memory:
            capacity, moments = job.capacity_bytes[domain], programs.moments
            while end > begin and needed_bytes(job, moments, group, stage, begin, end) > capacity:
                end -= 1
            is_below = is_below and end > begin
            end = max(end, begin + 1)
        work = sums[end, 0] + sums[end, 1] - done
        is_below = is_below and work <= flops
        outside_s += work / rate
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


@kernel
def least_time_s(job: Job, programs: Programs, plans: Plans, plan: int) -> float:
    """Time below which an iteration of a plan cannot stay. [s]

    The largest of: a stage's work on all microbatches, what comes before its first forward and
    behind its last backward; the same of either wire of a border; of a stage that has at most ``w``
    microbatches on the way to the output and back, as many journeys one after the other as there
    are times ``w`` microbatches; and what it has left to do when its first backward can begin.
    """
    sums, num_stages, count = job.sums_before, plans.num_stages[plan], job.num_microbatches
    group = plans.schedule[plan] * programs.most_stages + num_stages - 1
    first = programs.moments.first[group]
    least_s, outside_s = 0.0, 0.0
    journey_s = 0.0
    begin = 0
    for stage in range(num_stages):  # the journey of one microbatch from the input and back
        domain, end = plans.domain[plan, stage], plans.end_layer[plan, stage]
        work: float = sums[end, 0] - sums[begin, 0] + sums[end, 1] - sums[begin, 1]
        journey_s += work / job.rate_flops_per_s[domain]
        if stage > 0:
            journey_s += border_s(job, plans.domain[plan, stage - 1], domain)
        begin = end
    begin = 0
    for stage in range(num_stages):
        domain, end = plans.domain[plan, stage], plans.end_layer[plan, stage]
        rate = job.rate_flops_per_s[domain]
        forward_s = (sums[end, 0] - sums[begin, 0]) / rate
        backward_s = (sums[end, 1] - sums[begin, 1]) / rate
        if stage > 0:
            before = plans.domain[plan, stage - 1]
            there_s = job.wire_s[before, domain] + job.overhead_s
            back_s = job.wire_s[domain, before] + job.overhead_s
            whole_s = outside_s + journey_s
            least_s = max(least_s, whole_s + (count - 1) * max(there_s, back_s))
            crossing_s = border_s(job, before, domain)
            outside_s += crossing_s
            journey_s -= crossing_s
        window = min(programs.window[first + stage], count)
        journeys = (count - 1) // window + 1
        left_s = (count - 1) * backward_s + (count - window) * forward_s
        own_s = max(count * (forward_s + backward_s), journeys * journey_s, journey_s + left_s)
        least_s = max(least_s, outside_s + own_s)
        outside_s += forward_s + backward_s
        journey_s -= forward_s + backward_s
        begin = end
    return least_s
