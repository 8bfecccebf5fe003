"""The links while a simulation runs: messages find their way over one or several wires."""

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import NamedTuple

import simpy

from des.clock import Clock, Message
from des.dynamics.link_course import Weather
from des.engine.conditions import Conditions
from des.engine.fair_wire import FairMedium, FairWire
from des.engine.result import LinkUse, Transfer
from des.engine.wire import Turn, Wire
from des.plan.corrections import Corrections
from des.world.topology import Topology

Send = Callable[[Message, float], None]
"""Hands a message over at a time, which is now; the message happens when it has arrived."""

_new = tuple.__new__
"""``_new(Transfer, values)`` is ``Transfer(*values)`` without a call of Python code."""


class Parcel(NamedTuple):
    """What messages carry: their size, their route (positions of links), who made them how.

    ``sender`` is the endpoint they leave from: the position of the device that made them.
    """

    num_bytes: float
    route: tuple[int, ...]
    stage: int
    kind: str
    sender: int


class Network:
    """Wires of the links in use, and a record of what they carried."""

    def __init__(self, clock: Clock, topology: Topology, corrections: Corrections) -> None:
        self._clock, self._topology, self._corrections = clock, topology, corrections
        self._push = clock.push
        moving, transport = topology.movement, topology.transport
        self._weather = None if moving is None else Weather(moving, topology.links)
        self._is_fair = transport.sharing == "fair"
        self._has_queues = transport.sharing != "none"
        self._one_in_flight = transport.endpoints == "one_in_flight"
        self._wires: dict[int, Wire] = {}
        self._fair_wires: dict[int, FairWire] = {}
        self._endpoints: dict[int, _Endpoint] = {}
        self._transfers: list[list[Transfer]] = [[] for _ in topology.links]

    def way(self, parcel: Parcel) -> Send:
        """Prepare the way of messages, which store and forward.

        Each hop takes a message once the hop before has wholly delivered it.
        """
        for link in parcel.route:
            if link not in self._wires and link not in self._fair_wires:
                self._open(link)
        send = partial(self._share if self._is_fair else self._queue, parcel)
        if not self._one_in_flight:
            return send
        if parcel.sender not in self._endpoints:
            self._endpoints[parcel.sender] = _Endpoint(self._clock)
        return partial(self._endpoints[parcel.sender].send, send)

    def _open(self, link: int) -> None:
        """Make the wires of all links that share the medium of one."""
        links = _links_of_medium(self._topology, link)
        if self._is_fair:
            medium = FairMedium(self._clock, links[0])
            for each in links:
                self._fair_wires[each] = medium.add(self._conditions(each))
        else:
            turn = Turn() if self._has_queues else None
            for each in links:
                self._wires[each] = Wire(self._conditions(each), turn)

    def _conditions(self, link: int) -> Conditions:
        topology = self._topology
        return Conditions(
            link,
            topology.links[link],
            topology.transport,
            self._corrections,
            self._weather,
            round_trip_s=topology.round_trip_s(link),
        )

    def _queue(
        self,
        parcel: Parcel,
        message: Message,
        ready_s: float,
        hop: int = 0,
        event: simpy.Event | None = None,
    ) -> None:
        """Let a message queue for a wire that serves in turn; all its times are known at once.

        So they are where there are no queues: then it starts when it is ready.
        """
        num_bytes, route, stage, kind, _ = parcel
        link = route[hop]
        start_s, end_s, arrival_s = self._wires[link].carry(ready_s, num_bytes)
        self._transfers[link].append(
            _new(Transfer, (link, stage, kind, message.microbatch, start_s, end_s, arrival_s))
        )
        if hop + 1 == len(route):
            self._push((arrival_s, message.rank, 0, message))
        else:
            reached = self._clock.at(arrival_s, message.rank)
            reached.callbacks.append(partial(self._queue, parcel, message, arrival_s, hop + 1))

    def _share(
        self,
        parcel: Parcel,
        message: Message,
        ready_s: float,
        hop: int = 0,
        event: simpy.Event | None = None,
    ) -> None:
        """Let a message join those on a wire, which says when it has left."""
        num_bytes, route, stage, kind, _ = parcel
        link = route[hop]

        def left(end_s: float, arrival_s: float) -> None:
            self._transfers[link].append(
                Transfer(link, stage, kind, message.microbatch, ready_s, end_s, arrival_s)
            )
            if hop + 1 == len(route):
                message.happen_at(arrival_s)
            else:
                reached = self._clock.at(arrival_s, message.rank)
                reached.callbacks.append(partial(self._share, parcel, message, arrival_s, hop + 1))

        self._fair_wires[link].carry(message.rank, ready_s, num_bytes, left)

    def transfers(self) -> tuple[Transfer, ...]:
        """All hops of all messages, link by link, each in the order in which messages left."""
        return tuple(chain.from_iterable(self._transfers))

    def link_uses(self) -> tuple[LinkUse, ...]:
        """Sum up what each link carried."""
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


class _Endpoint:
    """A sender that has one message under way at a time; the others wait in order."""

    __slots__ = ("_clock", "_waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: deque[tuple[Send, Message]] = deque()

    def send(self, send: Send, message: Message, ready_s: float) -> None:
        """Send a message when all before it have arrived."""
        self._waiting.append((send, message))
        if len(self._waiting) == 1:
            self._start(ready_s)

    def _start(self, time_s: float) -> None:
        send, message = self._waiting[0]
        message.callbacks.insert(0, self._arrived)  # before those who wait for the message
        send(message, time_s)

    def _arrived(self, _: simpy.Event) -> None:
        self._waiting.popleft()
        if self._waiting:
            self._start(self._clock.now)


def _links_of_medium(topology: Topology, link: int) -> list[int]:
    """Links that share a medium with one: it alone, or both directions under half duplex."""
    if not topology.transport.half_duplex:
        return [link]
    ends = {topology.links[link].source, topology.links[link].target}
    return [index for index, one in enumerate(topology.links) if {one.source, one.target} == ends]
