"""Uplinks and downlinks of sites, from transfers over several of their links at one time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal

from calibration.measurements import iperf3
from calibration.measurements.reading import Reading
from calibration.measurements.source_text import middle_of, quartile_distance
from scenarios.measuring.combined import Combined, bandwidths

_LEAST_WINDOW_S = 2.0
"""Common time below which two transfers count as one after the other: starts are whole seconds."""

_FREE_SHARE = 0.9
"""Share of what links carry one by one from which on they share no limit that can be told."""

Way = Literal["uplink", "downlink"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLimit:
    """Rate that all links out of a site, or into it, have together."""

    site: str
    way: Way
    rate: Combined


def limits_of_sites(
    readings: Sequence[Reading],
) -> tuple[tuple[SiteLimit, ...], tuple[Reading, ...]]:
    """Limits that simultaneous transfers show, and the readings that remain for single links.

    Where transfers over several links of a site together carry less than `_FREE_SHARE` of what the
    same links carry one by one, their sum is the limit, and they say nothing about a single link.
    The sum counts over the time that they have in common, of as many links as ever.
    """
    found: list[SiteLimit] = []
    rest = tuple(readings)
    for way in ("uplink", "downlink"):
        for site in dict.fromkeys(_ends(one, way)[0] for one in _transfers(readings)):
            mine = [one for one in _transfers(readings) if _ends(one, way)[0] == site]
            windows = list(_windows(mine))
            widest = max((len(links) for links, _, _ in windows), default=0)
            windows = [one for one in windows if len(one[0]) == widest]
            shared = {id(one) for _, users, _ in windows for one in users}
            alone = bandwidths(one for one in rest if id(one) not in shared)
            sums = [
                total
                for links, _, total in windows
                if links <= alone.keys()
                and total < _FREE_SHARE * sum(alone[link].value for link in links)
            ]
            if sums:
                users = tuple(one for one in mine if id(one) in shared)
                rate = Combined(
                    readings=users, value=middle_of(sums), spread=quartile_distance(sums)
                )
                found.append(SiteLimit(site=site, way=way, rate=rate))
                rest = tuple(one for one in rest if id(one) not in shared)
    return tuple(found), rest


def _transfers(readings: Sequence[Reading]) -> list[Reading]:
    """Transfers between two sites whose time and intervals are known."""
    return [
        one
        for one in readings
        if one.format == iperf3.NAME and one.what == "bandwidth" and one.link and one.time_s
        if len(one.series) > 1
    ]


def _ends(reading: Reading, way: Way) -> tuple[str, str]:
    """The site whose limit it is, and the other one."""
    ends = reading.source_site, reading.target_site
    return ends if way == "uplink" else ends[::-1]


def _windows(
    transfers: Sequence[Reading],
) -> Iterator[tuple[frozenset[tuple[str, str]], list[Reading], float]]:
    """Times in which links of a site carry something together: links, readings, rate."""
    spans = [(one, *_span_s(one)) for one in transfers]
    edges = sorted({at for _, *span in spans for at in span})
    for begin, end in pairwise(edges):
        users = [one for one, first, last in spans if first <= begin and end <= last]
        links = frozenset((one.source_site, one.target_site) for one in users)
        if len(links) > 1 and end - begin >= _LEAST_WINDOW_S:
            yield links, users, sum(_rate_within(one, begin, end) for one in users)


def _span_s(reading: Reading) -> tuple[float, float]:
    """Begin and end of a transfer, the last interval as long as the one before it. [s]"""
    assert reading.time_s is not None
    times = [at for at, _ in reading.series]
    return reading.time_s + times[0], reading.time_s + 2.0 * times[-1] - times[-2]


def _rate_within(reading: Reading, begin: float, end: float) -> float:
    """Mean of the intervals that begin within a time; of all where none does."""
    assert reading.time_s is not None
    inside = [rate for at, rate in reading.series if begin <= reading.time_s + at < end]
    return fmean(inside or [rate for _, rate in reading.series])
