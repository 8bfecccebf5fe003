"""Plans on a world that stands still, thousands at a time: do they fit, and how long do they take?

Plans have one stage per domain, a schedule with a pace and a direct link each way over every
border, see `agents.judge.search_judge.Judge.are_steady`. Their iterations run by
`des.compiled.many.recurrence`; the memory that they need is that of `des.domain_memory`.
"""

import math
from typing import NamedTuple

from des.base.jit import kernel, lean_kernel
from des.compiled.many.activations import PARAMETERS, peak_held_bytes
from des.compiled.many.layout import HeldMoments, Real, Small, Whole

FITS = -1.0
"""Overflow of a plan that fits."""

_LEVEL_PRECISION = 2.0**-12
_LEVEL_STEP = 1.25


class Plans(NamedTuple):
    """N candidates, of at most S stages: domains from the input on, layers behind each stage's.

    ``num_stages`` and ``schedule`` (N,), ``domain`` and ``end_layer`` (N, S). What is behind the
    last stage of a plan means nothing. Schedules are known by their position in a list.
    """

    num_stages: Small
    schedule: Small
    domain: Small
    end_layer: Small


class Job(NamedTuple):
    """Times of the stages of K domains, and of the borders between them.

    ``work_before`` (L + 1, 4 K) is the work of the passes F, B, D and W of all layers before one,
    in FLOPs of each domain's rate; ``sums_before`` (L + 1, 7) the least of it in any domain, then
    activations, weight inputs and parameters. From the domain of a row to that of a column a
    message takes its wire for ``wire_s`` (K, K) and ``overhead_s``, then flies for ``latency_s``;
    the next one comes no sooner than ``turn_s`` after it. ``update_s`` (K, 2) is the time to update
    a parameter, and the overhead of an iteration.
    """

    num_microbatches: int
    sums_before: Real
    work_before: Real
    rate_flops_per_s: Real
    wire_s: Real
    latency_s: Real
    turn_s: Real
    overhead_s: float
    capacity_bytes: Real
    bytes_per_parameter: float
    update_s: Real


class Programs(NamedTuple):
    """Memory of plans by group: ``most_stages`` times the schedule plus stages - 1.

    A stage that has its ``moments`` from ``start[i]`` on has at most ``window[i]`` microbatches on
    the way to the output and back at any time.
    """

    most_stages: int
    moments: HeldMoments
    window: Whole


@kernel
def overflows(job: Job, programs: Programs, plans: Plans, overflow: Real) -> None:
    """Write what memory plans lack, as a share of what the domain has that lacks most.

    It is at least 0 for those that lack any, and `FITS` for others; see `des.costs.memory`.
    """
    stage_count, schedules, domains, end_layers = plans
    for plan in range(stage_count.size):
        num_stages, begin, most = stage_count[plan], 0, FITS
        group = schedules[plan] * programs.most_stages + num_stages - 1
        for stage in range(num_stages):
            end, capacity = end_layers[plan, stage], job.capacity_bytes[domains[plan, stage]]
            needed = needed_bytes(job, programs.moments, group, stage, begin, end)
            if needed > capacity:
                most = max(most, needed / capacity - 1.0)
            begin = end
        overflow[plan] = most


@kernel
def needed_bytes(
    job: Job, moments: HeldMoments, group: int, stage: int, begin: int, end: int
) -> float:
    """Memory of the layers from ``begin`` to ``end`` at the worst moment of a stage. [bytes]"""
    sums, first = job.sums_before, moments.first[group]
    peak = peak_held_bytes(sums, moments, first + stage, begin, end)
    state: float = job.bytes_per_parameter * (sums[end, PARAMETERS] - sums[begin, PARAMETERS])
    return state + peak


