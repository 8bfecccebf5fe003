"""Media of the links that all networks on one clock share, and how they move."""

import simpy

from des.clock import Clock
from des.dynamics.link_course import Weather
from des.engine.conditions import Conditions
from des.engine.fair_wire import FairMedium
from des.engine.wire import Turn
from des.plan.corrections import Corrections
from des.world.topology import Topology


class Media:
    """Media of a world's links, made when they are first used.

    A medium carries one direction of a link, or both where they share it (half duplex).

    Parameters
    ----------
    by_priority
        Whether messages that wait for a medium come by the priority of their job instead of first
        come, first served.
    """

    def __init__(self, clock: Clock, topology: Topology, *, by_priority: bool = False) -> None:
        self._clock, self._topology = clock, topology
        moving, self._sharing = topology.movement, topology.transport.sharing
        self._weather = None if moving is None else Weather(moving, topology.links)
        self.by_priority = by_priority
        self._turns: dict[int, Turn] = {}
        self._gates: dict[int, simpy.PriorityResource] = {}
        self._fair: dict[int, FairMedium] = {}

    def turn(self, link: int) -> Turn | None:
        """Return when the medium of a link is free; None where messages do not queue."""
        if self._sharing == "none":
            return None
        return self._turns.setdefault(self._medium_of(link), Turn())

    def gate(self, link: int) -> simpy.PriorityResource:
        """Return the queue for the medium of a link where it goes by priority."""
        medium = self._medium_of(link)
        if medium not in self._gates:
            self._gates[medium] = simpy.PriorityResource(self._clock)
        return self._gates[medium]

    def fair(self, link: int) -> FairMedium:
        """Return the medium of a link whose messages share it."""
        medium = self._medium_of(link)
        return self._fair.setdefault(medium, FairMedium(self._clock, medium))

    def conditions(self, link: int, corrections: Corrections) -> Conditions:
        """Return what a link offers while the simulation runs."""
        topology = self._topology
        return Conditions(
            link,
            topology.links[link],
            topology.transport,
            corrections,
            self._weather,
            round_trip_s=topology.round_trip_s(link),
        )

    def links_of_medium(self, link: int) -> list[int]:
        """Links that share a medium with one: it alone, or both directions under half duplex."""
        if not self._topology.transport.half_duplex:
            return [link]
        links = self._topology.links
        ends = {links[link].source, links[link].target}
        return [index for index, one in enumerate(links) if {one.source, one.target} == ends]

    def _medium_of(self, link: int) -> int:
        return self.links_of_medium(link)[0]
