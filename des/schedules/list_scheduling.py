"""List scheduling: a clock runs forward, and a device that is free does what its rule says."""

import heapq
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from des.base.checks import require_non_negative
from des.schedules.crossings import crossing_of
from des.schedules.operations import Operation, Orders, Pass
from des.schedules.pipeline import Pipeline

ROUNDING = 1.0 + 1e-9
"""Sums of the same terms in another order differ by less."""

Turn = Literal["F", "D", "alternate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchRule:
    """Priority rule of a free device between operations.

    Parameters
    ----------
    turn
        Preference between a forward pass and an input gradient that can both start: always the
        one, always the other, or in turn.
    hold_fraction
        A forward pass is held back if an input gradient is known to come within this part of the
        forward pass's own time. 0 never holds back.
    gap_fraction
        A weight gradient fills a gap if the next other pass is not known to start within this part
        of the weight gradient's own time. 0 fills every gap; 1 delays nothing that is known.
    """

    turn: Turn
    hold_fraction: float
    gap_fraction: float

    def __post_init__(self) -> None:
        if self.turn not in ("F", "D", "alternate"):
            raise ValueError(f"rule: turn must be F, D or alternate, got {self.turn!r}")
        require_non_negative("rule", "hold_fraction", self.hold_fraction)
        require_non_negative("rule", "gap_fraction", self.gap_fraction)


def list_schedule(pipeline: Pipeline, rule: DispatchRule) -> Orders:
    """Run a clock forward, from the end of a pass or the arrival of an input to the next.

    A device that is free does a forward pass or an input gradient whose input is there, as the
    rule says, and of several stages that which is furthest on its way. Where neither can start, a
    weight gradient may. All it knows of the future is what passes already begun will send it.

    Forward passes start only where memory is left for one microbatch on the device's later stages
    and for an input gradient that keeps more than it frees. Without that room the stages on a
    device could block each other for ever; with it the oldest microbatch can always proceed.

    Raises
    ------
    ValueError
        If a device has no memory for one microbatch on each of its stages.

    Examples
    --------
    >>> rule = DispatchRule(turn="alternate", hold_fraction=0.0, gap_fraction=1.0)
    >>> for order in list_schedule(Pipeline.uniform(2, 3), rule):
    ...     print(*(f"{kind}{microbatch}" for kind, microbatch, _ in order))
    F0 F1 F2 D0 W0 D1 W1 D2 W2
    F0 D0 F1 D1 F2 D2 W0 W1 W2
    """
    return _Board(pipeline, rule).play()


@dataclass(slots=True, kw_only=True)
class _Device:
    """State of one device: operations done, memory held, and work left to fill gaps with."""

    stages: dict[str, tuple[int, ...]]
    memory_bytes: float
    free_s: float = 0.0
    held_bytes: float = 0.0
    last: Pass = "D"
    pending: deque[Operation] = field(default_factory=deque)
    order: list[Operation] = field(default_factory=list)


class _Board:
    """A schedule in the making: which inputs have come or are on their way, and what is next."""

    def __init__(self, pipeline: Pipeline, rule: DispatchRule) -> None:
        self._pipeline = pipeline
        self._rule = rule
        self._wire_free_s: dict[tuple[int, int], float] = {}
        self._needed_bytes = _needed_bytes(pipeline)
        self._devices = [
            _device(number, pipeline, self._needed_bytes) for number in range(pipeline.num_devices)
        ]
        stages = range(pipeline.num_stages)
        self._crossings = {
            (kind, stage): crossing_of(kind, stage, pipeline) for kind in "FDW" for stage in stages
        }
        self._next = {(kind, stage): 0 for kind in "FD" for stage in stages}
        self._arrivals_s: dict[tuple[str, int], list[float]] = {key: [] for key in self._next}
        self._arrivals_s["F", 0] = [0.0] * pipeline.num_microbatches
        self._moments = [(0.0, number) for number in range(pipeline.num_devices)]

    def play(self) -> Orders:
        """Run the clock until everything is done."""
        num_left = 3 * self._pipeline.num_stages * self._pipeline.num_microbatches
        while num_left:
            # A waiting device waits for an input on its way, whose arrival is among the moments.
            now_s, number = heapq.heappop(self._moments)
            device = self._devices[number]
            if now_s < device.free_s:
                continue
            operation = self._choose(device, now_s)
            if operation is not None:
                self._do(operation, device, now_s)
                heapq.heappush(self._moments, (device.free_s, number))
                num_left -= 1
        return tuple(tuple(device.order) for device in self._devices)

    def _choose(self, device: _Device, now_s: float) -> Operation | None:
        """Next operation of a free device, by its rule; None where it waits."""
        rule, soon_s = self._rule, now_s * ROUNDING
        forward_s, forward = self._first("F", device, now_s)
        gradient_s, gradient = self._first("D", device, now_s)
        if forward_s <= soon_s and gradient_s <= soon_s:
            turn = ("F" if device.last == "D" else "D") if rule.turn == "alternate" else rule.turn
            return forward if turn == "F" else gradient
        if gradient_s <= soon_s:
            return gradient
        next_s = min(forward_s, gradient_s)
        if forward_s <= soon_s:
            assert forward is not None
            hold_s = rule.hold_fraction * self._pipeline.forward_s[forward.stage]
            if gradient_s * ROUNDING >= now_s + hold_s:
                return forward
            next_s = gradient_s
        if device.pending:
            filler = device.pending[0]
            gap_s = rule.gap_fraction * self._pipeline.weight_gradient_s[filler.stage]
            if next_s * ROUNDING >= now_s + gap_s:
                return filler
        return None

    def _first(self, kind: Pass, device: _Device, now_s: float) -> tuple[float, Operation | None]:
        """Pass of a kind that can start first, and when; infinity where none is known to."""
        first_s, first = math.inf, None
        for stage in device.stages[kind]:
            microbatch, arrivals_s = self._next[kind, stage], self._arrivals_s[kind, stage]
            if microbatch == len(arrivals_s):
                continue
            needed_bytes = device.held_bytes + self._needed_bytes[kind, stage]
            start_s = max(now_s, arrivals_s[microbatch])
            if start_s < first_s and needed_bytes <= device.memory_bytes:
                first_s, first = start_s, Operation(kind, microbatch, stage)
        return first_s, first

    def _do(self, operation: Operation, device: _Device, now_s: float) -> None:
        """Note that it is done, what it holds or frees, and when its output arrives."""
        pipeline = self._pipeline
        kind, microbatch, stage = operation
        whole, rest = pipeline.activation_bytes[stage], pipeline.weight_input_bytes[stage]
        device.free_s = now_s + pipeline.duration_s(kind, stage)
        device.order.append(operation)
        device.held_bytes += {"F": whole, "D": rest - whole, "W": -rest}[kind]
        if kind == "W":
            device.pending.popleft()
            return
        device.last = kind
        self._next[kind, stage] += 1
        if kind == "D":
            device.pending.append(Operation("W", microbatch, stage))
        elif stage == pipeline.num_stages - 1:
            self._arrivals_s["D", stage].append(device.free_s)
        self._send(operation, device.free_s)

    def _send(self, operation: Operation, ready_s: float) -> None:
        crossing = self._crossings[operation.kind, operation.stage]
        if crossing is None:
            return
        arrival_s = ready_s
        if crossing.wire is not None:
            start_s = max(ready_s, self._wire_free_s.get(crossing.wire, 0.0))
            end_s = self._wire_free_s[crossing.wire] = start_s + crossing.border.transfer_s
            arrival_s = end_s + crossing.border.latency_s
        self._arrivals_s[operation.kind, crossing.receiver].append(arrival_s)
        receiver = self._pipeline.device_of_stage[crossing.receiver]
        heapq.heappush(self._moments, (arrival_s, receiver))


def _device(number: int, pipeline: Pipeline, needed_bytes: dict[tuple[str, int], float]) -> _Device:
    numbered = enumerate(pipeline.device_of_stage)
    stages = tuple(stage for stage, where in numbered if where == number)
    memory_bytes = pipeline.memory_bytes[number]
    least_bytes = needed_bytes["F", stages[0]]
    if least_bytes > memory_bytes * ROUNDING:
        raise ValueError(
            f"schedule: device {number} must have memory for one microbatch on each of its "
            f"stages, {least_bytes:.6g} bytes; got {memory_bytes:.6g} bytes"
        )
    return _Device(stages={"F": stages[::-1], "D": stages}, memory_bytes=memory_bytes * ROUNDING)


def _needed_bytes(pipeline: Pipeline) -> dict[tuple[str, int], float]:
    """Memory that must be left where a pass of a kind and stage is to start."""
    whole, rest = pipeline.activation_bytes, pipeline.weight_input_bytes
    growth = [max(0.0, kept - held) for held, kept in zip(whole, rest, strict=True)]
    needed: dict[tuple[str, int], float] = {}
    for stage, device in enumerate(pipeline.device_of_stage):
        own = [each for each, where in enumerate(pipeline.device_of_stage) if where == device]
        later = sum(whole[each] for each in own if each >= stage)
        needed["F", stage] = later + max(growth[each] for each in own)
        needed["D", stage] = growth[stage]
    return needed
