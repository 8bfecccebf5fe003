"""Discrete-event simulation of one training iteration over domains and WAN links.

Every worker is a SimPy process that does its operations in order. What it computes ends at
``max(own last end, arrival of the input, device free) + duration``; the event queue decides who
comes first where workers share a device or a link.
"""

from collections.abc import Generator, Sequence
from itertools import chain

import simpy

from des.clock import WORKER, Clock, Message, Moment
from des.costs.feasibility import orders_of_plan, peaks_of_plan
from des.costs.memory import Peaks, memory_of_peaks
from des.costs.stage_times import local_message_s
from des.engine.gradients import GradientSums
from des.engine.network import Network, Parcel, Send
from des.engine.result import IterationResult, Span, StageUse
from des.engine.stage_run import LocalWire, make_stage_runs
from des.job.workload import Workload
from des.plan.buckets import buckets_of
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.schedules import DeadlockError, Order, Pass, check_orders, peaks_held
from des.world.topology import Topology

_new = tuple.__new__
"""``_new(Span, values)`` is ``Span(*values)`` without a call of Python code."""


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
    in ``fits_memory``; see `des.costs.feasibility.check_memory` to refuse it.

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
    iteration = _Iteration(topology, workload, plan, orders, corrections=corrections, step=step)
    iteration.run()
    return iteration.result(peaks_of_plan(workload, plan, orders))


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
    check_orders(orders, plan.device_of_stage, workload.num_microbatches)
    iteration = _Iteration(topology, workload, plan, orders, corrections=corrections, step=0)
    iteration.run()
    return iteration.result(peaks_held(tuple(orders)))


class _Iteration:
    """The processes of one iteration and what they leave behind."""

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        plan: Plan,
        orders: Sequence[Order],
        *,
        corrections: Corrections,
        step: int,
    ) -> None:
        self._topology, self._workload, self._plan = topology, workload, plan
        self._orders = orders
        self._clock = Clock()
        self._corrections = corrections
        self._network = Network(self._clock, topology, corrections)
        self._blocking = topology.transport.endpoints == "blocking"
        self._spans: list[list[Span]] = [[] for _ in orders]
        self._stages = make_stage_runs(topology, workload, plan, corrections)
        self._local: dict[tuple[int, int], LocalWire] = {}
        shares = plan.microbatches_of_replicas(workload.num_microbatches)
        first_stage = 0
        for num_stages, share in zip(plan.replica_sizes, shares, strict=True):
            for lower in range(first_stage + 1, first_stage + num_stages):
                self._connect(lower - 1, lower, share, ("F",))
                self._connect(lower, lower - 1, share, ("B", "D"))
            first_stage += num_stages
        self._gradients = GradientSums(
            self._clock,
            self._network,
            topology,
            workload,
            plan,
            buckets=buckets_of(workload, plan, step),
            corrections=corrections,
        )

    def _connect(
        self, sender: int, receiver: int, num_messages: int, kinds: tuple[Pass, ...]
    ) -> None:
        """Prepare what one stage sends to a neighbour, which one of some kinds of passes makes.

        Messages are numbered by receiver, activations before gradients, microbatch.
        """
        first = (2 * receiver + (kinds[0] != "F")) * self._workload.num_microbatches
        messages = [Message(self._clock, first + each, each) for each in range(num_messages)]
        send = self._way(sender, receiver, kinds[0])
        for kind in kinds:
            made_by, needed_by = (self._stages[each].passes[kind] for each in (sender, receiver))
            made_by.outputs, made_by.send, needed_by.inputs = messages, send, messages

    def _way(self, sender: int, receiver: int, kind: str) -> Send:
        """Return what passes a message on: over the network, within the domain or the device."""
        topology, plan = self._topology, self._plan
        here, there = self._stages[sender], self._stages[receiver]
        source, target = here.stage.domain, there.stage.domain
        if source != target:
            parcel = Parcel(
                num_bytes=self._workload.message_bytes / plan.activation_compression,
                route=topology.route(source, target),
                stage=sender,
                kind=kind,
                sender=here.device.number,
            )
            return self._network.way(parcel)
        if here.device is there.device:
            return Message.happen_at
        border = local_message_s(
            self._workload, topology.domains[source], plan.parallelism[source], self._corrections
        )
        ends = (here.device.number, there.device.number)
        has_queue = topology.transport.sharing != "none"
        wire = self._local.setdefault(ends, LocalWire(border, has_queue=has_queue))
        return lambda message, ready_s: message.happen_at(wire.carry(ready_s))

    def run(self) -> None:
        """Run until all workers have done all their operations and all gradients are summed up."""
        clock = self._clock
        workers = [
            clock.process(self._work(worker, order)) for worker, order in enumerate(self._orders)
        ]
        members = list(self._gradients.processes())
        clock.run_out()
        waiting = [
            str(order[len(spans)])
            for worker, order, spans in zip(workers, self._orders, self._spans, strict=True)
            if worker.is_alive
        ]
        if waiting:
            raise DeadlockError(
                f"schedule: deadlock, waiting for their inputs: {', '.join(waiting)}"
            )
        assert not any(member.is_alive for member in members)

    def _work(self, worker: int, order: Order) -> Generator[simpy.Event, None, None]:
        """Do the operations in order: wait for the input, compute, send the output."""
        clock, gradients, stages = self._clock, self._gradients, self._stages
        push, note, blocking = clock.push, self._spans[worker].append, self._blocking
        turn = Moment(clock, WORKER + worker)
        rank, end_s = turn.rank, 0.0
        for kind, microbatch, index in order:
            stage = stages[index]
            this, device, asked_s = stage.passes[kind], stage.device, end_s
            if this.inputs:
                message = this.inputs[microbatch]
                if message.callbacks is not None:  # it has not arrived yet
                    yield message
                    asked_s = clock.now
            start_s = asked_s if asked_s > device.free_at_s else device.free_at_s
            end_s = device.free_at_s = start_s + this.duration_s
            stage.busy_s += this.duration_s
            note(_new(Span, (index, kind, microbatch, start_s, end_s)))
            if gradients.are_due and kind in "BW":
                gradients.made(index, start_s, end_s)
            turn.callbacks = []
            push((end_s, rank, 0, turn))
            yield turn
            if this.send is not None:
                message = this.outputs[microbatch]
                this.send(message, end_s)
                if blocking:
                    yield message.told()
                    end_s = clock.now

    def result(self, peaks: Peaks) -> IterationResult:
        """Sum up what has happened."""
        topology, workload = self._topology, self._workload
        last_ends_s = [spans[-1].end_s for spans in self._spans if spans]
        makespan_s = max(*last_ends_s, self._gradients.end_s)
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
            memory=memory_of_peaks(topology, workload, self._plan, peaks),
            spans=tuple(chain.from_iterable(self._spans)),
            transfers=self._network.transfers(),
        )
