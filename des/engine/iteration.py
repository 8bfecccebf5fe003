"""Discrete-event simulation of one training iteration over domains and WAN links.

Every worker is a SimPy process that does its list of operations, on a clock and a network that it
is given. What it computes ends at ``max(own last end, arrival of the input, device free) +
duration``; the event queue decides who comes first where workers share a device or a link.
"""

from collections import Counter
from collections.abc import Generator, Sequence
from itertools import accumulate, chain

import simpy

from des.clock import MEMBER, WORKER, Clock, Message, Moment
from des.engine.devices import Queue, local_way
from des.engine.media import Media
from des.engine.network import Network, NetworkModel, Parcel, Send, rendezvous_way
from des.engine.result import IterationResult, Span, Transfer
from des.engine.wire import Window
from des.plan.corrections import Corrections
from des.program.actions import (
    COMPUTE,
    NONE,
    PASSES,
    POST,
    REDUCE,
    SEND,
    WAIT_SENT,
    WAIT_TAKEN,
)
from des.program.program import Channel, ExchangeMember, MessageFlow, Program, Worker
from des.schedules import DeadlockError, Operation
from des.world.topology import Topology


def run_alone(topology: Topology, program: Program, corrections: Corrections) -> "Iteration":
    """Run a program to its end on a clock and links of its own.

    Raises
    ------
    ValueError
        If the world has other links than the program was lowered for.
    StarvationError
        If a message waits for a link that is down for ever.
    """
    program.check_links(topology.link_index)
    windows: dict[int, Window] = {}
    iteration = _run(topology, program, corrections, windows)
    if not windows or not program.stages or iteration.has_stopped:
        return iteration
    for window in windows.values():
        window.pass_time(program.with_update_s(iteration.ended_s))
    return _run(topology, program, corrections, windows)


def _run(
    topology: Topology, program: Program, corrections: Corrections, windows: dict[int, Window]
) -> "Iteration":
    clock = Clock()
    media = Media(clock, topology, windows=windows)
    iteration = Iteration(clock, Network(clock, topology, corrections, media=media), program)
    iteration.start()
    clock.run_out()
    return iteration


