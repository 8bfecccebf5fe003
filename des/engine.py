"""Discrete-event simulation of one training iteration over domains and WAN links.

Every stage is a SimPy process that works through its operations in order. What it computes ends
at ``max(own last end, arrival of the input, device free) + duration``; the event queue decides who
comes first where stages share a device or a link.
"""

import math
from collections.abc import Generator, Sequence
from heapq import heappush

import simpy
from simpy.events import NORMAL

from des.corrections import NO_CORRECTIONS, Corrections
from des.costs import Weather, stage_times_s
from des.memory import memory_of_orders
from des.placement import Plan, Stage
from des.result import IterationResult, LinkUse, Span, StageUse, Transfer
from des.schedules import Operation, StageOrder, check_orders, stage_orders
from des.topology import Topology
from des.wire import Wire
from des.workload import Workload


class DeadlockError(RuntimeError):
    """The stages wait for each other for ever."""


def simulate(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
) -> IterationResult:
    """Simulate one iteration of a plan.

    A plan that exceeds the memory of a domain is simulated as if it fitted, and the result says so
    in ``fits_memory``; see `des.memory.check_memory` to refuse it.

    Raises
    ------
    ValueError
        If the placement does not match the workload or the topology.
    UnreachableError
        If the plan sends between domains that no path joins.
    """
    num_stages = len(plan.placement.stages)
    orders = stage_orders(plan.schedule, num_stages, workload.num_microbatches)
    return _run(topology, workload, plan, orders, corrections)


def simulate_orders(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    orders: Sequence[StageOrder],
    corrections: Corrections = NO_CORRECTIONS,
) -> IterationResult:
    """Simulate one iteration with orders of one's own instead of the plan's schedule.

    Raises
    ------
    ValueError
        As `simulate`, or if a stage's order is not each pass of each microbatch once, the forward
        before the backward.
    DeadlockError
        If the orders make the stages wait for each other; the message names the operations.
    """
    check_orders(orders, len(plan.placement.stages), workload.num_microbatches)
    return _run(topology, workload, plan, orders, corrections)


def _run(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    orders: Sequence[StageOrder],
    corrections: Corrections,
) -> IterationResult:
    plan.placement.check_against(topology, workload)
    pipeline = _Pipeline(topology, workload, plan, orders, corrections)
    pipeline.run()
    return pipeline.result(topology, workload, plan)


class _Clock(simpy.Environment):
    """Lets events happen at a time, where SimPy adds a delay to the present and rounds.

    So ``now`` is exactly the time that was computed, and what was computed to happen at the same
    time, or in an order, does.
    """

    def at(self, time_s: float, event: simpy.Event | None = None) -> simpy.Event:
        """Schedule an event, by default a new one, for a time that is not yet past."""
        event = simpy.Event(self) if event is None else event
        assert time_s >= self._now, f"{time_s!r} is past, it is {self._now!r}"
        event._ok, event._value = True, None
        heappush(self._queue, (time_s, NORMAL, next(self._eid), event))
        return event


class _Message(simpy.Event):
    """An activation or gradient on its way to a stage; the event is its arrival."""

    arrival_s: float

    def __init__(self, clock: _Clock) -> None:
        super().__init__(clock)
        self._clock = clock

    def arrive_at(self, time_s: float) -> None:
        """Let the event happen at a time; called once."""
        self.arrival_s = time_s
        self._clock.at(time_s, self)


class _Device:
    """All GPUs of one domain, taken as one: a stage that comes later waits."""

    __slots__ = ("free_at_s",)

    def __init__(self) -> None:
        self.free_at_s = 0.0


class _StageRun:
    """What one stage works on: its order, durations, expected inputs and where outputs go."""

    __slots__ = (
        "busy_s",
        "device",
        "duration_s",
        "inputs",
        "order",
        "routes",
        "stage",
        "waits_for",
    )

    def __init__(
        self, stage: Stage, order: StageOrder, times_s: tuple[float, float], device: _Device
    ) -> None:
        self.stage = stage
        self.order = order
        self.duration_s = {"F": times_s[0], "B": times_s[1]}
        self.device = device
        self.inputs: dict[str, list[_Message]] = {"F": [], "B": []}
        self.routes: dict[str, tuple[int, ...]] = {"F": (), "B": ()}
        self.waits_for: Operation | None = None
        self.busy_s = 0.0


