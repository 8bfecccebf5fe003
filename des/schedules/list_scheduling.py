"""List scheduling: a clock runs forward, and a device that is free does what its rule says."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from des.base.checks import require_non_negative
from des.base.lazy import lazy_imports
from des.schedules.crossings import crossing_of
from des.schedules.operations import Operation, Orders, Pass
from des.schedules.pipeline import Pipeline

with lazy_imports(__name__):
    from des.schedules.kernels import board, dispatch

Objective = Literal["longest_worker_s", "makespan_s"]
"""Objective of a search for a schedule; see `des.schedules.recurrence.Timing`."""

Turn = Literal["F", "D", "alternate"]

_KINDS: tuple[Pass, ...] = ("F", "D", "W")
_NUMBER_OF = {kind: number for number, kind in enumerate(_KINDS)}


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
        if self.turn not in get_args(Turn):
            raise ValueError(f"rule: turn must be F, D or alternate, got {self.turn!r}")
        require_non_negative("rule", "hold_fraction", self.hold_fraction)
        require_non_negative("rule", "gap_fraction", self.gap_fraction)


class ListScheduler:
    """Schedules of one pipeline under one rule after another: a clock runs forward, from the end of
    a pass or the arrival of an input to the next.

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
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._flow = _flow(pipeline)
        self._board = board.new_board(self._flow)

    def run(
        self,
        rule: DispatchRule,
        *,
        limit_s: float = math.inf,
        objective: Objective = "makespan_s",
    ) -> tuple[float, float]:
        """Make the orders of a rule; returns `longest_worker_s` and `makespan_s` of their timing.

        They are those of `des.schedules.recurrence.timing_of`; both are ``inf`` where the objective
        would exceed a limit. [s]
        """
        return self.run_all([rule], limit_s=limit_s, objective=objective)[0]

    def run_all(
        self,
        rules: Sequence[DispatchRule],
        *,
        limit_s: float = math.inf,
        objective: Objective = "makespan_s",
    ) -> list[tuple[float, float]]:
        """Make the orders of one rule after another, see `run`.

        The time of each rule is a limit for later ones.
        """
        turns, times_s = get_args(Turn), np.empty((len(rules), 2))
        dispatch.dispatch_rules(
            self._flow,
            self._board,
            np.array([turns.index(rule.turn) for rule in rules]),
            np.array([float(rule.hold_fraction) for rule in rules]),
            np.array([float(rule.gap_fraction) for rule in rules]),
            limit_s,
            objective == "longest_worker_s",
            times_s,
        )
        is_done = bool(np.isfinite(times_s[0]).all())
        assert is_done or limit_s < math.inf, "a device waits for an input on its way"
        return [(longest_s, makespan_s) for longest_s, makespan_s in times_s.tolist()]

    def follow(self, orders: Orders) -> tuple[float, float]:
        """Work out the same times of given orders of halved passes, in turn of microbatches."""
        count, num_stages = self._flow.num_microbatches, len(self._flow.device)
        numbers = np.full((len(orders), max(map(len, orders))), -1)
        for row, order in zip(numbers, orders, strict=True):
            row[: len(order)] = [
                (_NUMBER_OF[kind] * num_stages + stage) * count + microbatch
                for kind, microbatch, stage in order
            ]
        done = dispatch.follow(self._flow, self._board, numbers)
        assert done, "orders block one another"
        return self._timing()

    def _timing(self) -> tuple[float, float]:
        begin_s, end_s = self._board.begin_s, self._board.end_s
        return float((end_s - begin_s).max()), float(end_s.max())

    def orders(self) -> Orders:
        """Return the orders made last."""
        count, num_stages = self._flow.num_microbatches, len(self._flow.device)
        orders = []
        for own, num_done in zip(self._board.order, self._board.num_done.tolist(), strict=True):
            stages, microbatches = np.divmod(own[:num_done], count)
            kinds, stages = np.divmod(stages, num_stages)
            passes = map(_KINDS.__getitem__, kinds.tolist())
            orders.append(tuple(map(Operation, passes, microbatches.tolist(), stages.tolist())))
        return tuple(orders)


