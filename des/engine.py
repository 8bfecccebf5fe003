"""Discrete-event simulation of one training iteration over domains and WAN links.

Every worker is a SimPy process that does its operations in order. What it computes ends at
``max(own last end, arrival of the input, device free) + duration``; the event queue decides who
comes first where workers share a device or a link.
"""

import math
from collections.abc import Generator, Sequence

import simpy

from des.clock import Clock, Message
from des.corrections import NO_CORRECTIONS, Corrections
from des.costs import stage_times_s
from des.memory import memory_of_orders
from des.network import Network, Parcel
from des.placement import Plan, Stage
from des.result import IterationResult, Span, StageUse
from des.schedules import (
    MESSAGE_OF,
    DeadlockError,
    Operation,
    Order,
    Orders,
    Pass,
    check_orders,
    stage_orders,
)
from des.topology import Topology
from des.workload import Workload


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
    orders: Sequence[Order],
    corrections: Corrections = NO_CORRECTIONS,
) -> IterationResult:
    """Simulate one iteration with orders of one's own instead of the plan's schedule.

    Raises
    ------
    ValueError
        As `simulate`, or if the orders do not do each pass of each microbatch once and in turn.
    DeadlockError
        If the orders make the workers wait for each other; the message names the operations.
    """
    device_of_stage = [stage.domain for stage in plan.placement.stages]
    check_orders(orders, device_of_stage, workload.num_microbatches)
    return _run(topology, workload, plan, tuple(orders), corrections)


def _run(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    orders: Orders,
    corrections: Corrections,
) -> IterationResult:
    plan.placement.check_against(topology, workload)
    pipeline = _Pipeline(topology, workload, plan, orders, corrections)
    pipeline.run()
    return pipeline.result(topology, workload, plan)


class _Device:
    """All GPUs of one domain, taken as one: a worker that comes later waits."""

    __slots__ = ("free_at_s",)

    def __init__(self) -> None:
        self.free_at_s = 0.0


class _StageRun:
    """One stage at work: its device and durations, expected inputs and where outputs go."""

    __slots__ = ("busy_s", "device", "duration_s", "inputs", "receiver", "routes", "stage")

    def __init__(self, stage: Stage, duration_s: dict[Pass, float], device: _Device) -> None:
        self.stage = stage
        self.duration_s = duration_s
        self.device = device
        self.inputs: dict[Pass, list[Message]] = {"F": [], "B": [], "D": [], "W": []}
        self.receiver: dict[Pass, _StageRun] = {}
        self.routes: dict[Pass, tuple[int, ...]] = {}
        self.busy_s = 0.0


class _Pipeline:
    """The processes of one iteration and what they leave behind."""

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        plan: Plan,
        orders: Orders,
        corrections: Corrections,
    ) -> None:
        self._clock = Clock()
        self._network = Network(self._clock, topology, corrections)
        self._message_bytes = workload.message_bytes
        self._orders = orders
        self._waits_for: list[Operation | None] = [None] * len(orders)
        self._spans: list[Span] = []
        devices = [_Device() for _ in topology.domains]
        stages = plan.placement.stages
        times_s = stage_times_s(topology, workload, stages, corrections)
        self._stages = [
            _StageRun(stage, times, devices[stage.domain])
            for stage, times in zip(stages, times_s, strict=True)
        ]
        self._connect(topology, workload.num_microbatches)

    def _connect(self, topology: Topology, num_microbatches: int) -> None:
        """Prepare the messages and routes between neighbouring stages."""
        for upper, lower in zip(self._stages, self._stages[1:], strict=False):
            here, there = upper.stage.domain, lower.stage.domain
            upper.receiver["F"] = lower
            upper.routes["F"] = topology.route(here, there)
            lower.receiver["B"] = lower.receiver["D"] = upper
            lower.routes["B"] = lower.routes["D"] = topology.route(there, here)
            lower.inputs["F"] = [Message(self._clock) for _ in range(num_microbatches)]
            upper.inputs["B"] = [Message(self._clock) for _ in range(num_microbatches)]
            upper.inputs["D"] = upper.inputs["B"]

    def run(self) -> None:
        """Run until all workers have done all their operations."""
        clock = self._clock
        workers = [
            clock.process(self._work(worker, order)) for worker, order in enumerate(self._orders)
        ]
        all_done = clock.all_of(workers)
        try:
            clock.run(until=all_done)
        except RuntimeError as error:
            if all_done.triggered or clock.peek() < math.inf:
                raise
            waiting = ", ".join(str(one) for one in self._waits_for if one is not None)
            raise DeadlockError(
                f"schedule: deadlock, waiting for their inputs: {waiting}"
            ) from error

    def _work(self, worker: int, order: Order) -> Generator[simpy.Event, None, None]:
        """Do the operations in order: wait for the input, compute, send the output."""
        clock = self._clock
        end_s = 0.0
        for operation in order:
            kind, microbatch, index = operation
            run = self._stages[index]
            device = run.device
            start_s = end_s
            if run.inputs[kind]:
                message = run.inputs[kind][microbatch]
                self._waits_for[worker] = operation
                yield message
                self._waits_for[worker] = None
                start_s = max(start_s, message.arrival_s)
            start_s = max(start_s, device.free_at_s)
            end_s = device.free_at_s = start_s + run.duration_s[kind]
            run.busy_s += run.duration_s[kind]
            self._spans.append(Span(index, kind, microbatch, start_s, end_s))
            yield clock.at(end_s)
            if kind in run.receiver:
                self._send(run, operation, end_s)

    def _send(self, run: _StageRun, operation: Operation, ready_s: float) -> None:
        """Pass an output on: at once where it stays on the device, else over the network."""
        kind, microbatch, index = operation
        message = run.receiver[kind].inputs[kind][microbatch]
        route = run.routes[kind]
        if not route:
            message.arrive_at(ready_s)
            return
        parcel = Parcel(self._message_bytes, route, index, MESSAGE_OF[kind], microbatch)
        self._network.send(parcel, message, ready_s)

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
        return IterationResult(
            makespan_s=makespan_s,
            utilisation=workload.flops_per_iteration / (topology.peak_flops_per_s * makespan_s),
            stages=stages,
            links=self._network.link_uses(),
            memory=memory_of_orders(topology, workload, plan.placement, self._orders),
            spans=tuple(self._spans),
            transfers=tuple(self._network.transfers),
        )
