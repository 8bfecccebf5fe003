"""A network that another simulator plays, in lock-step with the clock of an iteration.

The other simulator knows messages and times only. It never runs past the next event of the clock,
as that may send another message; where a message arrives first, the clock continues from there.
"""

from collections.abc import Generator
from itertools import count
from typing import Protocol

import simpy

from des.clock import Clock, Message
from des.engine.network import Parcel, Send
from des.engine.result import LinkUse, Transfer
from des.world.topology import Topology

LAST = 5 << 50
"""Rank of the step of the other simulator: after all that happens at the same time."""


class SteppedLinks(Protocol):
    """Simulator of the links, which is told of messages and run from time to time."""

    def send(self, message: int, source: int, target: int, num_bytes: float, time_s: float) -> None:
        """Hand a message over at a time, which is not before any time that was reached."""

    def advance(self, until_s: float) -> tuple[float, tuple[int, ...]]:
        """Run until messages arrive or a time is reached; returns that time and the messages.

        Raises
        ------
        StarvationError
            If ``until_s`` is infinite and nothing arrives any more.
        """


class SteppedNetwork:
    """Carrier of one job whose messages between domains travel in another simulator."""

    def __init__(self, clock: Clock, topology: Topology, links: SteppedLinks) -> None:
        self._clock, self._topology, self._links = clock, topology, links
        self._numbers = count()
        self._under_way: dict[int, tuple[Parcel, Message, float]] = {}
        self._transfers: list[list[Transfer]] = [[] for _ in topology.links]
        self._num_bytes = [0.0] * len(topology.links)
        self._is_running = False
        self._one_in_flight = topology.transport.endpoints == "one_in_flight"
        self._last_of_sender: dict[int, Message] = {}

    def way(self, parcel: Parcel) -> Send:
        """Prepare the way of messages between two domains."""
        index_of, links = self._topology.index_of, self._topology.links
        source = index_of[links[parcel.route[0]].source]
        target = index_of[links[parcel.route[-1]].target]

        def hand_over(message: Message) -> None:
            number = next(self._numbers)
            self._under_way[number] = parcel, message, self._clock.now
            self._links.send(number, source, target, parcel.num_bytes, self._clock.now)
            if not self._is_running:
                self._is_running = True
                self._clock.process(self._run())

        def in_turn(message: Message, before: simpy.Event) -> Generator[simpy.Event, None, None]:
            yield before
            hand_over(message)

        def send(message: Message, ready_s: float) -> None:
            assert ready_s == self._clock.now, f"{ready_s!r} is not now, {self._clock.now!r}"
            before = self._last_of_sender.get(parcel.sender) if self._one_in_flight else None
            self._last_of_sender[parcel.sender] = message
            if before is None or before.processed:
                hand_over(message)
            else:
                self._clock.process(in_turn(message, before))

        return send

    def _run(self) -> Generator[simpy.Event, None, None]:
        """Let the other simulator run from event to event while messages are under way."""
        yield self._clock.at(self._clock.now, LAST)
        while self._under_way:
            reached_s, arrived = self._links.advance(self._clock.peek())
            time_s = max(reached_s, self._clock.now)  # both round times in their own way
            for number in arrived:
                self._arrive(*self._under_way.pop(number), time_s)
            yield self._clock.at(time_s, LAST)
        self._is_running = False

    def _arrive(self, parcel: Parcel, message: Message, sent_s: float, time_s: float) -> None:
        """Note the way of a message, hop by hop, and wake its receiver."""
        latencies_s = [self._topology.links[link].latency_s for link in parcel.route]
        for place, link in enumerate(parcel.route):
            arrival_s = time_s - sum(latencies_s[place + 1 :])
            start_s = sent_s + sum(latencies_s[:place])
            end_s = max(start_s, arrival_s - latencies_s[place])
            self._transfers[link].append(
                Transfer(
                    link, parcel.stage, parcel.kind, message.microbatch, start_s, end_s, arrival_s
                )
            )
            self._num_bytes[link] += parcel.num_bytes
        message.happen_at(time_s)

    def transfers(self) -> tuple[Transfer, ...]:
        """All hops of all messages, link by link, each in the order in which messages arrived."""
        return tuple(one for of_link in self._transfers for one in of_link)

    def link_uses(self) -> tuple[LinkUse, ...]:
        """Use of each link: ``busy_s`` is the time in which messages were on their way over it."""
        return tuple(
            LinkUse(
                source=link.source,
                target=link.target,
                num_messages=len(transfers),
                num_bytes=num_bytes,
                busy_s=_union_s(transfers),
            )
            for link, transfers, num_bytes in zip(
                self._topology.links, self._transfers, self._num_bytes, strict=True
            )
        )


def _union_s(transfers: list[Transfer]) -> float:
    """Time covered by at least one of the transfers, from start to end. [s]"""
    covered_s, until_s = 0.0, 0.0
    for one in sorted(transfers, key=lambda each: each.start_s):
        covered_s += max(0.0, one.end_s - max(until_s, one.start_s))
        until_s = max(until_s, one.end_s)
    return covered_s