def list_schedule(pipeline: Pipeline, rule: DispatchRule) -> Orders:
    """Make the orders of one rule, see `ListScheduler`.

    Examples
    --------
    >>> rule = DispatchRule(turn="alternate", hold_fraction=0.0, gap_fraction=1.0)
    >>> for order in list_schedule(Pipeline.uniform(2, 3), rule):
    ...     print(*(f"{kind}{microbatch}" for kind, microbatch, _ in order))
    F0 F1 F2 D0 W0 D1 W1 D2 W2
    F0 D0 F1 D1 F2 D2 W0 W1 W2
    """
    scheduler = ListScheduler(pipeline)
    scheduler.run(rule)
    return scheduler.orders()


def _flow(pipeline: Pipeline) -> "board.Flow":
    """Write a pipeline down as arrays."""
    needed_bytes = _needed_bytes(pipeline)
    devices, num_stages = pipeline.device_of_stage, pipeline.num_stages
    own = [_stages(number, pipeline, needed_bytes) for number in range(pipeline.num_devices)]
    receiver, wire = np.full((2, 2, num_stages), -1)
    transfer_s, latency_s = np.zeros((2, 2, num_stages))
    wires: dict[tuple[int, int], int] = {}
    for row, kind in enumerate("FD"):
        for stage in range(num_stages):
            crossing = crossing_of(kind, stage, pipeline)
            if crossing is None:
                continue
            receiver[row, stage] = crossing.receiver
            if crossing.wire is not None:
                wire[row, stage] = wires.setdefault(crossing.wire, len(wires))
            transfer_s[row, stage] = crossing.border.transfer_s
            latency_s[row, stage] = crossing.border.latency_s
    tails_s = [0.0]
    for stage in range(1, num_stages):
        hop_s = transfer_s[1, stage] + latency_s[1, stage]
        tails_s.append(tails_s[-1] + hop_s + pipeline.input_gradient_s[stage - 1])
    whole, rest = np.array(pipeline.activation_bytes), np.array(pipeline.weight_input_bytes)
    return board.Flow(
        num_microbatches=pipeline.num_microbatches,
        device=np.array(devices),
        first=np.cumsum([0, *map(len, own)]),
        stages=np.concatenate(own),
        passes_s=np.array(
            [pipeline.forward_s, pipeline.input_gradient_s, pipeline.weight_gradient_s], float
        ),
        receiver=receiver,
        wire=wire,
        transfer_s=transfer_s,
        latency_s=latency_s,
        needed_bytes=needed_bytes,
        change_bytes=np.array([whole, rest - whole, -rest], float),
        memory_bytes=np.array(pipeline.memory_bytes, float) * dispatch.ROUNDING,
        tail_s=np.array([min(tails_s[stage] for stage in each) for each in own]),
    )


def _stages(number: int, pipeline: Pipeline, needed_bytes: np.ndarray) -> list[int]:
    """Stages of a device, whose memory must hold a microbatch on each."""
    stages = [stage for stage, where in enumerate(pipeline.device_of_stage) if where == number]
    memory_bytes, least_bytes = pipeline.memory_bytes[number], needed_bytes[0, stages[0]]
    if least_bytes > memory_bytes * dispatch.ROUNDING:
        raise ValueError(
            f"schedule: device {number} must have memory for one microbatch on each of its "
            f"stages, {least_bytes:.6g} bytes; got {memory_bytes:.6g} bytes"
        )
    return stages


def _needed_bytes(pipeline: Pipeline) -> np.ndarray:
    """Memory that must be left where a forward pass or an input gradient of a stage is to start."""
    whole, rest = pipeline.activation_bytes, pipeline.weight_input_bytes
    growth = [max(0.0, kept - held) for held, kept in zip(whole, rest, strict=True)]
    needed = np.zeros((2, pipeline.num_stages))
    for stage, device in enumerate(pipeline.device_of_stage):
        own = [each for each, where in enumerate(pipeline.device_of_stage) if where == device]
        later = sum(whole[each] for each in own if each >= stage)
        needed[0, stage] = later + max(growth[each] for each in own)
        needed[1, stage] = growth[stage]
    return needed
