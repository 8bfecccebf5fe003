"""Splits of layers for schedules with a pace: every stage is filled up to one level of time."""

import math

from agents.judge.level_fills import LayerTimes, fill_to_level, last_in_memory
from des.base.jit import lean_kernel
from des.compiled.many.layout import Real, Small
from des.compiled.many.paced import WHOLE, CountedPlans, paced_overflow, stage_moments
from des.compiled.many.paced_bound import least_bytes, room_bytes
from des.compiled.many.steady import FITS, Plans


@lean_kernel
def paced_fill(batch: CountedPlans, times: LayerTimes, per_order: int, ends: Small) -> None:
    """Split the layers of plans, whose domains and schedules are given, evenly in time.

    Every stage gets the most layers with which a common level holds: the time before its first
    forward, its work on all microbatches and, but for weight gradients that may come last, the time
    after its last backward; and which fit into its memory. It gets one at least. Where the stages
    cannot hold all layers at any level, the split is arbitrary and does not fit; where no links
    lead from one stage to the next, it is arbitrary.

    Parameters
    ----------
    per_order
        Plans in a row that differ in their schedules alone: where memory does not matter, those of
        whole backward passes have one split, and those of halved ones.
    ends
        Room, (S,).
    """
    plans, num_layers = batch.plans, times.all_s.shape[1] - 1
    for first in range(0, plans.num_stages.size, per_order):
        if not _is_joined(times.hop_s, plans, first):
            for plan in range(first, first + per_order):
                _fill_any(plans.end_layer[plan], plans.num_stages[plan], 0, 0, num_layers)
            continue
        _fill_in_time(batch, times, first, per_order, ends)
        for plan in range(first, first + per_order):
            if paced_overflow(batch, plan) != FITS and _fill_memory(batch, plan):
                fill_to_level(batch, times, plan, ends, True)


@lean_kernel
def _fill_in_time(
    batch: CountedPlans, times: LayerTimes, first: int, per_order: int, ends: Small
) -> None:
    """Split the layers of an order as if memory were free, where it can hold them at all."""
    plans, is_tight = batch.plans, room_bytes(batch, first) < least_bytes(batch.job)
    leaders = (-1, -1)
    for plan in range(first, first + per_order):
        kind = 0 if batch.paces.behind[plans.schedule[plan]] == WHOLE else 1
        if is_tight and not _fill_memory(batch, plan):
            continue
        if leaders[kind] < 0:
            leaders = (plan, leaders[1]) if kind == 0 else (leaders[0], plan)
            fill_to_level(batch, times, plan, ends, False)
            continue
        for stage in range(plans.num_stages[plan]):
            plans.end_layer[plan, stage] = plans.end_layer[leaders[kind], stage]


@lean_kernel
def _is_joined(hop_s: Real, plans: Plans, plan: int) -> bool:
    """Whether links lead from each stage to the next and back."""
    for stage in range(1, plans.num_stages[plan]):
        before, domain = plans.domain[plan, stage - 1], plans.domain[plan, stage]
        if math.isinf(hop_s[before, domain] + hop_s[domain, before]):
            return False
    return True


@lean_kernel
def _fill_memory(batch: CountedPlans, plan: int) -> bool:
    """Give every stage what fits into its memory; returns whether all layers are given."""
    job, plans = batch.job, batch.plans
    num_stages, num_layers, begin = plans.num_stages[plan], job.sums_before.shape[0] - 1, 0
    for stage in range(num_stages):
        most, domain = num_layers - (num_stages - 1 - stage), plans.domain[plan, stage]
        moments = stage_moments(batch, plan, stage)
        end = last_in_memory(job, moments, job.capacity_bytes[domain], begin, most)
        if end == begin:
            _fill_any(plans.end_layer[plan], num_stages, stage, begin, num_layers)
            return False
        plans.end_layer[plan, stage] = begin = end
    plans.end_layer[plan, num_stages - 1] = num_layers
    return bool(begin == num_layers)


@lean_kernel
def _fill_any(ends: Small, num_stages: int, stage: int, begin: int, num_layers: int) -> None:
    """Give one layer to each remaining stage, and the others to the last stage."""
    for later in range(stage, num_stages):
        begin += 1
        ends[later] = begin
    ends[num_stages - 1] = num_layers
