"""The fastest order by constraint programming, with a proof of how far from it one may be."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from des.base.checks import require_non_negative
from des.schedules.automatic import automatic_zero_bubble
from des.schedules.check import check_order_memory
from des.schedules.crossings import crossing_of
from des.schedules.deep_1f1b import deep_1f1b
from des.schedules.greedy import greedy
from des.schedules.operations import Operation, Order, Orders, Pass
from des.schedules.pipeline import Pipeline
from des.schedules.recurrence import timing_of
from des.schedules.ticks import in_ticks

_MEMORY_PARTS = 10**6
"""Of a device: times a makespan in ticks they stay far below 2^63."""

_ROUNDING = 1e-9  # of sums of the same terms in another order
_HALVES: tuple[Pass, Pass, Pass] = ("F", "D", "W")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSchedule:
    """The best orders found, their makespan, and what no orders can go below."""

    orders: Orders
    makespan_s: float
    lower_bound_s: float

    @property
    def gap_fraction(self) -> float:
        """How much longer than the bound; 0 is proven optimal, up to the search's rounding.

        Infinite where the search had no time to prove anything.
        """
        if self.lower_bound_s == 0.0:
            return math.inf
        return self.makespan_s / self.lower_bound_s - 1.0


def exact(
    pipeline: Pipeline,
    *,
    starts: Sequence[Orders] = (),
    time_limit_s: float = 300.0,
    work_limit: float = math.inf,
    seed: int = 0,
) -> ExactSchedule:
    """Search for the orders of least makespan within memory, from the best that is known.

    The search starts from the fastest of `greedy`, `automatic_zero_bubble`, `deep_1f1b` where each
    device has one stage, and ``starts``, and never returns worse.

    Parameters
    ----------
    starts
        Further orders, one a device, that are valid; those that do not fit into memory are passed
        over.
    time_limit_s
        Limit of the search. What is found within a time differs from run to run.
    work_limit
        Limit in units of CP-SAT's deterministic time, 3 to 10 s of a core each. If it ends
        the search, or nothing does, equal arguments give equal results.
    seed
        Of the search.

    Raises
    ------
    ValueError
        If a device has no memory for one microbatch on each of its stages, or a limit is negative.

    Notes
    -----
    The model is CrossPipe's [1]_: an interval for each pass and each transfer; a device and a wire
    do one thing at a time; a pass starts when its input has arrived; memory as in `peak_bytes`;
    passes of a kind on a stage go in the order of the microbatches, which are alike. Times are cut
    to whole microseconds (a 10^8th of the makespan where that is longer) and activations to whole
    millionths of the memory, and a wire may hold back a message for one of another stage. All of
    that makes the model's optimum less, so its bound is a bound. The makespan is that of
    `timing_of`, and orders are kept only if they fit by `check_order_memory`.

    References
    ----------
    .. [1] T. Chen et al., "CrossPipe: Towards Optimal Pipeline Schedules for Cross-Datacenter
       Training", USENIX ATC 2025.

    Examples
    --------
    >>> found = exact(Pipeline.uniform(2, 3))
    >>> found.makespan_s, found.lower_bound_s, found.gap_fraction
    (10.0, 10.0, 0.0)
    """
    require_non_negative("exact", "time_limit_s", time_limit_s)
    if not work_limit >= 0.0:
        raise ValueError(f"exact: work_limit must be at least 0, got {work_limit!r}")
    known = [greedy(pipeline), automatic_zero_bubble(pipeline, "makespan_s")]
    known += map(_in_halves, starts)
    if pipeline.num_devices == pipeline.num_stages:
        known.append(_in_halves(deep_1f1b(pipeline)))
    fitting = [orders for orders in known if _fits(orders, pipeline)]
    start = min(fitting, key=lambda orders: timing_of(orders, pipeline).makespan_s)
    search = _Search(pipeline, start)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit_s
    solver.parameters.max_deterministic_time = work_limit
    solver.parameters.random_seed = seed
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False  # Ctrl-C ends the program, not the search alone
    solver.parameters.interleave_search = True  # several strategies in turn, deterministically
    status = solver.solve(search.model)
    known_status = (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN)
    assert status in known_status, solver.status_name(status)
    orders = (
        start if status == cp_model.UNKNOWN else _better(search.orders(solver), start, pipeline)
    )
    makespan_s = timing_of(orders, pipeline).makespan_s
    lower_bound_s = solver.best_objective_bound * search.tick_s
    return ExactSchedule(
        orders=orders,
        makespan_s=makespan_s,
        lower_bound_s=min(lower_bound_s, makespan_s),  # less but for the last digits
    )


def _better(found: Orders, start: Orders, pipeline: Pipeline) -> Orders:
    """The faster of the two, or the start where what was found does not fit."""
    if not _fits(found, pipeline):  # the model's memory was rounded
        return start
    return min(start, found, key=lambda orders: timing_of(orders, pipeline).makespan_s)


def _fits(orders: Orders, pipeline: Pipeline) -> bool:
    """Whether orders keep within memory: halves of a backward pass may need more than it."""
    try:
        check_order_memory(orders, pipeline)
    except ValueError:
        return False
    return True


def _in_halves(orders: Orders) -> Orders:
    """The same orders with each whole backward pass as its two halves."""
    return tuple(tuple(half for one in order for half in _halves(one)) for order in orders)


def _halves(operation: Operation) -> Iterator[Operation]:
    kinds: tuple[Pass, ...] = ("D", "W") if operation.kind == "B" else (operation.kind,)
    for kind in kinds:
        yield Operation(kind, operation.microbatch, operation.stage)


class _Search:
    """The constraint model of a pipeline, in ticks."""

    def __init__(self, pipeline: Pipeline, start: Orders) -> None:
        self.model = cp_model.CpModel()
        self._pipeline, self.tick_s = in_ticks(pipeline, start)
        timing = timing_of(start, self._pipeline)
        self._horizon = int(timing.makespan_s)
        self._starts = dict(self._passes())
        self._leaves: dict[Operation, cp_model.IntVar] = {}
        self._send()
        for device in range(pipeline.num_devices):
            self._hold(device)
        makespan = self.model.new_int_var(0, self._horizon, "makespan")
        for operation in self._starts:
            self.model.add(makespan >= self._end(operation))
        self.model.minimize(makespan)
        self.model.add_hint(makespan, self._horizon)
        self._hint(start, timing.start_s)

    def _passes(self) -> Iterator[tuple[Operation, cp_model.IntVar]]:
        """Start of every pass; a device does one at a time, a kind in order of microbatches."""
        model, pipeline = self.model, self._pipeline
        on_device: list[list[cp_model.IntervalVar]] = [[] for _ in range(pipeline.num_devices)]
        for stage, device in enumerate(pipeline.device_of_stage):
            previous: dict[Pass, cp_model.LinearExprT] = dict.fromkeys(_HALVES, 0)
            for microbatch in range(pipeline.num_microbatches):
                ready: cp_model.LinearExprT = 0
                for kind in _HALVES:
                    operation = Operation(kind, microbatch, stage)
                    start = model.new_int_var(0, self._horizon, str(operation))
                    ticks = int(pipeline.duration_s(kind, stage))
                    on_device[device].append(model.new_fixed_size_interval_var(start, ticks, ""))
                    model.add(start >= ready)
                    model.add(start >= previous[kind])
                    ready = previous[kind] = start + ticks
                    yield operation, start
        for intervals in on_device:
            model.add_no_overlap(intervals)

    def _end(self, operation: Operation) -> cp_model.LinearExprT:
        ticks = int(self._pipeline.duration_s(operation.kind, operation.stage))
        return self._starts[operation] + ticks

    def _send(self) -> None:
        """A pass starts when its input has arrived; a wire carries one message at a time."""
        model = self.model
        on_wire: dict[tuple[int, int], list[cp_model.IntervalVar]] = {}
        for operation in self._starts:
            kind, microbatch, stage = operation
            crossing = crossing_of(kind, stage, self._pipeline)
            if crossing is None:
                continue
            transfer, latency = map(int, (crossing.border.transfer_s, crossing.border.latency_s))
            receiver = self._starts[Operation(kind, microbatch, crossing.receiver)]
            leaves: cp_model.LinearExprT = self._end(operation)
            if crossing.wire is not None and transfer:
                leaves = self._leaves[operation] = model.new_int_var(0, self._horizon, "")
                model.add(leaves >= self._end(operation))
                interval = model.new_fixed_size_interval_var(leaves, transfer, "")
                on_wire.setdefault(crossing.wire, []).append(interval)
            model.add(receiver >= leaves + transfer + latency)
        for intervals in on_wire.values():
            model.add_no_overlap(intervals)

    def _hold(self, device: int) -> None:
        """What is kept from the start of F to the end of D, and from there to the end of W."""
        model, pipeline = self.model, self._pipeline
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
            size = model.new_int_var(0, self._horizon, "")
            intervals.append(model.new_interval_var(begin, size, self._end(operation), ""))
            needs.append(int(held[stage] / part))
        model.add_cumulative(intervals, needs, _MEMORY_PARTS)

    def _hint(self, orders: Orders, start_s: Sequence[Sequence[float]]) -> None:
        """Let the search begin with these orders; times in ticks."""
        wire_free: dict[tuple[int, int], int] = {}
        for order, times in zip(orders, start_s, strict=True):
            for operation, time in zip(order, times, strict=True):
                self.model.add_hint(self._starts[operation], int(time))
                if operation not in self._leaves:
                    continue
                kind, _, stage = operation
                crossing = crossing_of(kind, stage, self._pipeline)
                assert crossing is not None
                assert crossing.wire is not None
                ready = int(time + self._pipeline.duration_s(kind, stage))
                leaves = max(ready, wire_free.get(crossing.wire, 0))
                wire_free[crossing.wire] = leaves + int(crossing.border.transfer_s)
                self.model.add_hint(self._leaves[operation], leaves)

    def orders(self, solver: cp_model.CpSolver) -> Orders:
        """Orders of what was found, one a device."""
        starts = {operation: solver.value(start) for operation, start in self._starts.items()}
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
            return start, start + ticks, _HALVES.index(kind), microbatch, along

        return tuple(sorted(own, key=place))
