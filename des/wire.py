"""One direction of a link while a simulation runs."""

from des.corrections import Corrections
from des.costs import Weather, corrected, serialisation_end_s
from des.topology import Link


class Wire:
    """Bytes leave first come, first served; latencies overlap; messages arrive in order.

    A first-come-first-served queue needs no process: who asks later leaves later, so the time when
    the wire is free is all there is to remember.
    """

    __slots__ = (
        "_free_at_s",
        "_index",
        "_last_arrival_s",
        "_link",
        "_overhead_s",
        "_weather",
        "busy_s",
        "num_bytes",
        "num_messages",
    )

    def __init__(
        self, index: int, link: Link, corrections: Corrections, weather: Weather | None
    ) -> None:
        self._index = index
        self._link = corrected(link, corrections)
        self._overhead_s = corrections.message_overhead_s
        self._weather = weather
        self._free_at_s = 0.0
        self._last_arrival_s = 0.0
        self.busy_s = 0.0
        self.num_bytes = 0.0
        self.num_messages = 0

    def carry(self, ready_s: float, num_bytes: float) -> tuple[float, float, float]:
        """Send a message that is ready; calls must come in order of ``ready_s``.

        Returns
        -------
        tuple
            When it takes the wire, when its last byte has left, when it has arrived. [s]
        """
        start_s = max(ready_s, self._free_at_s)
        end_s = serialisation_end_s(
            start_s + self._overhead_s,
            num_bytes,
            self._link.bandwidth_bytes_per_s,
            link=self._index,
            weather=self._weather,
        )
        arrival_s = max(end_s + self._latency_s(end_s), self._last_arrival_s)
        self._free_at_s, self._last_arrival_s = end_s, arrival_s
        self.busy_s += end_s - start_s
        self.num_bytes += num_bytes
        self.num_messages += 1
        return start_s, end_s, arrival_s

    def _latency_s(self, time_s: float) -> float:
        """Latency met by a message whose last byte leaves at ``time_s``."""
        if self._weather is None:
            return self._link.latency_s
        segment = self._weather.segment_at(time_s)
        return self._link.latency_s * self._weather.latency_factor(segment, self._index)
