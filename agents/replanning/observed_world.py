"""A world as measurements tell it: figures of links, and which sites, links and GPUs are there."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any, Literal, get_args

import numpy as np

from agents.replanning.figure_estimates import FigureEstimate
from des import Topology
from des.base.checks import require_known, require_non_negative, require_one_of, require_positive
from des.training.background import beside_jobs
from des.world.domain import Domain
from des.world.domain_load import DomainLoad
from des.world.topology import Link

Figure = Literal[
    "bandwidth_bytes_per_s",
    "latency_s",
    "is_there",
    "num_gpus",
    "utilisation",
    "memory_occupancy",
    "restart_s",
]
"""Bandwidth and latency of a link; whether a link or a site is there, 1 or 0; GPUs of a site, and
the shares of their time and memory that other jobs take; time that a restart of the job took."""

_OF_LINKS = ("bandwidth_bytes_per_s", "latency_s", "is_there")
_OF_SITES = ("is_there", "num_gpus", "utilisation", "memory_occupancy")
_MOST_RESTARTS = 9
_MOST_LOAD = 0.99
"""Share that other jobs take at most: a site without any GPU time is one that is lost."""

Taken = Literal["taken", "known", "late"]
"""An observation that counts, one of the time of the latest, or one from before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldObservation:
    """One figure as it was seen at a time.

    Attributes
    ----------
    time_s
        Seconds since 1970.
    about
        A link as ``East->West``, a site by its name, or empty for a restart of the job.
    """

    time_s: float
    about: str
    figure: Figure
    value: float

    def __post_init__(self) -> None:
        owner = f"observation of {self.about or 'the job'}"
        require_one_of(owner, "figure", self.figure, get_args(Figure))
        require_non_negative(owner, "time_s", self.time_s)
        if self.figure in ("bandwidth_bytes_per_s", "latency_s", "restart_s"):
            require_positive(owner, self.figure, self.value)
        elif self.figure == "num_gpus":
            if self.value < 0 or self.value != math.floor(self.value):
                raise ValueError(f"{owner}: num_gpus must be a whole number, got {self.value!r}")
        elif self.figure == "is_there" and self.value not in (0.0, 1.0):
            raise ValueError(f"{owner}: is_there must be 0 or 1, got {self.value!r}")
        elif not 0.0 <= self.value <= 1.0:
            raise ValueError(f"{owner}: {self.figure} must be within [0, 1], got {self.value!r}")


