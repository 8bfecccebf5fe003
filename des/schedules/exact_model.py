"""The orders of a pipeline as a constraint model of whole numbers."""

import math
from collections.abc import Iterator, Mapping, Sequence

from ortools.sat.python import cp_model

from des.schedules.crossings import crossing_of
from des.schedules.operations import Operation, Order, Orders, Pass
from des.schedules.pipeline import Pipeline
from des.schedules.recurrence import timing_of
from des.schedules.ticks import in_ticks

_MEMORY_PARTS = 10**6
"""Parts of a device's memory: times a makespan in ticks they stay far below 2^63."""

_PASSES: tuple[Pass, Pass, Pass] = ("F", "D", "W")
_PLACES = {"F": 0, "D": 1, "B": 1, "W": 2}
"""Ranks of passes without a duration, in the order of their dependence."""


def stages_with_whole_passes(pipeline: Pipeline) -> frozenset[int]:
    """Stages where a whole backward pass may be better than its two halves.

    A whole pass sends its gradient later and keeps the activations until its end. That saves memory
    where the second half would keep more than they are, and memory is limited.
    """
    return frozenset(
        stage
        for stage, device in enumerate(pipeline.device_of_stage)
        if pipeline.weight_input_bytes[stage] > pipeline.activation_bytes[stage]
        and not math.isinf(pipeline.memory_bytes[device])
    )


