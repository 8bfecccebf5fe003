"""Media of the links that all networks on one clock share, and how they move."""

import simpy

from des.clock import Clock
from des.costs.message_times import hop_window
from des.dynamics.link_course import Weather
from des.engine.conditions import Conditions
from des.engine.fair_wire import FairMedium, FairWire
from des.engine.gate import Gate
from des.engine.wire import Turn, Window, Wire
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
    windows
        Windows of the hosts' connections, as earlier messages left them; those that are opened are
        added.
    """

    def __init__(
        self,
        clock: Clock,
        topology: Topology,
        *,
        by_priority: bool = False,
        windows: dict[int, Window] | None = None,
    ) -> None:
        self._clock, self._topology = clock, topology
        moving, self._sharing = topology.movement, topology.transport.sharing
        self._weather = None if moving is None else Weather(moving, topology.links)
        self.by_priority = by_priority
        self._turns: dict[int, Turn] = {}
        self._queues: dict[int, simpy.PriorityResource] = {}
        self._gates: dict[str, Gate] = {}
        self._windows = {} if windows is None else windows
        self._fair: dict[int, FairMedium] = {}

    def wire(self, link: int, corrections: Corrections) -> Wire:
        """Make a wire over the medium of a link, where messages queue or are alone."""
        conditions = self._conditions(link, corrections)
        if self._sharing == "none":
            return Wire(conditions, None)
        turn = self._turns.setdefault(self._medium_of(link), Turn())
        gates = tuple(
            self._gates.setdefault(name, Gate(rate))
            for name, rate in self._gates_of(link, corrections).items()
        )
        return Wire(conditions, turn, gates, self._window_of(link, corrections))

    def _window_of(self, link: int, corrections: Corrections) -> Window | None:
        figures = hop_window(self._topology, link, corrections)
        if figures is None:
            return None
        return self._windows.setdefault(link, Window(figures))

    def fair_wire(self, link: int, corrections: Corrections) -> FairWire:
        """Make a wire over the medium of a link whose messages share it."""
        medium = self._medium_of(link)
        fair = self._fair.setdefault(medium, FairMedium(self._clock, medium))
        return fair.add(self._conditions(link, corrections), self._gates_of(link, corrections))

    def queue(self, link: int) -> simpy.PriorityResource:
        """Return the queue for the medium of a link where it goes by priority."""
        medium = self._medium_of(link)
        if medium not in self._queues:
            self._queues[medium] = simpy.PriorityResource(self._clock)
        return self._queues[medium]

    def _conditions(self, link: int, corrections: Corrections) -> Conditions:
        """Return what a link offers while the simulation runs."""
        topology = self._topology
        return Conditions(
            link,
            topology.links[link],
            topology.transport,
            corrections,
            self._weather,
            round_trip_s=topology.round_trips_s[link],
            cap_bytes_per_s=topology.message_caps_bytes_per_s[link],
        )

    def _gates_of(self, link: int, corrections: Corrections) -> dict[str, float]:
        """Rates that a link shares with others, by name. [bytes/s]"""
        return {
            gate.name: gate.rate_bytes_per_s * corrections.wan_bandwidth_factor
            for gate in self._topology.gates
            if link in gate.links
        }

    def links_of_medium(self, link: int) -> list[int]:
        """Links that share a medium with one: it alone, or both directions under half duplex.

        Fair rates of links with gates depend on each other, so all links are one medium there.
        """
        if self._sharing == "fair" and self._topology.gates:
            return list(range(len(self._topology.links)))
        if not self._topology.transport.half_duplex:
            return [link]
        links = self._topology.links
        ends = {links[link].source, links[link].target}
        return [index for index, one in enumerate(links) if {one.source, one.target} == ends]

    def _medium_of(self, link: int) -> int:
        return self.links_of_medium(link)[0]
