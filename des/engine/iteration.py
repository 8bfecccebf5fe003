"""Discrete-event simulation of one training iteration over domains and WAN links.

Every worker is a SimPy process that does its operations in order, on a clock and a network that it
is given. What it computes ends at ``max(own last end, arrival of the input, device free) +
duration``; the event queue decides who comes first where workers share a device or a link.
"""

from collections.abc import Generator, Sequence
from itertools import chain

import simpy

from des.clock import WORKER, Clock
from des.costs.feasibility import orders_of_plan, peaks_of_plan
from des.costs.memory import Peaks, memory_of_peaks
from des.costs.update_times import update_s
from des.engine.borders import Borders
from des.engine.gradients import GradientSums
from des.engine.network import Carrier, Network
from des.engine.result import IterationResult, Span, StageUse, Transfer
from des.engine.stage_run import LocalWires, make_stage_runs
from des.job.workload import Workload
from des.plan.buckets import buckets_of
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.schedules import DeadlockError, Order, check_orders, peaks_held
from des.world.topology import Topology


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
    iteration = _run_alone(topology, workload, plan, orders, corrections=corrections, step=step)
    return iteration.result(peaks_of_plan(workload, plan, orders))


def simulate_orders(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    orders: Sequence[Order],
    corrections: Corrections = NO_CORRECTIONS,
) -> IterationResult:
    """Simulate one iteration with given orders instead of the plan's schedule.

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
    iteration = _run_alone(topology, workload, plan, orders, corrections=corrections, step=0)
    return iteration.result(peaks_held(tuple(orders)))


def _run_alone(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    orders: Sequence[Order],
    *,
    corrections: Corrections,
    step: int,
) -> "Iteration":
    """Run an iteration to its end on a clock and links of its own."""
    clock = Clock()
    network = Network(clock, topology, corrections)
    iteration = Iteration(
        clock,
        network,
        topology,
        workload,
        plan,
        orders=orders,
        corrections=corrections,
        step=step,
    )
    iteration.start()
    clock.run_out()
    return iteration


class Iteration:
    """The processes of one iteration of a job, and what they leave behind.

    Parameters
    ----------
    clock, network
        Clock that it runs on; others may run there too.
    orders
        Operations of each worker, one after the other.
    step
        Position of the iteration in the training.
    first_number
        From where on its messages, workers and members of exchanges count in their ranks. No two
        iterations that run at a time may share a number.
    """

    def __init__(
        self,
        clock: Clock,
        network: Carrier,
        topology: Topology,
        workload: Workload,
        plan: Plan,
        *,
        orders: Sequence[Order],
        corrections: Corrections,
        step: int,
        first_number: int = 0,
    ) -> None:
        self._clock, self._network = clock, network
        self._topology, self._workload, self._plan = topology, workload, plan
        self._orders = orders
        self._first_worker_rank = WORKER + first_number
        self._blocking = plan.holds_senders_up(topology)
        self._start_s = 0.0
        self._workers: list[simpy.Process] = []
        self._members: list[simpy.Process] = []
        self._spans: list[list[Span]] = [[] for _ in orders]
        self._update_s = update_s(topology, workload, plan, corrections)
        self._stages = make_stage_runs(topology, workload, plan, corrections)
        local = LocalWires(topology)
        Borders(
            clock, network, topology, workload, plan, corrections=corrections, local=local
        ).join(self._stages, first_number=first_number)
        self._gradients = GradientSums(
            clock,
            network,
            topology,
            workload,
            plan,
            buckets=buckets_of(workload, plan, step),
            corrections=corrections,
            local=local,
            first_number=first_number,
        )

    def start(self) -> None:
        """Start all workers and exchanges of gradients now."""
        clock = self._clock
        self._start_s = clock.now
        for worker, order in enumerate(self._orders):
            self._workers.append(clock.process(self._work(worker, order)))
        self._members.extend(self._gradients.processes())
        if self._gradients.num_late:
            clock.process(self._end_step())

    def run(self) -> Generator[simpy.Event, None, float]:
        """Start, wait until everything is done, and return the end of the iteration. [s]"""
        self.start()
        yield self._clock.all_of([*self._workers, *self._members])
        return self._end_s()

    def _end_step(self) -> Generator[simpy.Event, None, None]:
        """Start the exchanges after the step when all replicas have done everything else."""
        early = self._members[: -self._gradients.num_late]
        yield self._clock.all_of([*self._workers, *early])
        self._gradients.release_late(self._ended_s() + self._update_s)

    def _ended_s(self) -> float:
        """Time at which the last pass or exchange so far has ended. [s]"""
        last_ends_s = [spans[-1].end_s for spans in self._spans if spans]
        return max(*last_ends_s, self._gradients.end_s)

    def _end_s(self) -> float:
        """End of the iteration: of all that happened, and of the step. [s]"""
        return self._ended_s() + (0.0 if self._gradients.num_late else self._update_s)

    def _work(self, worker: int, order: Order) -> Generator[simpy.Event, None, None]:
        """Do the operations in order: wait for the input, compute, send the output."""
        clock, rank = self._clock, self._first_worker_rank + worker
        for kind, microbatch, index in order:
            stage = self._stages[index]
            this = stage.passes[kind]

            if this.inputs:
                yield this.inputs[microbatch]

            start_s, end_s = stage.device.compute(this.duration_s, ready_s=clock.now)
            stage.busy_s += this.duration_s
            self._spans[worker].append(Span(index, kind, microbatch, start_s, end_s))
            if self._gradients.are_due and kind in "BW":
                self._gradients.made(index, start_s, end_s)
            yield clock.at(end_s, rank)

            if this.send is not None:
                message = this.outputs[microbatch]
                this.send(message, end_s)
                if self._blocking:
                    yield message
                    yield clock.at(clock.now, message.rank)  # its receiver continues first

    def _check_done(self) -> None:
        """Refuse orders in which workers wait for each other."""
        waiting = [
            str(order[len(spans)])
            for worker, order, spans in zip(self._workers, self._orders, self._spans, strict=True)
            if worker.is_alive
        ]
        if waiting:
            raise DeadlockError(
                f"schedule: deadlock, waiting for their inputs: {', '.join(waiting)}"
            )
        assert not any(member.is_alive for member in self._members)

    def result(self, peaks: Peaks) -> IterationResult:
        """Sum up what has happened, in times since the start; the clock has run out.

        Raises
        ------
        DeadlockError
            If workers still wait for their inputs.
        """
        self._check_done()
        topology, workload, start_s = self._topology, self._workload, self._start_s
        makespan_s = self._ended_s() - start_s
        if not self._gradients.num_late:
            makespan_s += self._update_s
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
        spans = list(chain.from_iterable(self._spans))
        return IterationResult(
            makespan_s=makespan_s,
            utilisation=workload.flops_per_iteration / (topology.peak_flops_per_s * makespan_s),
            stages=stages,
            links=self._network.link_uses(),
            memory=memory_of_peaks(topology, workload, self._plan, peaks),
            spans=_spans_since(start_s, spans),
            transfers=_transfers_since(start_s, self._network.transfers()),
        )


def _spans_since(start_s: float, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Count times from a start."""
    if start_s == 0:
        return tuple(spans)
    return tuple(
        span._replace(start_s=span.start_s - start_s, end_s=span.end_s - start_s) for span in spans
    )


def _transfers_since(start_s: float, transfers: Sequence[Transfer]) -> tuple[Transfer, ...]:
    """Count times from a start."""
    if start_s == 0:
        return tuple(transfers)
    return tuple(
        one._replace(
            start_s=one.start_s - start_s,
            end_s=one.end_s - start_s,
            arrival_s=one.arrival_s - start_s,
        )
        for one in transfers
    )
