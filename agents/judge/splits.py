"""Splits of layers whose iteration may be quicker than one that is known: branch and bound.

The bounds are those of `agents.planners.exact.bounds`, worked out from the input on, so that a
split is given up at the first stage that makes it too slow.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from des.base.jit import kernel
from des.compiled.many.layout import Real, Small, Whole
from des.compiled.many.steady import Job, Programs, needed_bytes

ROUNDING = 1e-9
"""Relative slack of bounds against the rounding of sums."""


class Walk(NamedTuple):
    """Walk through the splits of an order of p domains, under a schedule as ``group`` says.

    ``has_halves`` says whether the schedule may put off weight gradients after the last input
    gradient. ``place`` is the stage whose end is moved next, -1 when all is done, and the steps
    made so far; ``ends`` (p,) are the layers behind the stages. ``heads`` and ``tails`` (p,) are
    the least times before the first forward of a stage and after its last backward.
    """

    job: Job
    programs: Programs
    group: int
    has_halves: bool
    order: Small
    place: Whole
    ends: Whole
    heads: Real
    tails: Real


@kernel
def walk_splits(walk: Walk, limit_s: float, most_steps: int, found: Small) -> int:
    """Write the next splits that fit and of which no bound is above a limit; returns how many.

    The walk continues from its state until ``found`` (rows, at least p) is full, it has
    made ``most_steps`` or its end is reached.
    """
    job, order, place, ends, heads, tails = (
        walk.job,
        walk.order,
        walk.place,
        walk.ends,
        walk.heads,
        walk.tails,
    )
    num_stages, num_layers = order.size, job.sums_before.shape[0] - 1
    stage, count, limit_s = place[0], 0, limit_s * (1.0 + ROUNDING)
    if place[1] == 0 and _rest_s(walk, 0) > limit_s:
        stage = -1  # whatever the split
    while stage >= 0 and count < found.shape[0] and place[1] < most_steps:
        place[1] += 1
        begin = ends[stage - 1] if stage > 0 else 0
        end = ends[stage] = ends[stage] + 1
        domain = order[stage]
        needed = (
            needed_bytes(job, walk.programs.moments, walk.group, stage, begin, end)
            if end <= num_layers - (num_stages - 1 - stage)
            else math.inf
        )
        if needed > job.capacity_bytes[domain]:
            stage -= 1  # and more layers would need more
            continue
        forward_s, backward_s, rest_s = _pass_times_s(walk, domain, begin, end)
        work_s = heads[stage] + job.num_microbatches * (forward_s + backward_s)
        work_s = max(work_s + tails[stage], work_s + job.num_microbatches * rest_s)
        if work_s > limit_s:
            stage -= 1
        elif stage == num_stages - 1:
            if _held_s(walk) <= limit_s:
                for each in range(num_stages):
                    found[count, each] = ends[each]
                count += 1
            stage -= 1
        else:
            below = order[stage + 1]
            down_s = job.wire_s[domain, below] + job.latency_s[domain, below] + job.overhead_s
            up_s = job.wire_s[below, domain] + job.latency_s[below, domain] + job.overhead_s
            heads[stage + 1] = heads[stage] + forward_s + down_s
            tails[stage + 1] = tails[stage] + backward_s + up_s
            if _rest_s(walk, stage + 1) <= limit_s:
                stage += 1
                ends[stage] = end if stage < num_stages - 1 else num_layers - 1
    place[0] = stage
    return count


@kernel
def _pass_times_s(walk: Walk, domain: int, begin: int, end: int) -> tuple[float, float, float]:
    """Time of a forward and of a backward of some layers, and what may be put off. [s]"""
    work, rate, first = walk.job.work_before, walk.job.rate_flops_per_s[domain], 4 * domain
    forward_s = (work[end, first] - work[begin, first]) / rate
    if walk.has_halves:
        put_off_s = (work[end, first + 3] - work[begin, first + 3]) / rate
        return forward_s, (work[end, first + 2] - work[begin, first + 2]) / rate, put_off_s
    return forward_s, (work[end, first + 1] - work[begin, first + 1]) / rate, 0.0


@kernel
def _rest_s(walk: Walk, first: int) -> float:
    """Bound by the stages from ``first`` on, however they share the layers that are left. [s]

    It is the largest of three, where layers are taken as divisible: a level to which all of these
    stages are busy, with the messages between them as all that comes on top; the round trips from
    the first of them on, where all layers are as quick as in the fastest domain; and the turns of
    the slowest wire.
    """
    job, order, backward = walk.job, walk.order, 2 if walk.has_halves else 1
    sums, begin = job.sums_before, walk.ends[first - 1] if first > 0 else 0
    flops = sums[-1, 0] - sums[begin, 0] + sums[-1, backward] - sums[begin, backward]
    head_s = walk.heads[first] + walk.tails[first]
    messages_s = turn_s = rates = idle_flops = fastest = 0.0
    for stage in range(first, order.size):
        here = order[stage]
        if stage > 0:
            above = order[stage - 1]
            turn_s = max(turn_s, job.turn_s[above, here], job.turn_s[here, above])
            if stage > first:
                messages_s += _there_and_back_s(job, above, here)
        rate = job.rate_flops_per_s[here]
        rates += rate
        fastest = max(fastest, rate)
        idle_flops += (head_s + messages_s) * rate
    level_s = (job.num_microbatches * flops + idle_flops) / rates
    later, trip_s = job.num_microbatches - 1, messages_s + flops / fastest
    rounds = later // walk.programs.window[walk.programs.moments.first[walk.group] + first]
    waiting_s = max(rounds * trip_s, later * turn_s)
    bound_s: float = max(level_s, head_s + trip_s + waiting_s)
    return bound_s


@kernel
def _there_and_back_s(job: Job, above: int, below: int) -> float:
    """Time of a message from one domain to another and of one back. [s]"""
    down_s = job.wire_s[above, below] + job.latency_s[above, below]
    up_s = job.wire_s[below, above] + job.latency_s[below, above]
    both_s: float = down_s + up_s + 2.0 * job.overhead_s
    return both_s


@kernel
def _held_s(walk: Walk) -> float:
    """Bounds by the round trips of as many microbatches as a stage may hold, and by wires. [s]"""
    job, order, ends, later = walk.job, walk.order, walk.ends, walk.job.num_microbatches - 1
    trip_s = turn_s = bound_s = 0.0
    for stage in range(order.size - 1, -1, -1):
        domain, begin = order[stage], ends[stage - 1] if stage > 0 else 0
        forward_s, backward_s, _ = _pass_times_s(walk, domain, begin, ends[stage])
        trip_s += forward_s + backward_s
        if stage < order.size - 1:
            below = order[stage + 1]
            trip_s += _there_and_back_s(job, domain, below)
            turn_s = max(turn_s, job.turn_s[domain, below], job.turn_s[below, domain])
        window = walk.programs.window[walk.programs.moments.first[walk.group] + stage]
        rounds, rest = later // window, later % window
        waiting_s = max(rounds * trip_s + rest * forward_s, later * turn_s)
        bound_s = max(bound_s, walk.heads[stage] + waiting_s + trip_s + walk.tails[stage])
    return bound_s


def new_walk(
    job: Job, programs: Programs, order: Sequence[int], schedule: int, *, has_halves: bool
) -> Walk:
    """Return a walk that has not begun."""
    num_stages = len(order)
    ends = np.zeros(num_stages, dtype=np.int64)
    if num_stages == 1:
        ends[0] = len(job.sums_before) - 2  # the last stage ends with the last layer
    return Walk(
        job=job,
        programs=programs,
        group=schedule * programs.most_stages + num_stages - 1,
        has_halves=has_halves,
        order=np.array(order, dtype=np.int32),
        place=np.zeros(2, dtype=np.int64),
        ends=ends,
        heads=np.zeros(num_stages),
        tails=np.zeros(num_stages),
    )
