"""Links of a world played by ns-3, in lock-step with an iteration."""

import math

from calibration.packet.numbers import NS_PER_S, NetworkNumbers, network_numbers, rate_bits_per_s
from calibration.packet.process import PacketProcess
from calibration.reference.binaries import ReferenceRunError
from des.dynamics.link_course import StarvationError, Weather
from des.world.topology import Topology

MOST_EVENTS = 2_000_000_000
MOST_MESSAGE_BYTES = 2.0**50
MOST_FRESH_MESSAGES = 60_000
"""Fresh connections to one domain: each takes a port."""

QUIET_S = 2.0
"""Time from the last segment of warming up to the start, for acknowledgements: above any round trip
and well below the 10 s after which BBR probes for the least one, with four segments under way. [s]
"""

STARVED_AFTER_S = 1e6
"""A message that has not arrived by then, with no other event to come, never will. [s]"""


class PacketLinks:
    """The messages of one iteration as packets; see `des.engine.stepped.SteppedLinks`.

    Links that move have their rates changed on the way; a rate of 0 loses what crosses the link.

    Parameters
    ----------
    process
        Child that simulates; it plays one network at a time.
    run
        Number of the run of ns-3's generator of random numbers, which losses are drawn from.
    is_warm
        Whether reused connections are open when the iteration begins, having carried a segment.

    Raises
    ------
    ValueError
        If the world has figures that a network of packets cannot have, latencies that move too.
    """

    def __init__(
        self, topology: Topology, process: PacketProcess, *, run: int = 1, is_warm: bool = True
    ) -> None:
        self._topology, self._process = topology, process
        self._numbers: NetworkNumbers = network_numbers(topology)
        self._num_connections = [0] * topology.num_domains
        self._num_events = self.num_drops = 0
        moving = topology.movement
        self._weather = None if moving is None else Weather(moving, topology.links)
        self._next_change_s = [0.0 if moving is not None else math.inf] * len(topology.links)
        numbers = self._numbers
        process.ask(
            "open",
            (
                numbers.num_hosts,
                run,
                tuple(numbers.transport),
                tuple(map(tuple, numbers.joints)),
                tuple(map(tuple, numbers.routes)),
                tuple(map(tuple, numbers.windows)),
            ),
        )
        self._start_ns = 0
        if is_warm and topology.transport.packets.connections == "reused":
            self._start_ns = self._warm_up()
        self._change_rates(0.0)

    def _warm_up(self) -> int:
        """Send a segment over each connection; returns when all is quiet again. [ns]"""
        packets = self._topology.transport.packets
        num_bytes = packets.segment_bytes * packets.flows
        for number, window in enumerate(self._numbers.windows):
            self._process.tell("send", (number, window.source, window.target, num_bytes, 0))
        missing = len(self._numbers.windows)
        reached_ns = 0
        while missing:
            reached_ns, _, _, *arrived = self._process.ask(
                "advance", (round(STARVED_AFTER_S * NS_PER_S),)
            )
            missing -= len(arrived)
            if not arrived:
                raise StarvationError(
                    f"network of packets: no connection opens within {STARVED_AFTER_S:g} s"
                )
        return reached_ns + round(QUIET_S * NS_PER_S)

    def _to_ns(self, time_s: float) -> int:
        return self._start_ns + round(time_s * NS_PER_S)

    @property
    def num_events(self) -> int:
        """Events that ns-3 has worked off."""
        return self._num_events

    def send(self, message: int, source: int, target: int, num_bytes: float, time_s: float) -> None:
        """Hand a message over; bytes are rounded up.

        Raises
        ------
        ValueError
            If it is too large, or has no port left at its target.
        """
        if not 0 <= num_bytes <= MOST_MESSAGE_BYTES:
            raise ValueError(
                f"network of packets: a message must have at most {MOST_MESSAGE_BYTES:.0f} bytes, "
                f"got {num_bytes!r}"
            )
        packets = self._topology.transport.packets
        if packets.connections == "fresh":
            self._num_connections[target] += packets.flows
            if self._num_connections[target] > MOST_FRESH_MESSAGES:
                raise ValueError(
                    "transport.packets: connections must be reused where a domain receives over "
                    f"{MOST_FRESH_MESSAGES} connections in an iteration, got fresh for "
                    f"{self._topology.domains[target].name}"
                )
        request = message, source, target, math.ceil(num_bytes), self._to_ns(time_s)
        self._process.tell("send", request)

    def advance(self, until_s: float) -> tuple[float, tuple[int, ...]]:
        """Run until messages arrive or a time is reached.

        Raises
        ------
        StarvationError
            If nothing arrives within `STARVED_AFTER_S`.
        ReferenceRunError
            If ns-3 died, took too long, or needs more than `MOST_EVENTS` events.
        """
        while True:
            stop_s = min(until_s, STARVED_AFTER_S, *self._next_change_s)
            reached_ns, self._num_events, self.num_drops, *arrived = self._process.ask(
                "advance", (self._to_ns(stop_s),)
            )
            reached_s = (reached_ns - self._start_ns) / NS_PER_S
            if arrived:
                return reached_s, tuple(arrived)
            if self._num_events > MOST_EVENTS:
                raise ReferenceRunError(
                    f"ns-3: more than {MOST_EVENTS} events in one iteration, at {reached_s:g} s"
                )
            if stop_s == until_s:
                return until_s, ()
            if stop_s == STARVED_AFTER_S:
                raise StarvationError(
                    f"network of packets: a message has not arrived after {STARVED_AFTER_S:g} s; "
                    "a link on its way is down for ever"
                )
            self._change_rates(stop_s)

    def _change_rates(self, time_s: float) -> None:
        """Change the rates of all links whose figures change at a time."""
        if self._weather is None:
            return
        for index, link in enumerate(self._topology.links):
            if self._next_change_s[index] > time_s:
                continue
            factor, latency_factor, until_s = self._weather.piece(index, time_s)
            if latency_factor != 1:
                raise ValueError(
                    f"network of packets: latencies must stand still, got a law that moves that of "
                    f"{link} by a factor of {latency_factor!r}"
                )
            rate = rate_bits_per_s(str(link), link.bandwidth_bytes_per_s * factor) if factor else 0
            joint, direction = self._numbers.place_of_link[index]
            request = joint, direction, self._to_ns(time_s), rate
            self._process.tell("change", request)
            self._next_change_s[index] = until_s
