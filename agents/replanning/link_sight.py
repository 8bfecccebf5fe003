"""Links as planners see them: late, only while the plan in force uses them, or with errors."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from agents.decision.threshold import ways_in_use
from des import Plan, Topology, UnreachableError
from des.base.checks import require_count, require_non_negative, require_one_of
from des.dynamics import STEADY
from des.training.foresight import drawn_world
from des.training.training_settings import EpochView
from des.world.topology import Link

LINK_BELIEFS = ("last", "law")
"""Meanings of figures for a planner, see `LinkSight`."""

_NOISE = 51
"""Stream of the random numbers of errors."""

_COURSE_SEED = 2**61
"""Seed of the course by which the law is known, far from those of runs."""

_NUM_EPOCHS, _NUM_LAGS = 512, 64
"""Epochs of that course, and those after which nothing is left of what was seen."""

_LEAST_FACTOR = 0.01
"""Share of its base bandwidth at which a link that is down counts as one that comes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSight:
    """Sight of links.

    Attributes
    ----------
    delay_s
        Age of the newest figures. [s]
    in_use_alone
        Whether a link is seen only while the plan in force sends over it.
    noise
        Standard deviation of the logarithm of a measured bandwidth.
    belief
        Figures are taken to stay as they were seen ``last``, a link that was never seen to be as
        its base figures say; or for what the ``law`` of the links lets expect of them.
    horizon_epochs
        Epochs over which the law lets expect a mean.
    """

    delay_s: float = 0.0
    in_use_alone: bool = False
    noise: float = 0.0
    belief: str = "last"
    horizon_epochs: int = 1

    def __post_init__(self) -> None:
        require_non_negative("link sight", "delay_s", self.delay_s)
        require_non_negative("link sight", "noise", self.noise)
        require_one_of("link sight", "belief", self.belief, LINK_BELIEFS)
        require_count("link sight", "horizon_epochs", self.horizon_epochs)

    @property
    def is_plain(self) -> bool:
        """Whether figures are seen, and taken, as they are."""
        is_full = self.delay_s == self.noise == 0.0 and not self.in_use_alone
        return is_full and self.belief == "last"


@dataclass(kw_only=True)
class SeenLinks:
    """A planner of a run that sees links as a `LinkSight` lets it; loads it sees as they are.

    Attributes
    ----------
    base
        The world of the run at base figures, with the law of its links.
    epoch_s
        Time between two views. [s]
    """

    planner: Callable[[EpochView], Plan]
    sight: LinkSight
    base: Topology
    epoch_s: float
    seed: int
    _seen: dict[tuple[str, str], list[tuple[float, Link | None]]] = field(default_factory=dict)

    def __call__(self, view: EpochView) -> Plan:
        """Return the plan of an epoch, by what is seen of the links."""
        self._note(view)
        return self.planner(replace(view, topology=self.believed(view.time_s)))

    def _note(self, view: EpochView) -> None:
        """Keep what is seen now; None is a link that is down."""
        there = {(link.source, link.target): link for link in view.topology.links}
        rng = np.random.default_rng([self.seed, _NOISE, view.epoch])
        errors = np.exp(self.sight.noise * rng.standard_normal(len(self.base.links)))
        used = None if not self.sight.in_use_alone else self._used(view)
        for link, error in zip(self.base.links, errors.tolist(), strict=True):
            ends = link.source, link.target
            if used is None or ends in used:
                now = there.get(ends)
                if now is not None:
                    now = replace(now, bandwidth_bytes_per_s=now.bandwidth_bytes_per_s * error)
                self._seen.setdefault(ends, []).append((view.time_s, now))

    def _used(self, view: EpochView) -> set[tuple[str, str]]:
        """Ends of the links on the ways of the plan in force, by the routes of base figures."""
        if view.plan is None:
            return set()
        found = set[tuple[str, str]]()
        for way in ways_in_use(view.plan):
            try:
                hops = self.base.route(*way)
            except UnreachableError:
                continue  # two of several domains that no links join: none of the plan's is seen
            found |= {(self.base.links[hop].source, self.base.links[hop].target) for hop in hops}
        return found

    def believed(self, time_s: float) -> Topology:
        """Return the world with its links as they are taken to be."""
        base = self.base.links
        seen = [self._believed(link, time_s) for link in base]
        there = [at for at, link in enumerate(seen) if link is not None]
        routing_s = self.base.routing_latencies_s or tuple(link.latency_s for link in base)
        return replace(
            self.base,
            links=tuple(link for link in seen if link is not None),
            dynamics=STEADY,
            routing_latencies_s=tuple(routing_s[at] for at in there),
        )

    def _believed(self, link: Link, time_s: float) -> Link | None:
        known = self._seen.get((link.source, link.target), [])
        until_s = time_s - self.sight.delay_s
        seen_s, seen = next((one for one in reversed(known) if one[0] <= until_s), (None, link))
        if self.sight.belief == "last":
            return seen
        mean, left = self.law_of_logs
        age_s = np.inf if seen_s is None else time_s - seen_s
        factor = _LEAST_FACTOR
        if seen is not None:
            factor = max(seen.bandwidth_bytes_per_s / link.bandwidth_bytes_per_s, factor)
        ages = age_s / self.epoch_s + np.arange(self.sight.horizon_epochs)
        weight = float(np.interp(ages, np.arange(len(left)), left, right=0.0).mean())
        log = mean + weight * (np.log(factor) - mean)
        rate = link.bandwidth_bytes_per_s * float(np.exp(log))
        return replace(seen or link, bandwidth_bytes_per_s=rate)

    @cached_property
    def law_of_logs(self) -> tuple[float, np.ndarray]:
        """Mean of logarithms of bandwidth factors, and their correlation after epochs, (E,).

        Of all links over a drawn course: of any law, whatever its form. ``mu + rho (x - mu)`` is
        the best linear guess of a logarithm that was ``x``.
        """
        courses = [self._factors(epoch) for epoch in range(_NUM_EPOCHS)]
        logs = np.log(np.maximum(np.array(courses), _LEAST_FACTOR))
        mean = float(logs.mean())
        apart = logs - mean
        variance = float((apart**2).mean())
        if variance == 0.0:
            return mean, np.ones(1)
        left = [float((apart[: len(apart) - lag] * apart[lag:]).mean()) for lag in range(_NUM_LAGS)]
        return mean, np.maximum(np.array(left) / variance, 0.0)

    def _factors(self, epoch: int) -> np.ndarray:
        """Bandwidth factors of the links in an epoch of the course, (links,)."""
        world = self.base.epoch_of(_COURSE_SEED)  # one course, or else a draw for each epoch
        if world.movement is None:
            world = drawn_world(self.base, _COURSE_SEED, epoch)
        factors = world.later(epoch * self.epoch_s).factors_at_start()[0]
        pairs = zip(world.links, self.base.links, strict=True)
        rates = [now.bandwidth_bytes_per_s / base.bandwidth_bytes_per_s for now, base in pairs]
        drawn: np.ndarray = factors * np.array(rates)
        return drawn
