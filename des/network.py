"""The links while a simulation runs: messages find their way over one or several wires."""

from collections.abc import Generator
from typing import NamedTuple

import simpy

from des.clock import Clock, Message
from des.corrections import Corrections
from des.costs import Weather
from des.result import LinkUse, Transfer
from des.topology import Topology
from des.wire import Wire


class Parcel(NamedTuple):
    """What is sent: its size, its route (positions of links) and who made it in which pass."""

    num_bytes: float
    route: tuple[int, ...]
    stage: int
    kind: str
    microbatch: int


class Network:
    """Wires of all links, and a record of what they carried."""

    def __init__(self, clock: Clock, topology: Topology, corrections: Corrections) -> None:
        self._clock = clock
        self._links = topology.links
        moving = topology.movement
        weather = None if moving is None else Weather(moving, len(topology.links))
        self._wires = [
            Wire(index, link, corrections, weather) for index, link in enumerate(topology.links)
        ]
        self.transfers: list[Transfer] = []

    def send(self, parcel: Parcel, message: Message, ready_s: float) -> None:
        """Hand a parcel to the first link now; a longer route is followed by a process."""
        arrival_s = self._carry(parcel, parcel.route[0], ready_s)
        if len(parcel.route) == 1:
            message.arrive_at(arrival_s)
        else:
            self._clock.process(self._relay(parcel, message, arrival_s))

    def _relay(
        self, parcel: Parcel, message: Message, arrival_s: float
    ) -> Generator[simpy.Event, None, None]:
        """Store and forward: each further hop queues the parcel once it has wholly arrived."""
        for hop in parcel.route[1:]:
            yield self._clock.at(arrival_s)
            arrival_s = self._carry(parcel, hop, arrival_s)
        message.arrive_at(arrival_s)

    def _carry(self, parcel: Parcel, link: int, ready_s: float) -> float:
        start_s, end_s, arrival_s = self._wires[link].carry(ready_s, parcel.num_bytes)
        self.transfers.append(
            Transfer(link, parcel.stage, parcel.kind, parcel.microbatch, start_s, end_s, arrival_s)
        )
        return arrival_s

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
