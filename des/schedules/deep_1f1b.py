"""1F1B with as many forward passes at the start as hide the borders and fit into memory."""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from des.base.lazy import lazy_imports
from des.schedules.flush import warm_up_then_alternate
from des.schedules.operations import Orders
from des.schedules.pipeline import Pipeline

with lazy_imports(__name__):
    from des.schedules.kernels import warm_ups

_ROUNDING = 1e-9  # of sums of the same terms in another order


def deep_1f1b(pipeline: Pipeline) -> Orders:
    """1F1B whose warm-up is chosen stage by stage for the least makespan within memory.

    A stage that warms up with ``n`` forwards more than the next one exchanges ``n + 1``
    microbatches with it per round trip: two passes there, two here and the border both ways. For a
    period per microbatch of ``T`` that is ``n = ceil(round trip / T) - 1``. All ``T`` are tried
    that change an ``n`` and that the slowest stage or wire could keep up with, and the plain
    1F1B, all cut to what memory allows; of the shortest makespan by `timing_of` that with the
    fewest forwards is kept.

    Notes
    -----
    Memory holds one microbatch more than the warm-up. Depth hides latency and nothing hides
    bandwidth (CrossPipe, ATC'25, on 1F1B with more forwards in flight; the choice is our own).

    Raises
    ------
    ValueError
        If a device has several stages, or no memory for one microbatch.

    Examples
    --------
    >>> from des.schedules.pipeline import Border
    >>> def depths(latency_s):
    ...     pipeline = Pipeline.uniform(3, 32, border=Border(latency_s=latency_s))
    ...     orders = deep_1f1b(pipeline)
    ...     return [[kind for kind, _, _ in order].index("B") - 1 for order in orders]
    >>> depths(0.0), depths(1.5)
    ([2, 1, 0], [4, 2, 0])
    """
    if pipeline.num_devices != pipeline.num_stages:
        raise ValueError(
            f"schedule: deep_1f1b needs a device for each of {pipeline.num_stages} stages, "
            f"got {pipeline.num_devices} devices"
        )
    limits = _deepest_that_fit(pipeline)
    candidates = {tuple(map(min, depths, limits)) for depths in _candidates(pipeline)}
    in_turn = sorted(candidates, key=lambda depths: (sum(depths), depths))
    best, shortest_s = in_turn[0], math.inf
    for depths, makespan_s in zip(in_turn, makespans_of(in_turn, pipeline), strict=True):
        if makespan_s < shortest_s * (1.0 - _ROUNDING):
            best, shortest_s = depths, makespan_s
    return tuple(
        warm_up_then_alternate(stage, depth, pipeline.num_microbatches)
        for stage, depth in enumerate(best)
    )


def makespans_of(depths: Sequence[tuple[int, ...]], pipeline: Pipeline) -> list[float]:
    """Return the makespans of warm-ups of all stages, none fewer than the next, by `timing_of`.

    They are equal to the last bit, and infinite where stages wait for each other for ever. [s]
    """
    stages, ways = range(pipeline.num_stages), (pipeline.down, pipeline.up)
    found_s = warm_ups.warm_up_makespans(
        np.array(depths, np.int64),
        pipeline.num_microbatches,
        np.array([[pipeline.duration_s(kind, each) for each in stages] for kind in "FB"]),
        np.array([[border.transfer_s for border in way] for way in ways]),
        np.array([[border.latency_s for border in way] for way in ways]),
    )
    return list(map(float, found_s))


def _deepest_that_fit(pipeline: Pipeline) -> list[int]:
    """Most forwards that each stage has memory to warm up with, and all stages before it.

    A stage that did fewer than the next would wait for it for ever.
    """
    deepest = []
    for stage, activations in enumerate(pipeline.activation_bytes):
        room = pipeline.memory_bytes[pipeline.device_of_stage[stage]] * (1.0 + _ROUNDING)
        if activations > room:
            raise ValueError(
                f"schedule: the device of stage {stage} must have memory for one microbatch, "
                f"{activations:.6g} bytes; got {room:.6g} bytes"
            )
        num_microbatches = pipeline.num_microbatches
        fits_all = activations * num_microbatches <= room
        deepest.append(num_microbatches if fits_all else int(room / activations) - 1)
    return list(accumulate(deepest, min))


def _candidates(pipeline: Pipeline) -> Iterator[tuple[int, ...]]:
    """Warm-ups of all stages, for every period that makes a difference; the plain one first."""
    num_stages, num_microbatches = pipeline.num_stages, pipeline.num_microbatches
    yield tuple(min(num_stages - 1 - stage, num_microbatches) for stage in range(num_stages))
    borders = list(zip(pipeline.down, pipeline.up, strict=True))
    round_trips_s = [
        work_s + next_s + sum(border.transfer_s + border.latency_s for border in both)
        for work_s, next_s, both in zip(pipeline.work_s, pipeline.work_s[1:], borders, strict=False)
    ]
    transfers_s = [border.transfer_s for both in borders for border in both]
    shortest_s = max([*pipeline.work_s, *transfers_s])
    periods_s = {shortest_s, *round_trips_s}
    for round_trip_s in round_trips_s:
        counts = range(1, min(num_microbatches, int(round_trip_s / shortest_s)) + 1)
        periods_s |= {round_trip_s / count for count in counts}
    for period_s in periods_s:
        depth, depths = 0, [0]
        for round_trip_s in reversed(round_trips_s):
            depth += max(0, math.ceil(round_trip_s / period_s * (1.0 - _ROUNDING)) - 1)
            depths.append(min(depth, num_microbatches))
        yield tuple(reversed(depths))
