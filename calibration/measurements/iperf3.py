"""JSON of iperf3: rates of TCP and UDP, round trips of senders, jitter and loss of datagrams.

`iperf3 -J`; iperf3(1), ``src/iperf_api.c``. Versions to 3.1 have no ``sum_sent`` of UDP, to 3.12 no
``bidir`` at the start: both directions are known by ``sum_received_bidir_reverse``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from calibration.measurements.reading import Quantity, Reading
from calibration.measurements.source_text import JsonField, SourceText, middle_of, quartile_distance

NAME = "iperf3"
_BITS_PER_BYTE = 8.0
_LARGEST_DIFFERENCE = 0.05
"""Relative difference of a rate from its bytes and seconds that rounding and clocks leave."""


def holds(file: SourceText) -> bool:
    """Whether it is a report of iperf3."""
    return file.has_keys("start", "end") and file.json.get("start", "version") is not None


def read(file: SourceText) -> Iterator[Reading]:
    """Read a report.

    Raises
    ------
    ValueError
        If the run ended with an error, a rate is not positive or not that of its bytes, or clocks
        go back; naming file and field.
    """
    report = file.json
    if (failure := report.get("error")) is not None:
        raise file.wrong(f"error must be left out, got {failure.value!r}: the run has failed")
    for way in _ways(report):
        yield from way.readings()


def _ways(report: JsonField) -> Iterator["_Way"]:
    """Directions that were measured."""
    test = report.at("start", "test_start")
    ends = _ends(report)
    is_udp = test.at("protocol").text().upper() == "UDP"
    reverse = test.get("reverse")
    is_back = reverse is not None and reverse.number() == 1
    there = _Way(report=report, ends=ends, suffix="", is_remote=False, is_udp=is_udp)
    back = replace(there, ends=ends[::-1], is_remote=True)
    yield back if is_back else there
    if report.get("end", "sum_received_bidir_reverse") is not None:
        yield replace(back, suffix="_bidir_reverse")


def _ends(report: JsonField) -> tuple[str, str]:
    """Addresses of the client and the server."""
    first = next(report.at("start", "connected").items(), None)
    if first is None:
        raise ValueError(f"{report.file}: start.connected must hold a connection, got none")
    return first.at("local_host").text(), first.at("remote_host").text()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One direction: from sender to receiver."""

    report: JsonField
    ends: tuple[str, str]
    suffix: str
    is_remote: bool
    is_udp: bool

    def readings(self) -> Iterator[Reading]:
        """Rate, and what else is measured in this direction."""
        end = self.report.at("end")
        received = end.get(f"sum_received{self.suffix}") or end.at(f"sum{self.suffix}")
        rate = _rate_bytes_per_s(received)
        series = self._series()
        yield self._reading(
            "rate_at_least" if self.is_udp and not self._is_full(received) else "bandwidth",
            rate,
            series=series,
            samples=max(1, len(series)),
            spread=quartile_distance([value for _, value in series]),
        )
        if self.is_udp:
            yield from self._of_datagrams(received)
        else:
            yield from self._round_trip()

    def _is_full(self, received: JsonField) -> bool:
        """Whether datagrams were lost, so that the link and not the sender set the rate."""
        lost = received.get("lost_percent")
        return lost is not None and lost.non_negative() > 1.0

    def _of_datagrams(self, received: JsonField) -> Iterator[Reading]:
        packets = received.get("packets")
        count = max(1, int(packets.non_negative())) if packets is not None else 1
        if (jitter := received.get("jitter_ms")) is not None:
            yield self._reading("jitter", jitter.non_negative() / 1e3, samples=count)
        if (lost := received.get("lost_percent")) is not None:
            yield self._reading("loss", lost.non_negative() / 100.0, samples=count)

    def _round_trip(self) -> Iterator[Reading]:
        """Mean of the sender's streams; a sender on the other side tells 0 or nothing."""
        streams = list(self.report.at("end", "streams").items())
        senders = [one.get("sender") for one in streams]
        mine = [one for one in senders if one is not None and self._is_mine(one)]
        times = [one.get("mean_rtt") for one in mine]
        known_s = [one.non_negative() / 1e6 for one in times if one is not None]
        if known_s and all(known_s) and not self.is_remote:
            yield self._reading(
                "round_trip",
                middle_of(known_s),
                samples=len(known_s),
                spread=quartile_distance(known_s),
                note="under load, so with the queues of the link",
            )

    def _is_mine(self, stream: JsonField) -> bool:
        side = stream.get("sender")
        return side is None or side.value is not self.is_remote

    def _series(self) -> tuple[tuple[float, float], ...]:
        """Rates of the intervals, without those of the warm-up (``-O``)."""
        parts = [one.get(f"sum{self.suffix}") for one in self.report.at("intervals").items()]
        sums = [one for one in parts if one is not None]
        for before, after in pairwise(sums):
            if after.at("start").number() < before.at("start").number():
                raise after.at("start").wrong(f"at least {before.at('start').value}: clocks jumped")
        counted = [one for one in sums if not _is_omitted(one)]
        return tuple(
            (one.at("start").non_negative(), one.at("bits_per_second").number() / _BITS_PER_BYTE)
            for one in counted
        )

    def _reading(
        self,
        what: Quantity,
        value: float,
        *,
        samples: int = 1,
        spread: float | None = None,
        series: tuple[tuple[float, float], ...] = (),
        note: str = "",
    ) -> Reading:
        start = self.report.at("start")
        began = start.get("timestamp", "timesecs")
        streams = start.get("test_start", "num_streams")
        return Reading(
            file=self.report.file,
            format=NAME,
            what=what,
            value=value,
            samples=samples,
            spread=spread,
            source=self.ends[0],
            target=self.ends[1],
            time_s=None if began is None else began.positive(),
            series=series,
            facts=() if streams is None else (("streams", f"{streams.number():g}"),),
            note=note,
        )


def _is_omitted(interval: JsonField) -> bool:
    omitted = interval.get("omitted")
    return omitted is not None and omitted.value is True


def _rate_bytes_per_s(total: JsonField) -> float:
    """Rate of a sum, checked against its bytes and seconds."""
    field = total.at("bits_per_second")
    rate = field.positive() / _BITS_PER_BYTE
    counted = total.at("bytes").positive() / total.at("seconds").positive()
    if abs(rate - counted) > _LARGEST_DIFFERENCE * counted:
        raise field.wrong(
            f"8 x bytes / seconds, {_BITS_PER_BYTE * counted:.6g} bits/s (are these bytes?)"
        )
    return rate