class Iteration:
    """The processes of one iteration of a job, and what they leave behind.

    Parameters
    ----------
    clock, network
        Clock that it runs on; others may run there too.
    first_number
        From where on its messages, workers and members of exchanges count in their ranks. No two
        iterations that run at a time may share a number.
    """

    def __init__(
        self, clock: Clock, network: NetworkModel, program: Program, *, first_number: int = 0
    ) -> None:
        self._clock, self._network, self._program = clock, network, program
        self._first_number = first_number
        self._devices = [Queue() for _ in range(program.num_devices)]
        self._collectives = [Queue() for _ in range(program.num_devices)]
        counts = [flow.num_messages for flow in program.flows]
        first_numbers = accumulate(counts, initial=first_number)
        self._messages = [
            self._messages_of(*each) for each in zip(program.flows, first_numbers, strict=False)
        ]
        self._ways = self._prepare_ways()
        self._releases = [
            Moment(clock, MEMBER + first_number + number) for number in range(len(program.members))
        ]
        self._num_left = [stage.num_gradients for stage in program.stages]
        self._stages_left = Counter(stage.group for stage in program.stages)
        self._group_end_s = dict.fromkeys(self._stages_left, 0.0)
        self._start_s = self.ended_s = 0.0
        self._busy_s = [0.0] * len(program.stages)
        self._ranks = [WORKER + first_number + number for number in range(len(program.workers))]
        self._spans: dict[int, list[Span]] = {rank: [] for rank in self._ranks}
        self._workers: list[simpy.Process] = []
        self._members: list[simpy.Process] = []

    def _messages_of(self, flow: MessageFlow, first_number: int) -> list[Message]:
        if flow.channel == NONE:
            return []
        return [
            Message(self._clock, first_number + item, flow.label + item * flow.label_step)
            for item in range(flow.num_messages)
        ]

    def _prepare_ways(self) -> list[Send]:
        """Ways of the messages of each flow: links, a wire inside a domain, or nothing."""
        program, ways = self._program, []
        wires: dict[int, Queue] = {}
        for flow in program.flows:
            route, wire = Channel() if flow.channel == NONE else program.channels[flow.channel]
            if route:
                parcel = Parcel(flow.num_bytes, route, flow.stage, flow.kind, flow.sender)
                ways.append(self._network.way(parcel))
            elif wire == NONE:
                ways.append(Message.happen_at)
            else:
                queue = wires.setdefault(wire, Queue()) if program.has_queues else None
                ways.append(local_way(queue, flow.transfer_s, flow.latency_s))
        for number, flow in enumerate(program.flows):
            if flow.notice != NONE:
                notices = zip(self._messages[number], self._messages[flow.notice], strict=True)
                ways[number] = rendezvous_way(ways[number], dict(notices))
        return ways

    def start(self) -> None:
        """Start all workers and exchanges of gradients now."""
        clock, program = self._clock, self._program
        self._start_s = clock.now
        for rank, worker in zip(self._ranks, program.workers, strict=True):
            self._workers.append(clock.process(self._work(rank, worker)))
        for release, member in zip(self._releases, program.members, strict=True):
            self._members.append(clock.process(self._take_part(release, member)))
        if program.num_late:
            clock.process(self._end_step())

    def run(self) -> Generator[simpy.Event, None, float]:
        """Start, wait until everything is done, and return the end of the iteration. [s]"""
        self.start()
        yield self._clock.all_of([*self._workers, *self._members])
        return self._program.with_update_s(self.ended_s)

    def _end_step(self) -> Generator[simpy.Event, None, None]:
        """Start the exchanges after the step when everything else is done."""
        num_early = len(self._members) - self._program.num_late
        yield self._clock.all_of([*self._workers, *self._members[:num_early]])
        for release in self._releases[num_early:]:
            release.happen_at(self.ended_s + self._program.update_s)

    def _work(
        self, rank: int, worker: Worker, reduce_s: float = 0.0
    ) -> Generator[simpy.Event, None, None]:
        """Do operations in order: wait for the input, compute, send the output."""
        clock = self._clock
        for action, port, item in self._program.operations[worker.operations].rows.tolist():
            if action == COMPUTE:
                yield clock.at(self._compute(rank, worker, port, item), rank)
            elif action == REDUCE:
                _, end_s = self._collectives[worker.device].take(reduce_s, ready_s=clock.now)
                yield clock.at(end_s, rank)
            else:
                flow = worker.flows[port]
                if action in (POST, WAIT_TAKEN):
                    flow = self._program.flows[flow].notice
                message = self._messages[flow][item]
                if action in (SEND, POST):
                    self._ways[flow](message, clock.now)
                    continue
                yield message
                if action == WAIT_SENT:
                    yield clock.at(clock.now, message.rank)  # its receiver continues first
        self.ended_s = max(self.ended_s, clock.now)

    def _take_part(
        self, release: Moment, member: ExchangeMember
    ) -> Generator[simpy.Event, None, None]:
        """Do a member's part of an exchange when its bucket is ready."""
        yield release
        yield from self._work(release.rank, member.worker, member.reduce_s)

    def _compute(self, rank: int, worker: Worker, port: int, microbatch: int) -> float:
        """Do a pass as soon as the device is free; returns its end. [s]"""
        stage, number = worker.stages[port // len(PASSES)], port % len(PASSES)
        duration_s, kind = self._program.stages[stage].durations_s[number], PASSES[number]
        start_s, end_s = self._devices[worker.device].take(duration_s, ready_s=self._clock.now)
        self._busy_s[stage] += duration_s
        self._spans[rank].append(Span(stage, kind, microbatch, start_s, end_s))
        if self._members and kind in "BW":
            self._made(stage, start_s, end_s)
        return end_s

    def _made(self, stage: int, start_s: float, end_s: float) -> None:
        """Note a pass that makes gradients; the last one of a group releases its exchanges.

        A bucket is ready when the pass has come down to its first layer.
        """
        self._num_left[stage] -= 1
        if self._num_left[stage] > 0:
            return
        group = self._program.stages[stage].group
        self._stages_left[group] -= 1
        end_s = self._group_end_s[group] = max(self._group_end_s[group], end_s)
        if self._stages_left[group] > 0:
            return
        for member, release in zip(self._program.members, self._releases, strict=True):
            if member.group == group:
                ready_s = end_s - member.left_fraction * (end_s - start_s)  # the last at the end
                release.happen_at(max(start_s, ready_s))

    @property
    def has_stopped(self) -> bool:
        """Whether workers still wait though nothing happens any more."""
        return any(process.is_alive for process in self._workers)

    def _check_done(self) -> None:
        """Refuse lists in which workers wait for each other."""
        waiting = [
            self._next_pass(worker, len(spans))
            for process, worker, spans in zip(
                self._workers, self._program.workers, self._spans.values(), strict=True
            )
            if process.is_alive
        ]
        if waiting:
            raise DeadlockError(
                f"schedule: deadlock, waiting for their inputs: {', '.join(waiting)}"
            )
        assert not any(member.is_alive for member in self._members)

    def _next_pass(self, worker: Worker, num_done: int) -> str:
        """Pass that a worker does after some others, or its end."""
        operations = self._program.operations[worker.operations].rows
        passes = operations[operations[:, 0] == COMPUTE].tolist()
        if num_done == len(passes):
            return f"the end of stage {worker.stages[-1]}"
        _, port, item = passes[num_done]
        stage = worker.stages[port // len(PASSES)]
        return str(Operation(PASSES[port % len(PASSES)], item, stage))

    def result(self) -> IterationResult:
        """Sum up what has happened, in times since the start; the clock has run out.

        Raises
        ------
        DeadlockError
            If workers still wait for their inputs.
        """
        self._check_done()
        start_s = self._start_s
        return IterationResult.of_program(
            self._program,
            self.ended_s - start_s,
            self._busy_s,
            links=self._network.link_uses(),
            spans=_spans_since(start_s, list(chain.from_iterable(self._spans.values()))),
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
