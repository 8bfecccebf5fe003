"""Figures of one direction of a link during a simulation."""

import math
from typing import NamedTuple

from des.costs.message_times import corrected
from des.costs.start_up import StartUp, start_up_on
from des.dynamics.link_course import Weather
from des.plan.corrections import Corrections
from des.world.topology import Link
from des.world.transport import Transport, goodput_bytes_per_s


class LinkPeriod(NamedTuple):
    """Figures of a link that hold until a time.

    ``goodput_bytes_per_s`` is what one message gets that has the link to itself: the bandwidth or
    less.
    """

    bandwidth_bytes_per_s: float
    goodput_bytes_per_s: float
    latency_s: float
    until_s: float


class Conditions:
    """A link's corrected figures times those of the weather, under the rules of the transport.

    The way back of an acknowledgement moves as the way there does.

    ``steady`` is what a link offers that does not move, else None; ``start_up`` are figures of the
    law of the transport, at base figures of the link, else None. No message gets more than the
    cap, which is corrected as the link's bandwidth is.
    """

    __slots__ = (
        "_cap_bytes_per_s",
        "_index",
        "_link",
        "_offer",
        "_round_trip_s",
        "_since_s",
        "_weather",
        "_window_bytes",
        "message_overhead_s",
        "start_up",
        "steady",
    )

    def __init__(
        self,
        index: int,
        link: Link,
        transport: Transport,
        corrections: Corrections,
        weather: Weather | None,
        *,
        round_trip_s: float,
        cap_bytes_per_s: float = math.inf,
    ) -> None:
        self._index = index
        self._cap_bytes_per_s = cap_bytes_per_s * corrections.wan_bandwidth_factor
        self._link = corrected(link, corrections)
        self._round_trip_s = round_trip_s * corrections.wan_latency_factor
        self._window_bytes = transport.message_window_bytes
        self._weather = weather
        self._since_s = 0.0
        self._offer = self._times(1.0, 1.0, math.inf if weather is None else 0.0)
        self.steady = self._offer if weather is None else None
        self.message_overhead_s = corrections.message_overhead_s
        self.start_up = self._start_up(corrections)

    def _start_up(self, corrections: Corrections) -> StartUp | None:
        if corrections.transport is None:
            return None
        base = self._times(1.0, 1.0, math.inf)
        return start_up_on(corrections.transport, base.goodput_bytes_per_s, self._round_trip_s)

    @property
    def name(self) -> str:
        """The link, for errors."""
        return str(self._link)

    def at(self, time_s: float) -> LinkPeriod:
        """Figures at a time; a border belongs to what it opens."""
        if self._weather is not None and not self._since_s <= time_s < self._offer.until_s:
            self._offer = self._times(*self._weather.piece(self._index, time_s))
            self._since_s = time_s
        return self._offer

    def goodput_at(self, time_s: float) -> tuple[float, float]:
        """Rate of a message alone on the link [bytes/s], and until when it holds [s]."""
        offer = self.at(time_s)
        return offer.goodput_bytes_per_s, offer.until_s

    def _times(self, bandwidth_factor: float, latency_factor: float, until_s: float) -> LinkPeriod:
        bandwidth = self._link.bandwidth_bytes_per_s * bandwidth_factor
        latency_s = self._link.latency_s * latency_factor
        goodput = bandwidth
        if self._window_bytes is not None:
            round_trip_s = self._round_trip_s * latency_factor
            goodput = goodput_bytes_per_s(bandwidth, round_trip_s, self._window_bytes)
        goodput = min(goodput, self._cap_bytes_per_s)
        return LinkPeriod(bandwidth, goodput, latency_s, until_s)
