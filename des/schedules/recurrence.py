"""Start and end times of operations in given orders, by recurrence instead of events."""

from collections.abc import Sequence
from dataclasses import dataclass

from des.schedules.check import completion_order, input_of
from des.schedules.crossings import crossing_of
from des.schedules.operations import MESSAGE_OF, Order
from des.schedules.pipeline import Pipeline


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Start and end of every operation, in the orders' own shape. [s]"""

    start_s: tuple[tuple[float, ...], ...]
    end_s: tuple[tuple[float, ...], ...]

    @property
    def makespan_s(self) -> float:
        """Time from 0 to the end of the last operation."""
        return max(ends[-1] for ends in self.end_s)

    @property
    def longest_worker_s(self) -> float:
        """Longest time any worker takes from its first start to its last end.

        The iteration time of the published zero-bubble tables: in a steady state of many
        iterations, the others' idle time at the borders of iterations overlaps.
        """
        return max(
            ends[-1] - starts[0] for starts, ends in zip(self.start_s, self.end_s, strict=True)
        )


def timing_of(orders: Sequence[Order], pipeline: Pipeline) -> Timing:
    """Time orders of one worker a device: every operation starts as early as it can.

    ``start = max(end of the worker's previous operation, arrival of the input)``; messages from
    one device to another leave one after another in the order in which they are made, and fly for
    the latency (CrossPipe, ATC'25).

    Raises
    ------
    DeadlockError
        If the orders make the workers wait for each other.
    """
    arrival_s: dict[tuple[str, int, int], float] = {}
    wire_free_s: dict[tuple[int, int], float] = {}
    start_s: list[list[float]] = [[] for _ in orders]
    end_s: list[list[float]] = [[] for _ in orders]
    num_stages = pipeline.num_stages
    way_of = {
        (kind, stage): (pipeline.duration_s(kind, stage), crossing_of(kind, stage, pipeline))
        for kind in (*MESSAGE_OF, "W")
        for stage in range(num_stages)
    }
    for worker, operation in completion_order(orders, num_stages):
        kind, microbatch, stage = operation
        needed = input_of(operation, num_stages)
        start = end_s[worker][-1] if end_s[worker] else 0.0
        if needed is not None:
            start = max(start, arrival_s[needed])
        duration_s, crossing = way_of[kind, stage]
        end = start + duration_s
        start_s[worker].append(start)
        end_s[worker].append(end)
        if crossing is None:
            continue
        key = (MESSAGE_OF[kind], microbatch, stage)
        if crossing.wire is None:
            arrival_s[key] = end
            continue
        left_s = max(end, wire_free_s.get(crossing.wire, 0.0)) + crossing.border.transfer_s
        wire_free_s[crossing.wire] = left_s
        arrival_s[key] = left_s + crossing.border.latency_s
    return Timing(start_s=tuple(map(tuple, start_s)), end_s=tuple(map(tuple, end_s)))
