"""Courses of links from series of measurements: the series again, or a law fitted to them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from calibration.measurements.reading import Reading
from des.base.csv_text import csv_of_columns
from des.dynamics import Law, LinkSeries, MarkovModulated, OrnsteinUhlenbeck, Product
from des.world.files.trace_files import COLUMNS
from des.world.topology import Link, Topology

LEAST_VALUES = 20
"""Values of a link below which no law is fitted to them."""

DOWN_SHARE = 0.05
"""A link below this share of its median is down."""

_Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCourse:
    """A law fitted to the series of all links, and how well it fits.

    Attributes
    ----------
    times_s, factors
        Times of the values, and these over the mean of their link, of the link with most values.
    distance, allowed
        Largest distance of the distribution of the logarithms from the normal one (Kolmogorov and
        Smirnov), and the one that a sample of the law exceeds in 5 %, all values being independent.
    lags_s, correlations
        Correlation of the logarithms with those that much later.
    """

    law: Law
    wander: OrnsteinUhlenbeck
    link: str
    times_s: tuple[float, ...]
    factors: tuple[float, ...]
    distance: float
    allowed: float
    lags_s: tuple[float, ...]
    correlations: tuple[float, ...]
    outages: int

    def line(self) -> str:
        """Figures of the law and its fit in words."""
        law = self.wander
        verdict = "within" if self.distance <= self.allowed else "beyond"
        return (
            f"fitted: Ornstein-Uhlenbeck, bandwidth_sigma {law.bandwidth_sigma:.3g}, relaxation "
            f"{law.relaxation_s:.3g} s, interval {law.interval_s:.3g} s; distance from the normal "
            f"law {self.distance:.2g}, {verdict} the {self.allowed:.2g} of 95 % of samples; "
            f"{self.outages} outages"
        )


def series_by_link(
    readings: Sequence[Reading], topology: Topology, what: str
) -> dict[Link, _Points]:
    """Values by time of the links that have series, from the earliest start of any on. [s]"""
    used = [one for one in readings if one.series and one.link is not None]
    start_s = min((one.time_s or 0.0 for one in used), default=0.0)
    found: dict[Link, dict[float, float]] = {}
    site_of = {one.name: one.site_name for one in topology.domains}
    for one in used:
        ways = {one.link, one.link[::-1]} if what == "round_trip" and one.link else {one.link}
        for link in topology.links:
            if one.what == what and (site_of[link.source], site_of[link.target]) in ways:
                offset_s = (one.time_s or start_s) - start_s
                found.setdefault(link, {}).update((offset_s + at, v) for at, v in one.series)
    return {link: sorted(values.items()) for link, values in found.items()}


def replayed(readings: Sequence[Reading], topology: Topology) -> tuple[LinkSeries, ...]:
    """Series of all links at the times of any; a link without stays as the world has it.

    Raises
    ------
    ValueError
        If no link has a series.
    """
    rates = series_by_link(readings, topology, "bandwidth")
    trips = series_by_link(readings, topology, "round_trip")
    times_s = sorted({at for points in (*rates.values(), *trips.values()) for at, _ in points})
    if not times_s:
        raise ValueError("--law must have intervals or series of links, got none in the files")
    return tuple(
        LinkSeries(
            source=link.source,
            target=link.target,
            times_s=tuple(at - times_s[0] for at in times_s),
            bandwidths_bytes_per_s=_held(rates.get(link, []), times_s, link.bandwidth_bytes_per_s),
            latencies_s=tuple(
                trip / 2.0 for trip in _held(trips.get(link, []), times_s, 2.0 * link.latency_s)
            ),
        )
        for link in topology.links
    )


def _held(points: _Points, times_s: Sequence[float], otherwise: float) -> tuple[float, ...]:
    """Values at some times, each held until the next; the first one before it as well."""
    if not points:
        return (otherwise,) * len(times_s)
    starts = [at for at, _ in points]
    places = np.maximum(np.searchsorted(starts, times_s, side="right") - 1, 0)
    return tuple(points[place][1] for place in places.tolist())


def trace_csv(series: Sequence[LinkSeries]) -> bytes:
    """Table that a world replays, with a row for each link and time."""
    rows = [
        dict(zip(COLUMNS.values(), (at, one.source, one.target, rate, latency_s), strict=True))
        for one in series
        for at, rate, latency_s in zip(
            one.times_s, one.bandwidths_bytes_per_s, one.latencies_s, strict=True
        )
    ]
    return csv_of_columns(list(COLUMNS.values()), rows).encode()


def fit_course(readings: Sequence[Reading], topology: Topology) -> FittedCourse:
    """Fit the law of an Ornstein-Uhlenbeck process, with outages if there were any.

    Notes
    -----
    Values below `DOWN_SHARE` of a link's median are outages: a Markov chain of up and down with the
    mean dwells. Of the others ``log(value)`` less its mean is pooled over the links; its standard
    deviation is the sigma, and ``exp(-interval / relaxation)`` its correlation from one value to
    the next.

    Raises
    ------
    ValueError
        If no link has `LEAST_VALUES` values, or they do not vary.
    """
    rates = series_by_link(readings, topology, "bandwidth")
    long = {link: points for link, points in rates.items() if len(points) >= LEAST_VALUES}
    if not long:
        most = max(map(len, rates.values()), default=0)
        raise ValueError(
            f"--law fitted must have {LEAST_VALUES} values of a link at least, got {most}"
        )
    ups = {link: _is_up(points) for link, points in long.items()}
    logs = {link: _logs(points, ups[link]) for link, points in long.items()}
    pooled = np.concatenate(list(logs.values()))
    sigma = float(np.std(pooled, ddof=len(logs)))
    interval_s = float(
        np.median(np.concatenate([np.diff([at for at, _ in one]) for one in long.values()]))
    )
    if not sigma > 0:
        raise ValueError("--law fitted must have values that vary, got equal ones")
    lags = range(1, min(map(len, logs.values())) // 4 + 1)
    correlations = [_correlation(list(logs.values()), lag) for lag in lags]
    decay = min(max(correlations[0], math.exp(-10.0)), 1.0 - 1e-6)
    wander = OrnsteinUhlenbeck(
        bandwidth_sigma=min(sigma, 2.0),
        relaxation_s=-interval_s / math.log(decay),
        interval_s=interval_s,
    )
    outages = _outages([ups[link] for link in long], interval_s)
    link, points = max(long.items(), key=lambda one: len(one[1]))
    mean = float(np.mean([value for _, value in points]))
    return FittedCourse(
        law=wander if outages is None else Product(laws=(wander, outages)),
        wander=wander,
        link=str(link),
        times_s=tuple(at for at, _ in points),
        factors=tuple(value / mean for _, value in points),
        distance=float(stats.kstest(pooled / sigma, "norm").statistic),
        allowed=1.36 / math.sqrt(len(pooled)),
        lags_s=tuple(lag * interval_s for lag in lags),
        correlations=tuple(correlations),
        outages=sum(_num_runs(~up) for up in ups.values()),
    )


def _is_up(points: _Points) -> np.ndarray:
    values = np.array([value for _, value in points])
    up: np.ndarray = values > DOWN_SHARE * np.median(values)
    return up


def _logs(points: _Points, up: np.ndarray) -> np.ndarray:
    """Logarithms of the values that are up, less their mean."""
    values = np.log(np.array([value for _, value in points])[up])
    centred: np.ndarray = values - values.mean()
    return centred


def _correlation(logs: Sequence[np.ndarray], lag: int) -> float:
    """Correlation of all values with those a number of values later."""
    products = sum(float(one[:-lag] @ one[lag:]) for one in logs)
    pairs = sum(len(one) - lag for one in logs)
    return products / pairs / float(np.mean(np.concatenate(logs) ** 2))


def _num_runs(flags: np.ndarray) -> int:
    """Number of stretches that are true."""
    return int(flags[0]) + int(np.sum(flags[1:] & ~flags[:-1]))


def _outages(ups: Sequence[np.ndarray], interval_s: float) -> MarkovModulated | None:
    """Chain of up and down with the mean dwells; None where nothing was down."""
    downs = sum(_num_runs(~up) for up in ups)
    if not downs:
        return None
    down_s = interval_s * sum(int(np.sum(~up)) for up in ups) / downs
    up_s = interval_s * sum(int(np.sum(up)) for up in ups) / downs
    return MarkovModulated.up_and_down(up_s, down_s)
