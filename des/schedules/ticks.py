"""Whole numbers for times, as constraint programming wants them."""

import math
from dataclasses import replace

from des.schedules.operations import Orders
from des.schedules.pipeline import Border, Pipeline
from des.schedules.recurrence import timing_of

_MOST_TICKS = 10**8
"""Largest makespan in ticks: times memory in parts it stays far below 2^63."""

_ROUNDING = 1e-9  # of sums of the same terms in another order


def in_ticks(pipeline: Pipeline, start: Orders) -> tuple[Pipeline, float]:
    """The pipeline with whole ticks for seconds, and the length of a tick: as long as it can be."""
    times_s = [*pipeline.forward_s, *pipeline.input_gradient_s, *pipeline.weight_gradient_s]
    times_s += pipeline.backward_s
    for border in (*pipeline.down, *pipeline.up):
        times_s += [border.transfer_s, border.latency_s]
    common = math.gcd(*map(_microseconds, times_s))
    longest = _microseconds(timing_of(start, pipeline).makespan_s)
    tick = max(common, math.ceil(longest / _MOST_TICKS), 1)

    def cut(time_s: float) -> float:
        return float(_microseconds(time_s) // tick)

    def cut_border(border: Border) -> Border:
        return Border(transfer_s=cut(border.transfer_s), latency_s=cut(border.latency_s))

    whole = replace(
        pipeline,
        forward_s=tuple(map(cut, pipeline.forward_s)),
        input_gradient_s=tuple(map(cut, pipeline.input_gradient_s)),
        weight_gradient_s=tuple(map(cut, pipeline.weight_gradient_s)),
        backward_s=tuple(map(cut, pipeline.backward_s)),
        down=tuple(map(cut_border, pipeline.down)),
        up=tuple(map(cut_border, pipeline.up)),
    )
    return whole, tick / 1e6


def _microseconds(time_s: float) -> int:
    return int(time_s * 1e6 * (1.0 + _ROUNDING))
