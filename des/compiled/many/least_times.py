"""Times below which no iteration of a plan can stay, found without running it."""

from typing import NamedTuple

import numpy as np

from des.base.jit import kernel
from des.compiled.many.layout import Real, Whole
from des.compiled.many.steady import Job, Plans, Programs


class LeastFigures(NamedTuple):
    """Terms of `least_time_s`, computed once a job.

    ``even_s`` is the time of a microbatch's F and B if all domains shared them evenly.
    ``s_per_flop`` (K,) are of domains; ``crossing_s`` (K, K) is a
    message there and one back, ``wire_s`` (K, K) what the slower of both wires takes for one.
    ``forward`` and ``work`` (L + 1,) are FLOPs of F, and of F and B, of all layers before one. By
    stage of a group, from ``first`` (G,) on: ``ready`` are forwards that are left when the first
    backward can begin, ``journeys`` how often the microbatches on the way are replaced.
    """

    num_microbatches: float
    most_stages: int
    even_s: float
    s_per_flop: Real
    crossing_s: Real
    wire_s: Real
    forward: Real
    work: Real
    first: Whole
    ready: Real
    journeys: Real


def least_figures(job: Job, programs: Programs) -> LeastFigures:
    """Work out what `least_time_s` adds up."""
    count, one_way_s = job.num_microbatches, job.wire_s + job.latency_s
    window = np.minimum(programs.window, count)
    work = job.sums_before[:, 0] + job.sums_before[:, 1]
    return LeastFigures(
        num_microbatches=float(count),
        most_stages=programs.most_stages,
        even_s=float(work[-1]) / sum(job.rate_flops_per_s.tolist()),
        s_per_flop=1.0 / job.rate_flops_per_s,
        crossing_s=one_way_s + one_way_s.T + 2.0 * job.overhead_s,
        wire_s=np.maximum(job.wire_s, job.wire_s.T) + job.overhead_s,
        forward=np.ascontiguousarray(job.sums_before[:, 0]),
        work=work,
        first=programs.moments.first,
        ready=(count - window).astype(np.float64),
        journeys=((count - 1) // window + 1).astype(np.float64),
    )


@kernel
def least_time_s(figures: LeastFigures, plans: Plans, plan: int, enough_s: float) -> float:
    """Time below which an iteration of a plan cannot stay; a lesser one if that is enough. [s]

    The largest of: a stage's work on all microbatches, what comes before its first forward and
    after its last backward; the same of either wire of a border; of a stage that has at most ``w``
    microbatches on the way to the output and back, as many journeys one after the other as there
    are times ``w`` microbatches; and what it has left to do when its first backward can begin.
    """
    num_stages, count = plans.num_stages[plan], figures.num_microbatches
    first = figures.first[plans.schedule[plan] * figures.most_stages + num_stages - 1]
    forward, work = figures.forward, figures.work
    journey_s, begin, before = 0.0, 0, 0
    for stage in range(num_stages):  # the journey of one microbatch from the input and back
        domain, end = plans.domain[plan, stage], plans.end_layer[plan, stage]
        journey_s += (work[end] - work[begin]) * figures.s_per_flop[domain]
        if stage > 0:
            journey_s += figures.crossing_s[before, domain]
        begin, before = end, domain
    least_s, outside_s, begin = 0.0, 0.0, 0
    for stage in range(num_stages):
        domain, end = plans.domain[plan, stage], plans.end_layer[plan, stage]
        forward_s = (forward[end] - forward[begin]) * figures.s_per_flop[domain]
        both_s = (work[end] - work[begin]) * figures.s_per_flop[domain]
        if stage > 0:
            by_wire_s = outside_s + journey_s + (count - 1.0) * figures.wire_s[before, domain]
            least_s = max(least_s, by_wire_s)
            outside_s += figures.crossing_s[before, domain]
            journey_s -= figures.crossing_s[before, domain]
        left_s = (count - 1.0) * (both_s - forward_s) + figures.ready[first + stage] * forward_s
        by_journeys_s = figures.journeys[first + stage] * journey_s
        own_s = max(count * both_s, by_journeys_s, journey_s + left_s)
        least_s = max(least_s, outside_s + own_s)
        if least_s >= enough_s:
            break
        outside_s += both_s
        journey_s -= both_s
        begin, before = end, domain
    return least_s
