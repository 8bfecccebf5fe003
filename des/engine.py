"""Discrete-event simulation of one training iteration over domains and WAN links.

Every worker is a SimPy process that does its operations in order. What it computes ends at
``max(own last end, arrival of the input, device free) + duration``; the event queue decides who
comes first where workers share a device or a link.
"""

import math
from collections.abc import Generator, Sequence
from itertools import pairwise

import simpy

from des.buckets import buckets_of
from des.clock import Clock, Message
from des.corrections import NO_CORRECTIONS, Corrections
from des.feasibility import orders_of_plan
from des.gradients import GradientSums
from des.memory import memory_of_orders
from des.network import Network, Parcel
from des.plan import Plan, device_numbers, replica_stages
from des.result import IterationResult, Span, StageUse
from des.schedules import MESSAGE_OF, DeadlockError, Operation, Order, Orders, check_orders
from des.stage_run import StageRun, make_stage_runs
from des.topology import Topology
from des.workload import Workload


def simulate(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    step: int = 0,
) -> IterationResult:
    """Simulate one iteration of a plan.

    A plan that exceeds the memory of a domain is simulated as if it fitted, and the result says so
    in ``fits_memory``; see `des.feasibility.check_memory` to refuse it.

    Parameters
    ----------
    step
        Position of the iteration in the training, from 0: replicas that do not synchronise after
        every step do so after some.

    Raises
    ------
    ValueError
        If the plan does not match the workload or the topology.
    UnreachableError
        If the plan sends between domains that no path joins.
    StarvationError
        If a message waits for a link that is down for ever.
    """
    plan.check_against(topology, workload)
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise ValueError(f"simulate: step must be a whole number of at least 0, got {step!r}")
    orders = orders_of_plan(topology, workload, plan, corrections)
    return _run(topology, workload, plan, orders, corrections=corrections, step=step)


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
        As `simulate`, if the orders do not do each pass of each microbatch once and in turn, or if
        the plan has several replicas.
    DeadlockError
        If the orders make the workers wait for each other; the message names the operations.
    """
    plan.check_against(topology, workload)
    if plan.replicas:
        raise ValueError(f"simulate_orders: plan must have one replica, got {len(plan.placements)}")
    stages = replica_stages(plan.placement, plan.parallelism)
    check_orders(orders, device_numbers(stages), workload.num_microbatches)
    return _run(topology, workload, plan, tuple(orders), corrections=corrections, step=0)


def _run(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    orders: Orders,
    *,
    corrections: Corrections,
    step: int,
) -> IterationResult:
    iteration = _Iteration(topology, workload, plan, orders, corrections=corrections, step=step)
    iteration.run()
    return iteration.result()


class _Iteration:
    """The processes of one iteration and what they leave behind."""

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        plan: Plan,
        orders: Orders,
        *,
        corrections: Corrections,
        step: int,
    ) -> None:
        self._topology, self._workload, self._plan = topology, workload, plan
        self._orders = orders
        self._clock = Clock()
        self._network = Network(self._clock, topology, corrections)
        self._blocking = topology.transport.endpoints == "blocking"
        self._message_bytes = workload.message_bytes / plan.activation_compression
        self._waits_for: list[Operation | None] = [None] * len(orders)
        self._spans: list[Span] = []
        self._stages = make_stage_runs(topology, workload, plan, corrections)
        shares = plan.microbatches_of_replicas(workload.num_microbatches)
        first_stage = 0
        for placement, num_microbatches in zip(plan.placements, shares, strict=True):
            num_stages = len(replica_stages(placement, plan.parallelism))
            for upper, lower in pairwise(self._stages[first_stage : first_stage + num_stages]):
                self._connect(upper, lower, num_microbatches)
            first_stage += num_stages
        self._gradients = GradientSums(
            self._clock,
            self._network,
            topology,
            workload,
            plan,
            buckets=buckets_of(workload, plan, step),
        )

    def _connect(self, upper: StageRun, lower: StageRun, num_microbatches: int) -> None:
        """Prepare the messages and routes between neighbouring stages."""
        here, there = upper.stage.domain, lower.stage.domain
        upper.receiver["F"] = lower
        lower.receiver["B"] = lower.receiver["D"] = upper
        if here != there:
            upper.routes["F"] = self._topology.route(here, there)
            lower.routes["B"] = lower.routes["D"] = self._topology.route(there, here)
        lower.inputs["F"] = [Message(self._clock) for _ in range(num_microbatches)]
        upper.inputs["B"] = [Message(self._clock) for _ in range(num_microbatches)]
        upper.inputs["D"] = upper.inputs["B"]

    def run(self) -> None:
        """Run until all workers have done all their operations and all gradients are summed up."""
        clock = self._clock
        workers = [
            clock.process(self._work(worker, order)) for worker, order in enumerate(self._orders)
        ]
        all_done = clock.all_of([*workers, *self._gradients.processes()])
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
        clock, gradients, stages, spans = self._clock, self._gradients, self._stages, self._spans
        end_s = 0.0
        for operation in order:
            kind, microbatch, index = operation
            run = stages[index]
            device, duration_s, inputs = run.device, run.duration_s[kind], run.inputs[kind]
            start_s = end_s
            if inputs:
                message = inputs[microbatch]
                self._waits_for[worker] = operation
                yield message
                self._waits_for[worker] = None
                start_s = max(start_s, message.arrival_s)
            start_s = max(start_s, device.free_at_s)
            end_s = device.free_at_s = start_s + duration_s
            run.busy_s += duration_s
            spans.append(Span(index, kind, microbatch, start_s, end_s))
            if gradients.are_due and kind in "BW":
                gradients.made(index, start_s, end_s)
            yield clock.at(end_s)
            if kind in run.receiver:
                sent = self._send(run, operation, end_s)
                if self._blocking:
                    yield sent
                    end_s = sent.arrival_s

    def _send(self, run: StageRun, operation: Operation, ready_s: float) -> Message:
        """Pass an output on: within the device, within the domain, or over the network."""
        kind, microbatch, index = operation
        message = run.receiver[kind].inputs[kind][microbatch]
        route = run.routes.get(kind)
        if route is not None:
            made, sender = MESSAGE_OF[kind], run.device.number
            parcel = Parcel(self._message_bytes, route, index, made, microbatch, sender)
            self._network.send(parcel, message, ready_s)
        elif kind in run.local:
            message.arrive_at(run.local[kind].carry(ready_s))
        else:
            message.arrive_at(ready_s)
        return message

    def result(self) -> IterationResult:
        """Sum up what has happened."""
        topology, workload = self._topology, self._workload
        compute_end_s = max(span.end_s for span in self._spans)
        makespan_s = max(compute_end_s, self._gradients.end_s)
        stages = tuple(
            StageUse(
                domain=topology.domains[run.stage.domain].name,
                device=run.stage.device,
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
            memory=memory_of_orders(topology, workload, self._plan, self._orders),
            spans=tuple(self._spans),
            transfers=tuple(self._network.transfers),
        )
