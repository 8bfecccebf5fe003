"""The links while a simulation runs: messages find their way over one or several wires."""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, TypeVar

import simpy

from des.clock import Clock, Message
from des.conditions import Conditions
from des.corrections import Corrections
from des.fair_wire import FairMedium, FairWire
from des.result import LinkUse, Transfer
from des.topology import Topology
from des.weather import Weather
from des.wire import Turn, Wire

Medium = TypeVar("Medium", Turn, FairMedium)


class Parcel(NamedTuple):
    """What is sent: its size, its route (positions of links) and who made it in which pass.

    ``sender`` is the endpoint it leaves from: the position of the device that made it.
    """

    num_bytes: float
    route: tuple[int, ...]
    stage: int
    kind: str
    microbatch: int
    sender: int


class Network:
    """Wires of all links, and a record of what they carried.

    Where links serve in turn and senders never wait, the times of a hop are known at once. Else a
    process takes each parcel along.
    """

    def __init__(self, clock: Clock, topology: Topology, corrections: Corrections) -> None:
        self._clock = clock
        self._links = topology.links
        transport, moving = topology.transport, topology.movement
        weather = None if moving is None else Weather(moving, topology.links)
        conditions = [
            Conditions(
                index,
                link,
                transport,
                corrections,
                weather,
                round_trip_s=topology.round_trip_s(index),
            )
            for index, link in enumerate(topology.links)
        ]
        self._one_in_flight = transport.endpoints == "one_in_flight"
        self._endpoints: dict[int, simpy.Resource] = {}
        self._wires: Sequence[Wire | FairWire]
        self._foreseeable: Sequence[Wire] | None = None
        if transport.sharing == "fair":
            media = _media(topology, lambda: FairMedium(clock))
            self._wires = [each.add(at) for each, at in zip(media, conditions, strict=True)]
        else:
            turns = _media(topology, Turn)
            wires = [Wire(at, turn) for at, turn in zip(conditions, turns, strict=True)]
            self._wires = wires
            self._foreseeable = None if self._one_in_flight else wires
        self.transfers: list[Transfer] = []

    def send(self, parcel: Parcel, message: Message, ready_s: float) -> None:
        """Hand over a parcel now; ``message`` is told when it will have arrived at its target."""
        if self._foreseeable is None:
            self._clock.process(self._deliver(parcel, message))
            return
        arrival_s = self._carry(self._foreseeable, parcel, parcel.route[0], ready_s)
        if len(parcel.route) == 1:
            message.arrive_at(arrival_s)
        else:
            self._clock.process(self._relay(self._foreseeable, parcel, message, arrival_s))

    def _relay(
        self, wires: Sequence[Wire], parcel: Parcel, message: Message, arrival_s: float
    ) -> Generator[simpy.Event, None, None]:
        """Store and forward: each further hop queues the parcel once it has wholly arrived."""
        for hop in parcel.route[1:]:
            yield self._clock.at(arrival_s)
            arrival_s = self._carry(wires, parcel, hop, arrival_s)
        message.arrive_at(arrival_s)

    def _carry(self, wires: Sequence[Wire], parcel: Parcel, hop: int, ready_s: float) -> float:
        start_s, end_s, arrival_s = wires[hop].carry(ready_s, parcel.num_bytes)
        self.transfers.append(
            Transfer(hop, parcel.stage, parcel.kind, parcel.microbatch, start_s, end_s, arrival_s)
        )
        return arrival_s

    def _deliver(self, parcel: Parcel, message: Message) -> Generator[simpy.Event, None, None]:
        """Travel at once, or when the sender's message before has arrived at its target."""
        if not self._one_in_flight:
            yield from self._travel(parcel, message)
            return
        if parcel.sender not in self._endpoints:
            self._endpoints[parcel.sender] = simpy.Resource(self._clock)
        with self._endpoints[parcel.sender].request() as turn:
            yield turn
            yield from self._travel(parcel, message)

    def _travel(self, parcel: Parcel, message: Message) -> Generator[simpy.Event, None, None]:
        """Store and forward: each hop takes the parcel once it has wholly arrived."""
        for hop in parcel.route:
            times_s = yield from self._wires[hop].transmit(self._clock, parcel.num_bytes)
            self.transfers.append(
                Transfer(hop, parcel.stage, parcel.kind, parcel.microbatch, *times_s)
            )
        message.arrive_at(self._clock.now)

    def link_uses(self) -> tuple[LinkUse, ...]:
        """Sum up what each link carried."""
        return tuple(
            LinkUse(
                source=link.source,
                target=link.target,
                num_messages=wire.num_messages,
                num_bytes=wire.num_bytes,
                busy_s=wire.busy_s,
            )
            for link, wire in zip(self._links, self._wires, strict=True)
        )


def _media(topology: Topology, make: Callable[[], Medium]) -> list[Medium]:
    """What each link runs over: its own, or one for both directions where they share it."""
    media: dict[tuple[str, ...], Medium] = {}
    found = []
    for link in topology.links:
        ends = (link.source, link.target)
        key = tuple(sorted(ends)) if topology.transport.half_duplex else ends
        if key not in media:
            media[key] = make()
        found.append(media[key])
    return found