@dataclass(kw_only=True)
class ObservedWorld:
    """A world as it is known: its file, and on top of it all that was observed since.

    Figures of links are smoothed, see `FigureEstimate`; of everything else the latest counts.

    Attributes
    ----------
    base
        The world of the file: what holds for whatever has not been observed.
    time_constant_s
        Age at which a measurement of a link counts 1/e. [s]
    """

    base: Topology
    time_constant_s: float
    _estimates: dict[tuple[str, str], FigureEstimate] = field(default_factory=dict)
    _latest: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    _restarts: list[tuple[float, float]] = field(default_factory=list)
    _since: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_positive("observed world", "time_constant_s", self.time_constant_s)
        self._links = {f"{link.source}->{link.target}": link for link in self.base.links}

    def take(self, seen: WorldObservation) -> Taken:
        """Take an observation, unless one of its time or a later one is known.

        Raises
        ------
        ValueError
            If the world has no such link or site, or it does not have such a figure.
        """
        self._require_known(seen)
        key = seen.about, seen.figure
        before_s = self.time_of(*key)
        if before_s is not None and seen.time_s <= before_s:
            return "known" if seen.time_s == before_s else "late"
        if seen.figure == "restart_s":
            self._restarts = [*self._restarts, (seen.time_s, seen.value)][-_MOST_RESTARTS:]
        elif seen.figure in ("bandwidth_bytes_per_s", "latency_s"):
            known = self._estimates.get(key)
            self._estimates[key] = (
                FigureEstimate.first(seen.time_s, seen.value)
                if known is None
                else known.after(seen.time_s, seen.value, self.time_constant_s)
            )
        else:
            if seen.figure == "is_there" and self._is_there(seen.about) != (seen.value > 0.0):
                self._since[seen.about] = seen.time_s
            self._latest[key] = seen.time_s, seen.value
        self._since.setdefault("", seen.time_s)
        return "taken"

    def age_s(self, about: str, time_s: float) -> float:
        """Time for which a site or link has been there, or gone, as far as it was watched. [s]"""
        return time_s - self._since.get(about, self._since.get("", time_s))

    def time_of(self, about: str, figure: str) -> float | None:
        """Time of the latest observation of a figure; None without one. [s]"""
        if figure == "restart_s":
            return self._restarts[-1][0] if self._restarts else None
        if (about, figure) in self._estimates:
            return self._estimates[about, figure].time_s
        return self._latest.get((about, figure), (None,))[0]

    @property
    def restart_s(self) -> float | None:
        """Median of the last restarts that were measured; None: none was. [s]"""
        return median(one for _, one in self._restarts) if self._restarts else None

    def stale(self, before_s: float) -> tuple[str, ...]:
        """Links that have been measured, none of whose figures since a time."""
        latest_s: dict[str, float] = {}
        for (about, _), known in self._estimates.items():
            latest_s[about] = max(known.time_s, latest_s.get(about, -math.inf))
        return tuple(sorted(about for about, time_s in latest_s.items() if time_s < before_s))

    def insides(self) -> dict[str, tuple[float, ...]]:
        """GPUs and loads of the sites for which any were observed."""
        figures = "num_gpus", "utilisation", "memory_occupancy"
        return {
            name: tuple(self._latest.get((name, one), (0.0, -1.0))[1] for one in figures)
            for name in self.base.index_of
            if any((name, one) in self._latest for one in figures)
        }

    def topology(self, rng: np.random.Generator | None = None) -> Topology | None:
        """Return the world as it is known now; None where no site is there.

        Parameters
        ----------
        rng
            Draws each figure around its mean by its standard error; None: the means.
        """
        domains = [one for one in map(self._domain, self.base.domains) if one is not None]
        there = {one.name for one in domains}
        links = [
            self._link(name, link, rng)
            for name, link in self._links.items()
            if {link.source, link.target} <= there and self._is_there(name)
        ]
        if not domains:
            return None
        found = Topology.of(domains, links, transport=self.base.transport)
        return beside_jobs(found, [self._load(one.name) for one in domains])

    def plain(self) -> dict[str, object]:
        """Return what was observed as plain values, of which `with_plain` makes it again."""
        return {
            "estimates": [[*key, asdict(one)] for key, one in self._estimates.items()],
            "latest": [[*key, *one] for key, one in self._latest.items()],
            "restarts": [list(one) for one in self._restarts],
            "since": self._since,
        }

    def with_plain(self, content: Mapping[str, Any]) -> "ObservedWorld":
        """Return the world with what `plain` returned."""
        return replace(
            self,
            _estimates={
                (about, figure): FigureEstimate(**fields)
                for about, figure, fields in content["estimates"]
            },
            _latest={
                (about, figure): (time_s, value)
                for about, figure, time_s, value in content["latest"]
            },
            _restarts=[(time_s, value) for time_s, value in content["restarts"]],
            _since=dict(content["since"]),
        )

    def _require_known(self, seen: WorldObservation) -> None:
        if seen.figure == "restart_s":
            return
        known, figures = (
            (self._links, _OF_LINKS) if "->" in seen.about else (self.base.index_of, _OF_SITES)
        )
        require_known(f"unknown {'link' if '->' in seen.about else 'site'}", seen.about, known)
        if seen.figure not in figures:
            raise ValueError(
                f"{seen.about}: must have one of {', '.join(figures)}; got {seen.figure}"
            )

    def _is_there(self, about: str) -> bool:
        return self._latest.get((about, "is_there"), (0.0, 1.0))[1] > 0.0

    def _domain(self, base: Domain) -> Domain | None:
        """The domain with the GPUs that it has now: of servers, those that are whole."""
        num_gpus = int(self._latest.get((base.name, "num_gpus"), (0.0, base.num_gpus))[1])
        num_gpus = min(num_gpus, base.num_gpus)
        if base.nodes is not None:
            num_gpus -= num_gpus % base.nodes.gpus_per_node
        if not num_gpus or not self._is_there(base.name):
            return None
        if num_gpus == base.num_gpus:
            return base
        nodes = base.nodes
        if nodes is not None:
            nodes = nodes.resized(num_gpus // nodes.gpus_per_node)
        return replace(base, num_gpus=num_gpus, nodes=nodes)

    def _link(self, name: str, link: Link, rng: np.random.Generator | None) -> Link:
        return replace(
            link,
            bandwidth_bytes_per_s=self._figure(
                (name, "bandwidth_bytes_per_s"), link.bandwidth_bytes_per_s, rng
            ),
            latency_s=self._figure((name, "latency_s"), link.latency_s, rng),
        )

    def _figure(self, key: tuple[str, str], base: float, rng: np.random.Generator | None) -> float:
        known = self._estimates.get(key)
        if known is None:
            return base
        off = 0.0 if rng is None else rng.standard_normal() * known.log_error
        return known.value * math.exp(off)

    def _load(self, name: str) -> DomainLoad:
        shares = {
            one: min(self._latest.get((name, one), (0.0, 0.0))[1], _MOST_LOAD)
            for one in ("utilisation", "memory_occupancy")
        }
        return DomainLoad(**shares)