class OrderModel:
    """Starts of all passes and messages of a pipeline, in ticks, of which the last end is least.

    A whole backward pass is ``W`` right after ``D``; the model chooses it where
    `stages_with_whole_passes` says so.
    """

    def __init__(self, pipeline: Pipeline, start: Orders) -> None:
        self.cp = cp_model.CpModel()
        self._whole = {
            (microbatch, stage): self.cp.new_bool_var("")
            for stage in sorted(stages_with_whole_passes(pipeline))
            for microbatch in range(pipeline.num_microbatches)
        }
        self._pipeline, self.tick_s = in_ticks(pipeline, start)
        timing = timing_of(start, self._pipeline)
        self._horizon = int(timing.makespan_s)
        self._starts = dict(self._passes())
        self._join_whole_passes()
        self._leaves: dict[Operation, cp_model.IntVar] = {}
        self._send()
        for device in range(pipeline.num_devices):
            self._hold(device)
        makespan = self.cp.new_int_var(0, self._horizon, "makespan")
        for operation in self._starts:
            self.cp.add(makespan >= self._end(operation))
        self.cp.minimize(makespan)
        self.cp.add_hint(makespan, self._horizon)
        self._hint(start, timing.start_s)

    def _passes(self) -> Iterator[tuple[Operation, cp_model.IntVar]]:
        """Start of every pass; a device does one at a time, a kind in order of microbatches."""
        pipeline = self._pipeline
        on_device: list[list[cp_model.IntervalVar]] = [[] for _ in range(pipeline.num_devices)]
        for stage, device in enumerate(pipeline.device_of_stage):
            previous: dict[Pass, cp_model.LinearExprT] = dict.fromkeys(_PASSES, 0)
            for microbatch in range(pipeline.num_microbatches):
                ready: cp_model.LinearExprT = 0
                for kind in _PASSES:
                    operation = Operation(kind, microbatch, stage)
                    start = self.cp.new_int_var(0, self._horizon, str(operation))
                    ticks = int(pipeline.duration_s(kind, stage))
                    on_device[device].append(self.cp.new_fixed_size_interval_var(start, ticks, ""))
                    self.cp.add(start >= ready)
                    in_order = self.cp.add(start >= previous[kind])
                    if kind == "W" and (microbatch, stage) in self._whole:
                        # A whole pass need not wait for halves put off before it.
                        in_order.only_enforce_if(~self._whole[microbatch, stage])
                    ready = previous[kind] = start + ticks
                    yield operation, start
        for intervals in on_device:
            self.cp.add_no_overlap(intervals)

    def _join_whole_passes(self) -> None:
        for (microbatch, stage), whole in self._whole.items():
            second = self._starts[Operation("W", microbatch, stage)]
            first_end = self._end(Operation("D", microbatch, stage))
            self.cp.add(second == first_end).only_enforce_if(whole)

    def _end(self, operation: Operation) -> cp_model.LinearExprT:
        ticks = int(self._pipeline.duration_s(operation.kind, operation.stage))
        return self._starts[operation] + ticks

    def _add_after(self, later: cp_model.LinearExprT, operation: Operation) -> None:
        """Let something begin when the output of a pass is made: a whole one's at its very end."""
        kind, microbatch, stage = operation
        self.cp.add(later >= self._end(operation))
        if kind == "D" and (microbatch, stage) in self._whole:
            whole_end = self._end(Operation("W", microbatch, stage))
            self.cp.add(later >= whole_end).only_enforce_if(self._whole[microbatch, stage])

    def _send(self) -> None:
        """A pass starts when its input has arrived; a wire carries one message at a time."""
        on_wire: dict[tuple[int, int], list[cp_model.IntervalVar]] = {}
        for operation in self._starts:
            kind, microbatch, stage = operation
            crossing = crossing_of(kind, stage, self._pipeline)
            if crossing is None:
                continue
            transfer, latency = map(int, (crossing.border.transfer_s, crossing.border.latency_s))
            receiver = self._starts[Operation(kind, microbatch, crossing.receiver)]
            if crossing.wire is None or not transfer:
                self._add_after(receiver - transfer - latency, operation)
                continue
            leaves = self._leaves[operation] = self.cp.new_int_var(0, self._horizon, "")
            self._add_after(leaves, operation)
            interval = self.cp.new_fixed_size_interval_var(leaves, transfer, "")
            on_wire.setdefault(crossing.wire, []).append(interval)
            self.cp.add(receiver >= leaves + transfer + latency)
        for intervals in on_wire.values():
            self.cp.add_no_overlap(intervals)

    def _hold(self, device: int) -> None:
        """Memory kept from the start of F to the end of D, and from there to the end of W.

        A whole backward pass keeps the same from its first half to its end.
        """
        pipeline = self._pipeline
        if math.isinf(pipeline.memory_bytes[device]):
            return
        part = pipeline.memory_bytes[device] / _MEMORY_PARTS
        intervals, needs = [], []
        for operation in self._starts:
            kind, microbatch, stage = operation
            if kind == "F" or pipeline.device_of_stage[stage] != device:
                continue
            before = Operation("F" if kind == "D" else "D", microbatch, stage)
            begin = self._starts[before] if kind == "D" else self._end(before)
            held = pipeline.activation_bytes if kind == "D" else pipeline.weight_input_bytes
            size = self.cp.new_int_var(0, self._horizon, "")
            span = begin, size, self._end(operation)
            needs.append(int(held[stage] / part))
            if kind == "D" or (microbatch, stage) not in self._whole:
                intervals.append(self.cp.new_interval_var(*span, ""))
                continue
            whole = self._whole[microbatch, stage]
            intervals.append(self.cp.new_optional_interval_var(*span, ~whole, ""))
            intervals.append(self.cp.new_optional_interval_var(*span, whole, ""))
            needs.append(int(pipeline.activation_bytes[stage] / part))
        self.cp.add_cumulative(intervals, needs, _MEMORY_PARTS)

    def _hint(self, orders: Orders, start_s: Sequence[Sequence[float]]) -> None:
        """Let the search begin with these orders; times in ticks."""
        wire_free: dict[tuple[int, int], int] = {}
        for order, times in zip(orders, start_s, strict=True):
            for operation, time in zip(order, times, strict=True):
                kind, microbatch, stage = operation
                first = Operation("D" if kind == "B" else kind, microbatch, stage)
                self.cp.add_hint(self._starts[first], int(time))
                if kind in "BD" and (microbatch, stage) in self._whole:
                    self.cp.add_hint(self._whole[microbatch, stage], kind == "B")
                if kind == "B":
                    second = self._starts[Operation("W", microbatch, stage)]
                    self.cp.add_hint(second, int(time + self._pipeline.duration_s("D", stage)))
                if first not in self._leaves:
                    continue
                crossing = crossing_of(kind, stage, self._pipeline)
                assert crossing is not None
                assert crossing.wire is not None
                ready = int(time + self._pipeline.duration_s(kind, stage))
                leaves = max(ready, wire_free.get(crossing.wire, 0))
                wire_free[crossing.wire] = leaves + int(crossing.border.transfer_s)
                self.cp.add_hint(self._leaves[first], leaves)

    def orders(self, solver: cp_model.CpSolver) -> Orders:
        """Orders of what was found, one per device."""
        starts = {operation: solver.value(start) for operation, start in self._starts.items()}
        for (microbatch, stage), whole in self._whole.items():
            if solver.value(whole):
                del starts[Operation("W", microbatch, stage)]
                begin = starts.pop(Operation("D", microbatch, stage))
                starts[Operation("B", microbatch, stage)] = begin
        return tuple(self._order(device, starts) for device in range(self._pipeline.num_devices))

    def _order(self, device: int, starts: Mapping[Operation, int]) -> Order:
        """Passes of a device by start; those without a duration as they depend on each other."""
        device_of_stage = self._pipeline.device_of_stage
        own = [operation for operation in starts if device_of_stage[operation.stage] == device]

        def place(operation: Operation) -> tuple[float, ...]:
            kind, microbatch, stage = operation
            start = starts[operation]
            ticks = self._pipeline.duration_s(kind, stage)
            along = stage if kind == "F" else -stage
            return start, start + ticks, _PLACES[kind], microbatch, along

        return tuple(sorted(own, key=place))