class _Pipeline:
    """The processes of one iteration and what they leave behind."""

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        plan: Plan,
        orders: Sequence[StageOrder],
        corrections: Corrections,
    ) -> None:
        self._env = _Clock()
        self._message_bytes = workload.message_bytes
        self._orders = tuple(orders)
        self._spans: list[Span] = []
        self._transfers: list[Transfer] = []
        moving = topology.movement
        weather = None if moving is None else Weather(moving, len(topology.links))
        self._wires = [
            Wire(index, link, corrections, weather) for index, link in enumerate(topology.links)
        ]
        devices = [_Device() for _ in topology.domains]
        stages = plan.placement.stages
        times_s = stage_times_s(topology, workload, stages, corrections)
        self._stages = [
            _StageRun(stage, order, times, devices[stage.domain])
            for stage, order, times in zip(stages, orders, times_s, strict=True)
        ]
        self._connect(topology, workload.num_microbatches)

    def _connect(self, topology: Topology, num_microbatches: int) -> None:
        """Prepare the messages and routes between neighbouring stages."""
        for upper, lower in zip(self._stages, self._stages[1:], strict=False):
            here, there = upper.stage.domain, lower.stage.domain
            upper.routes["F"] = topology.route(here, there)
            lower.routes["B"] = topology.route(there, here)
            lower.inputs["F"] = [_Message(self._env) for _ in range(num_microbatches)]
            upper.inputs["B"] = [_Message(self._env) for _ in range(num_microbatches)]

    def run(self) -> None:
        """Run until all stages have done all their operations."""
        env = self._env
        all_done = env.all_of([env.process(self._work(stage)) for stage in self._stages])
        try:
            env.run(until=all_done)
        except RuntimeError as error:
            if all_done.triggered or env.peek() < math.inf:
                raise
            waiting = ", ".join(
                f"stage {run.stage.index} for the input of "
                f"{run.waits_for.kind}{run.waits_for.microbatch}"
                for run in self._stages
                if run.waits_for is not None
            )
            raise DeadlockError(f"schedule: deadlock, waiting: {waiting}") from error

    def _work(self, run: _StageRun) -> Generator[simpy.Event, None, None]:
        """Do the operations in order: wait for the input, compute, send the output."""
        env, device = self._env, run.device
        end_s = 0.0
        for operation in run.order:
            kind, microbatch = operation
            start_s = end_s
            if run.inputs[kind]:
                message = run.inputs[kind][microbatch]
                run.waits_for = operation
                yield message
                run.waits_for = None
                start_s = max(start_s, message.arrival_s)
            start_s = max(start_s, device.free_at_s)
            end_s = device.free_at_s = start_s + run.duration_s[kind]
            run.busy_s += run.duration_s[kind]
            self._spans.append(Span(run.stage.index, kind, microbatch, start_s, end_s))
            yield env.at(end_s)
            if run.routes[kind]:
                self._send(run, operation, end_s)

    def _send(self, run: _StageRun, operation: Operation, ready_s: float) -> None:
        """Hand an output to the first link; a longer route is followed by a process."""
        kind, microbatch = operation
        receiver = self._stages[run.stage.index + (1 if kind == "F" else -1)]
        message = receiver.inputs[kind][microbatch]
        route = run.routes[kind]
        arrival_s = self._carry(run, operation, route[0], ready_s)
        if len(route) == 1:
            message.arrive_at(arrival_s)
        else:
            self._env.process(self._relay(run, operation, message, arrival_s))

    def _relay(
        self, run: _StageRun, operation: Operation, message: _Message, arrival_s: float
    ) -> Generator[simpy.Event, None, None]:
        """Store and forward: each further hop queues the message once it has wholly arrived."""
        for hop in run.routes[operation.kind][1:]:
            yield self._env.at(arrival_s)
            arrival_s = self._carry(run, operation, hop, arrival_s)
        message.arrive_at(arrival_s)

    def _carry(self, run: _StageRun, operation: Operation, link: int, ready_s: float) -> float:
        start_s, end_s, arrival_s = self._wires[link].carry(ready_s, self._message_bytes)
        kind, microbatch = operation
        self._transfers.append(
            Transfer(link, run.stage.index, kind, microbatch, start_s, end_s, arrival_s)
        )
        return arrival_s

    def result(self, topology: Topology, workload: Workload, plan: Plan) -> IterationResult:
        """Sum up what has happened."""
        makespan_s = max(span.end_s for span in self._spans)
        stages = tuple(
            StageUse(
                domain=topology.domains[run.stage.domain].name,
                first_layer=run.stage.first_layer,
                num_layers=run.stage.num_layers,
                busy_s=run.busy_s,
                idle_s=makespan_s - run.busy_s,
            )
            for run in self._stages
        )
        links = tuple(
            LinkUse(
                source=link.source,
                target=link.target,
                num_messages=wire.num_messages,
                num_bytes=wire.num_bytes,
                busy_s=wire.busy_s,
            )
            for link, wire in zip(topology.links, self._wires, strict=True)
        )
        return IterationResult(
            makespan_s=makespan_s,
            utilisation=workload.flops_per_iteration / (topology.peak_flops_per_s * makespan_s),
            stages=stages,
            links=links,
            memory=memory_of_orders(topology, workload, plan.placement, self._orders),
            spans=tuple(self._spans),
            transfers=tuple(self._transfers),
        )