@lean_kernel
def slowest_update_s(job: Job, plans: Plans, plan: int) -> float:
    """Time from the last gradient to the end of an iteration, see `des.costs.update_times`. [s]"""
    longest_s, begin = 0.0, 0
    for stage in range(plans.num_stages[plan]):
        domain, end = plans.domain[plan, stage], plans.end_layer[plan, stage]
        num_parameters = job.sums_before[end, PARAMETERS] - job.sums_before[begin, PARAMETERS]
        own_s = num_parameters * job.update_s[domain, 0] + job.update_s[domain, 1]
        longest_s, begin = max(longest_s, own_s), end
    return longest_s


@kernel
def water_fill(job: Job, programs: Programs, plans: Plans, levels_s: Real) -> None:
    """Split the layers of plans, whose domains and schedules are given, evenly in time.

    Stage by stage gets the most layers with which the time before its first forward, its work on
    all microbatches and the time after its last backward stay below a common level, and which fit
    into its memory; it gets one at least. The level is about the lowest one at which no layer is
    left, and written down; it is no less than what the slowest wire takes. Where the stages cannot
    hold all layers at any level the last one gets those that are left, and the level is ``inf``.
    """
    total_flops = job.sums_before[-1, 0] + job.sums_before[-1, 1]
    for plan in range(plans.num_stages.size):
        if not _fill_to(job, programs, plans, plan, math.inf):
            levels_s[plan] = math.inf
            continue
        rate = wire_s = 0.0
        for stage in range(plans.num_stages[plan]):
            here = plans.domain[plan, stage]
            rate += job.rate_flops_per_s[here]
            if stage > 0:
                before = plans.domain[plan, stage - 1]
                wire_s = max(wire_s, job.wire_s[before, here], job.wire_s[here, before])
        low_s = job.num_microbatches * total_flops / rate
        high_s = low_s * _LEVEL_STEP
        while not _fill_to(job, programs, plans, plan, high_s):
            low_s, high_s = high_s, high_s * _LEVEL_STEP
        while high_s - low_s > _LEVEL_PRECISION * high_s:
            middle_s = (low_s + high_s) / 2.0
            if _fill_to(job, programs, plans, plan, middle_s):
                high_s = middle_s
            else:
                low_s = middle_s
        _fill_to(job, programs, plans, plan, high_s)
        levels_s[plan] = max(high_s, job.num_microbatches * (wire_s + job.overhead_s))


@kernel
def _fill_to(job: Job, programs: Programs, plans: Plans, plan: int, level_s: float) -> bool:
    """Give every stage what fits below a level, a layer at least; whether no layer is left."""
    sums, num_stages = job.sums_before, plans.num_stages[plan]
    group = plans.schedule[plan] * programs.most_stages + num_stages - 1
    num_layers = sums.shape[0] - 1
    begin, outside_s, is_below = 0, 0.0, True
    for stage in range(num_stages):
        domain = plans.domain[plan, stage]
        rate, capacity = job.rate_flops_per_s[domain], job.capacity_bytes[domain]
        if stage > 0:
            before = plans.domain[plan, stage - 1]
            outside_s += job.wire_s[before, domain] + job.latency_s[before, domain]
            outside_s += job.wire_s[domain, before] + job.latency_s[domain, before]
            outside_s += 2.0 * job.overhead_s
        flops = (level_s - outside_s) * rate / job.num_microbatches
        done = sums[begin, 0] + sums[begin, 1]
        least, most = begin + 1, num_layers - (num_stages - 1 - stage)
        while least < most:  # the last end that is below the level and fits
            end = (least + most + 1) // 2
            needed = needed_bytes(job, programs.moments, group, stage, begin, end)
            if sums[end, 0] + sums[end, 1] - done <= flops and needed <= capacity:
                least = end
            else:
                most = end - 1
        needed = needed_bytes(job, programs.moments, group, stage, begin, least)
        work = sums[least, 0] + sums[least, 1] - done
        is_below = is_below and work <= flops and needed <= capacity
        outside_s += work / rate
        plans.end_layer[plan, stage] = begin = least
    plans.end_layer[plan, num_stages - 1] = num_layers
    return is_below and begin == num_layers
