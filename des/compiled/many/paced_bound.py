"""Least times and memory of pipelines of schedules with a pace, over the stages."""

import math

from des.base.jit import lean_kernel
from des.compiled.many.activations import ACTIVATION, PARAMETERS
from des.compiled.many.layout import Real
from des.compiled.many.paced import WHOLE, CountedPlans, num_behind, num_warm_up, paced_overflow
from des.compiled.many.pipeline_scratch import STAGE_ROWS, PipelineScratch, scratch_rows, write_plan
from des.compiled.many.recurrence import plan_time_s
from des.compiled.many.steady import FITS, Job

_ROUNDING = 1.0 - 1e-9
"""Sums of the same terms in another order differ by less."""


@lean_kernel
def paced_scores(
    batch: CountedPlans,
    scratch: PipelineScratch,
    slack: float,
    best_s: float,
    times_s: Real,
    overflow: Real,
) -> None:
    """Write what memory plans lack, see `overflows`, and iteration times of those that fit. [s]

    The times of plans that do not fit are ``inf``, and so are those of several stages that cannot
    be below ``slack`` times the best such time before, which is ``best_s`` to begin with.
    """
    plans, limit_s = batch.plans, slack * best_s
    for plan in range(plans.num_stages.size):
        times_s[plan] = math.inf
        overflow[plan] = paced_overflow(batch, plan)
        if overflow[plan] != FITS:
            continue
        is_long = plans.num_stages[plan] > 1
        if is_long and paced_least_s(batch, plan, scratch) >= limit_s:
            continue
        if not is_long:
            write_plan(scratch_rows(scratch), 0, batch.job, plans, plan)
        times_s[plan] = plan_time_s(batch, plan, scratch, math.inf)
        if is_long:
            limit_s = min(limit_s, slack * times_s[plan])


@lean_kernel
def paced_least_s(batch: CountedPlans, plan: int, scratch: PipelineScratch) -> float:
    """Time that an iteration of a plan takes at least; the plan is written down for it. [s]

    It is the longest of what no stage and no wire can do without: the way of the first microbatch
    there, the work of the stage on all of them, or as many turns of the wire, and the way of the
    last one back; or as many round trips as there are rounds of the microbatches that the stage may
    have on the way at once; or the way there and all work, weight gradients at the end included.
    """
    job, paces, plans, count = batch.job, batch.paces, batch.plans, batch.counts[plan]
    last, schedule = plans.num_stages[plan] - 1, plans.schedule[plan]
    is_halved = paces.behind[schedule] != WHOLE
    write_plan(scratch_rows(scratch), 0, job, plans, plan)
    passes, back = scratch.stages, 2 if is_halved else 1
    round_s, least_s, hops_s, there_s = 0.0, 0.0, 0.0, 0.0
    for stage in range(last + 1):
        round_s += passes[stage * STAGE_ROWS] + passes[stage * STAGE_ROWS + back]
        if stage > 0:
            here, there = plans.domain[plan, stage - 1], plans.domain[plan, stage]
            hops_s += job.wire_s[here, there] + job.latency_s[here, there]
            hops_s += job.wire_s[there, here] + job.latency_s[there, here] + 2.0 * job.overhead_s
    whole_s = round_s = round_s + hops_s  # of one microbatch; and of it from a stage on
    if whole_s == math.inf:
        return math.inf
    for stage in range(last + 1):
        at = stage * STAGE_ROWS
        forward_s, back_s = passes[at], passes[at + back]
        outside_s = whole_s - round_s
        work_s = count * (forward_s + back_s)
        if is_halved:
            num_done = max(0, count - 1 - num_behind(paces, schedule, stage, count))
            work_s += num_done * passes[at + 3]
            least_s = max(least_s, there_s + count * (forward_s + back_s + passes[at + 3]))
        window = num_warm_up(paces, schedule, last - stage, count) + 1
        rounds_s = ((count - 1) // window + 1) * round_s
        least_s = max(least_s, outside_s + max(work_s, rounds_s))
        if stage < last:
            here, there = plans.domain[plan, stage], plans.domain[plan, stage + 1]
            slowest_s = max(job.wire_s[here, there], job.wire_s[there, here]) + job.overhead_s
            least_s = max(least_s, whole_s + (count - 1) * slowest_s)
            there_s += forward_s + job.overhead_s
            there_s += job.wire_s[here, there] + job.latency_s[here, there]
            round_s -= forward_s + back_s + 2.0 * job.overhead_s
            round_s -= job.wire_s[here, there] + job.latency_s[here, there]
            round_s -= job.wire_s[there, here] + job.latency_s[there, here]
    least_s *= _ROUNDING
    return least_s


@lean_kernel
def least_bytes(job: Job) -> float:
    """Memory of all layers with one microbatch: the least that any pipeline needs. [bytes]"""
    num_layers, sums = job.sums_before.shape[0] - 1, job.sums_before
    needed: float = job.bytes_per_parameter * sums[num_layers, PARAMETERS]
    needed += sums[num_layers, ACTIVATION]
    return needed


@lean_kernel
def room_bytes(batch: CountedPlans, plan: int) -> float:
    """Memory of the domains of a plan together. [bytes]"""
    plans, room = batch.plans, 0.0
    for stage in range(plans.num_stages[plan]):
        room += batch.job.capacity_bytes[plans.domain[plan, stage]]
    return room
