"""The links while a simulation runs: messages find their way over one or several of them."""

from collections.abc import Callable, Generator, Mapping
from itertools import chain
from typing import NamedTuple, Protocol

import simpy

from des.clock import Clock, Message
from des.engine.fair_wire import FairWire
from des.engine.media import Media
from des.engine.result import LinkUse, Transfer
from des.engine.wire import Passage, Wire
from des.plan.corrections import Corrections
from des.world.topology import Topology

Send = Callable[[Message, float], None]
"""Hands a message over at a time, which is now; the message happens when it has arrived."""


def rendezvous_way(way: Send, notices: Mapping[Message, Message]) -> Send:
    """Return what sends each message when it is sent and its notice has come."""

    def send(message: Message, ready_s: float) -> None:
        notice = notices[message]
        if notice.callbacks is None:
            way(message, ready_s)
        else:
            notice.callbacks.append(lambda _: way(message, notice.clock.now))

    return send


class Parcel(NamedTuple):
    """Fixed figures of a message: size, route (positions of links), stage, kind and sender.

    ``sender`` is the endpoint they leave from: the position of the device that made them.
    """

    num_bytes: float
    route: tuple[int, ...]
    stage: int
    kind: str
    sender: int


class NetworkModel(Protocol):
    """Network as a job uses it: it carries the job's messages, on a clock that both are given.

    Whatever has these three methods can stand in for `Network`, such as a simulation of packets.
    """

    def way(self, parcel: Parcel) -> Send:
        """Prepare the way of messages; what is returned is called once for each of them."""

    def transfers(self) -> tuple[Transfer, ...]:
        """All hops of all messages, link by link, each in the order in which messages left."""

    def link_uses(self) -> tuple[LinkUse, ...]:
        """Use of each link of the world by these messages."""


class Network:
    """Wires of one job over the media of the links, and a record of what they carried.

    Parameters
    ----------
    media
        Media that several jobs share; None: this job has the links to itself.
    priority
        That of the job, where the media go by priority: the higher one goes first.
    """

    def __init__(
        self,
        clock: Clock,
        topology: Topology,
        corrections: Corrections,
        *,
        media: Media | None = None,
        priority: int = 0,
    ) -> None:
        self._clock, self._topology, self._corrections = clock, topology, corrections
        self._media = Media(clock, topology) if media is None else media
        self._priority = priority
        self._is_fair = topology.transport.sharing == "fair"
        self._one_in_flight = topology.transport.endpoints == "one_in_flight"
        self._wires: dict[int, Wire] = {}
        self._fair_wires: dict[int, FairWire] = {}
        self._last_of_sender: dict[int, simpy.Event] = {}
        self._transfers: list[list[Transfer]] = [[] for _ in topology.links]

    def way(self, parcel: Parcel) -> Send:
        """Prepare the way of messages, each of which a process of its own brings to its end."""
        for link in parcel.route:
            if link not in self._wires and link not in self._fair_wires:
                self._open(link)
        deliver = self._deliver_in_order if self._one_in_flight else self._deliver

        def send(message: Message, ready_s: float) -> None:
            assert ready_s == self._clock.now, f"{ready_s!r} is not now, {self._clock.now!r}"
            self._clock.process(deliver(parcel, message))

        return send

    def _open(self, link: int) -> None:
        """Make the wires of all links that share the medium of one."""
        for each in self._media.links_of_medium(link):
            if self._is_fair:
                self._fair_wires[each] = self._media.fair_wire(each, self._corrections)
            else:
                self._wires[each] = self._media.wire(each, self._corrections)

    def _deliver(self, parcel: Parcel, message: Message) -> Generator[simpy.Event, None, None]:
        """Bring a message to its receiver."""
        yield from self._travel(parcel, message)
        message.succeed()

    def _deliver_in_order(
        self, parcel: Parcel, message: Message
    ) -> Generator[simpy.Event, None, None]:
        """Bring a message to its receiver when the one before it of the same sender has arrived.

        The sender's next message leaves before the receiver of this one continues.
        """
        before = self._last_of_sender.get(parcel.sender)
        arrived = self._last_of_sender[parcel.sender] = self._clock.event()
        if before is not None:
            yield before
        yield from self._travel(parcel, message)
        arrived.succeed()
        message.succeed()

    def _travel(self, parcel: Parcel, message: Message) -> Generator[simpy.Event, None, None]:
        """Store and forward: each hop takes a message once the hop before has delivered it."""
        for link in parcel.route:
            passage = yield from self._cross(link, message.rank, parcel.num_bytes)
            self._transfers[link].append(
                Transfer(link, parcel.stage, parcel.kind, message.microbatch, *passage)
            )
            yield self._clock.at(passage.arrival_s, message.rank)

    def _cross(
        self, link: int, rank: int, num_bytes: float
    ) -> Generator[simpy.Event, None, Passage]:
        """Send a message over one link by the rules of sharing."""
        if self._is_fair:
            return (yield from self._fair_wires[link].carry(rank, num_bytes))
        if not self._media.by_priority:  # the wire knows at once when it is free
            return self._wires[link].carry(self._clock.now, num_bytes)
        with self._media.queue(link).request(priority=-self._priority) as turn:
            yield turn
            passage = self._wires[link].carry(self._clock.now, num_bytes)
            yield self._clock.at(passage.end_s)
        return passage

    def transfers(self) -> tuple[Transfer, ...]:
        """All hops of all messages, link by link, each in the order in which messages left."""
        return tuple(chain.from_iterable(self._transfers))

    def link_uses(self) -> tuple[LinkUse, ...]:
        """Sum up what each link carried of these messages."""
        wires: dict[int, Wire] | dict[int, FairWire]
        wires = self._fair_wires if self._is_fair else self._wires
        uses = []
        for index, link in enumerate(self._topology.links):
            wire = wires.get(index)
            uses.append(
                LinkUse(
                    source=link.source,
                    target=link.target,
                    num_messages=0 if wire is None else wire.num_messages,
                    num_bytes=0.0 if wire is None else wire.num_bytes,
                    busy_s=0.0 if wire is None else wire.busy_s,
                )
            )
        return tuple(uses)
