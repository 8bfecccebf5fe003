"""Links that do again what was measured: figures by time, link by link."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from des.base.checks import require_non_negative
from des.dynamics.law import Extremes, LinkFigures, Path, Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSeries:
    """Figures of one link by time; those of a row rule until the time of the next.

    Times start at 0 and rise. A bandwidth of 0 is an outage.
    """

    source: str
    target: str
    times_s: tuple[float, ...]
    bandwidths_bytes_per_s: tuple[float, ...]
    latencies_s: tuple[float, ...]

    def __post_init__(self) -> None:
        fields = ("times_s", "bandwidths_bytes_per_s", "latencies_s")
        for field in fields:
            if len(getattr(self, field)) != len(self.times_s) or not self.times_s:
                raise ValueError(
                    f"{self}: {field} must hold as many entries as times_s, at least one; got "
                    f"{len(getattr(self, field))}"
                )
            for value in getattr(self, field):
                require_non_negative(str(self), field, value)
        if self.times_s[0] != 0:
            raise ValueError(
                f"{self}: times_s must start at 0 for there to be no gap, got {self.times_s[0]!r}"
            )
        for earlier_s, later_s in pairwise(self.times_s):
            if later_s <= earlier_s:
                raise ValueError(
                    f"{self}: times_s must rise from row to row, got {later_s!r} after "
                    f"{earlier_s!r}"
                )

    def __str__(self) -> str:
        return f"link {self.source}->{self.target}"


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Law of links that follow a trace: the same whatever the seed.

    Attributes
    ----------
    name
        Source of the trace, for errors.
    series
        One for each link, all with the same times: a time that a link lacks is a gap.
    holds_last
        Whether the last figures rule for ever. Else a run that outlasts the trace is an error; the
        last row then says only until when the trace holds.
    """

    name: str
    series: tuple[LinkSeries, ...]
    holds_last: bool = False

    def __post_init__(self) -> None:
        if not self.series:
            raise ValueError(f"{self.name}: trace must hold at least one link, got none")
        if len(self._by_ends) < len(self.series):
            ends = [(one.source, one.target) for one in self.series]
            twice = next(one for one in self.series if ends.count((one.source, one.target)) > 1)
            raise ValueError(f"{self.name}: {twice}: must be given once, got a duplicate")
        times_s = sorted({time_s for one in self.series for time_s in one.times_s})
        for one in self.series:
            missing = set(times_s) - set(one.times_s)
            if missing:
                raise ValueError(
                    f"{self.name}: {one}: must have a row at every time of the trace, got a gap at "
                    f"{min(missing)!r} s"
                )

    @cached_property
    def _by_ends(self) -> dict[tuple[str, str], LinkSeries]:
        return {(one.source, one.target): one for one in self.series}

    def check_links(self, links: Sequence[LinkFigures]) -> None:
        """Refuse a trace without one of the links, or with others."""
        for link in links:
            series = self._by_ends.get((link.source, link.target))
            if series is None:
                raise ValueError(
                    f"{self.name}: trace must hold every link of the world, got no row of link "
                    f"{link.source}->{link.target}"
                )
            if link.latency_s == 0 and any(series.latencies_s):
                raise ValueError(
                    f"{self.name}: {series}: latency_s must be 0 as in the world, got "
                    f"{max(series.latencies_s)!r}"
                )
        known = {(link.source, link.target) for link in links}
        for unknown in (ends for ends in self._by_ends if ends not in known):
            raise ValueError(
                f"{self.name}: {self._by_ends[unknown]}: must be a link of the world, got none "
                "there"
            )

    def extremes(self, link: LinkFigures) -> Extremes:
        """Bounds of the factors on a link: the least and the most of its series."""
        series = self._by_ends[link.source, link.target]
        bandwidths, latencies = series.bandwidths_bytes_per_s, series.latencies_s
        base = link.bandwidth_bytes_per_s
        return Extremes(
            min(bandwidths) / base,
            max(bandwidths) / base,
            _latency_factor(min(latencies), link),
            _latency_factor(max(latencies), link),
        )

    def path(self, links: Sequence[LinkFigures], seed: int) -> Path:
        """Return the course of the links, which is the only one."""
        return _ReplayPath(self, links)

    def series_of(self, link: LinkFigures) -> LinkSeries:
        """Return the series of a link."""
        return self._by_ends[link.source, link.target]


class _ReplayPath:
    """The series of the links, as factors on the figures of the world."""

    def __init__(self, law: Replay, links: Sequence[LinkFigures]) -> None:
        self._law = law
        self._links = tuple(links)
        self._series = [law.series_of(link) for link in links]

    def piece_at(self, link: int, time_s: float) -> Piece:
        """Piece that holds a time; ``ValueError`` where the trace has ended."""
        series, figures = self._series[link], self._links[link]
        row = bisect_right(series.times_s, time_s) - 1
        last = row == len(series.times_s) - 1
        if last and not self._law.holds_last:
            raise ValueError(
                f"{self._law.name}: {series}: trace must cover the run, got figures until "
                f"{series.times_s[-1]:g} s where {time_s:g} s is needed"
            )
        return Piece(
            series.times_s[row],
            math.inf if last else series.times_s[row + 1],
            series.bandwidths_bytes_per_s[row] / figures.bandwidth_bytes_per_s,
            _latency_factor(series.latencies_s[row], figures),
        )


def _latency_factor(latency_s: float, link: LinkFigures) -> float:
    """Factor on the base latency; where both are 0 there is nothing to change."""
    return latency_s / link.latency_s if link.latency_s else 1.0
