"""Links that change between states such as normal, congested and down."""

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Self

import numpy as np

from des.base.checks import require_non_negative
from des.dynamics.correlation import require_correlation
from des.dynamics.law import Extremes, LinkFigures, Path, Piece

_EVENTS_AT_ONCE = 16
_MOST_DWELL_RATIO = 1e6
"""Largest ratio of the longest to the shortest dwell: keeps the events of an outage countable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """One state of a link: its factors, how long it lasts and what comes after it.

    A ``bandwidth_factor`` of 0 is an outage. The dwell is exponential with ``mean_dwell_s``;
    ``inf`` is for ever. ``followed_by`` gives (name of a state, probability) for each successor.
    """

    name: str
    bandwidth_factor: float
    mean_dwell_s: float
    followed_by: tuple[tuple[str, float], ...] = ()
    latency_factor: float = 1.0

    def __post_init__(self) -> None:
        owner = f"dynamics: state {self.name}"
        require_non_negative(owner, "bandwidth_factor", self.bandwidth_factor)
        require_non_negative(owner, "latency_factor", self.latency_factor)
        if not self.mean_dwell_s > 0:
            raise ValueError(f"{owner}: mean_dwell_s must be positive, got {self.mean_dwell_s!r}")
        for name, probability in self.followed_by:
            if not 0 < probability <= 1:
                raise ValueError(
                    f"{owner}: followed_by {name} must have a probability above 0 and at most 1, "
                    f"got {probability!r}"
                )
        total = math.fsum(probability for _, probability in self.followed_by)
        if self.mean_dwell_s == math.inf and self.followed_by:
            raise ValueError(
                f"{owner}: followed_by must be left out where mean_dwell_s is inf, "
                f"got {self.followed_by!r}"
            )
        if self.mean_dwell_s < math.inf and not abs(total - 1.0) <= 1e-9:
            raise ValueError(
                f"{owner}: followed_by must have probabilities that sum to 1, got {total!r}"
            )


@dataclass(frozen=True, kw_only=True)
class MarkovModulated:
    """Law of links that each follow a continuous-time Markov chain of `states`.

    Attributes
    ----------
    starts_in
        Name of the first state of every link; None draws it from the stationary law.
    correlation
        Share c of the events that hit all links at once; 0 for independent links, 1 for links that
        do the same.

    Notes
    -----
    Events that may change a link come at the rate ``2 / shortest dwell``; a state ignores its part
    of them (uniformisation [1]_), so dwells are exactly exponential. With ``correlation`` c the
    events of a link are those common to all, of c times the rate, and its own, of 1 - c times the
    rate (common shocks [2]_): every link on its own still follows the declared chain. The mark of
    an event chooses among the next states in the order in which states are listed, so a common
    one moves links to the same end of the list: give states from best to worst. Two links with
    two equally long states correlate by c / (2 - c).

    References
    ----------
    .. [1] A. Jensen, "Markoff chains as an aid in the study of Markoff processes", Skandinavisk
       Aktuarietidskrift 36, 1953.
    .. [2] A. W. Marshall and I. Olkin, "A multivariate exponential distribution", J. Am. Stat.
       Assoc. 62, 1967.
    """

    states: tuple[LinkState, ...]
    starts_in: str | None = None
    correlation: float = 0.0

    def __post_init__(self) -> None:
        require_correlation("dynamics", self.correlation)
        names = [state.name for state in self.states]
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"dynamics: states must be at least one and have names of their own, got {names}"
            )
        for state in self.states:
            for name, _ in state.followed_by:
                others = [other for other in names if other != state.name]
                if name not in others:
                    raise ValueError(
                        f"dynamics: state {state.name}: followed_by must name other states "
                        f"({', '.join(others) or 'none'}), got {name!r}"
                    )
        dwells_s = [state.mean_dwell_s for state in self.states if state.mean_dwell_s < math.inf]
        if dwells_s and max(dwells_s) > _MOST_DWELL_RATIO * min(dwells_s):
            raise ValueError(
                "dynamics: states must have a mean_dwell_s of inf or of at most "
                f"{_MOST_DWELL_RATIO:g} times the shortest, got {max(dwells_s)!r} and "
                f"{min(dwells_s)!r}"
            )
        self._check_start(names)

    @classmethod
    def up_and_down(cls, up_s: float, down_s: float, *, starts_in: str | None = None) -> Self:
        """Law of what is up or down for exponential times of these means. [s]"""
        down, up = (("down", 1.0),), (("up", 1.0),)
        states = (
            LinkState(name="up", bandwidth_factor=1.0, mean_dwell_s=up_s, followed_by=down),
            LinkState(name="down", bandwidth_factor=0.0, mean_dwell_s=down_s, followed_by=up),
        )
        return cls(states=states, starts_in=starts_in)

    def _check_start(self, names: Sequence[str]) -> None:
        if self.starts_in is None:
            reached = self._reached()
            ends_up = {
                found
                for name, found in reached.items()
                if all(name in reached[other] for other in found)
            }
            if len(ends_up) > 1 or math.inf in [state.mean_dwell_s for state in self.states]:
                raise ValueError(
                    "dynamics: starts_in must be given where states cannot be left for good or "
                    "last for ever, got None"
                )
        elif self.starts_in not in names:
            raise ValueError(
                f"dynamics: starts_in must be one of {', '.join(names)}; got {self.starts_in!r}"
            )

    def _reached(self) -> dict[str, frozenset[str]]:
        """States that may follow each state, at once or later, and the state itself."""
        followers = {one.name: {name for name, _ in one.followed_by} for one in self.states}
        reached = {}
        for start in followers:
            found, waiting = {start}, [start]
            while waiting:
                further = followers[waiting.pop()] - found
                found |= further
                waiting += further
            reached[start] = frozenset(found)
        return reached

    @cached_property
    def last_states(self) -> frozenset[str]:
        """States after which nothing happens: they last for ever, or what follows is down too."""
        up = {state.name for state in self.states if state.bandwidth_factor > 0}
        reached = self._reached()
        return frozenset(
            state.name
            for state in self.states
            if not state.followed_by or up.isdisjoint(reached[state.name])
        )

    @cached_property
    def event_rate_per_s(self) -> float:
        """Rate of the events that may change a link.

        Twice that of the shortest dwell: a state then keeps its place on the list of next states,
        without which two links could only swap states.
        """
        return 2.0 * max(1.0 / state.mean_dwell_s for state in self.states)

    @cached_property
    def stationary_shares(self) -> tuple[float, ...]:
        """Share of time that a link spends in each state in the long run.

        That of entries, which the transitions leave as it is, weighted by the dwells.
        """
        number = {state.name: index for index, state in enumerate(self.states)}
        balance = -np.eye(len(self.states))
        for state in self.states:
            for name, probability in state.followed_by:
                balance[number[name], number[state.name]] += probability
        balance[-1] = 1.0  # one balance follows from the others; the shares sum to 1
        entries = np.linalg.solve(balance, np.eye(len(self.states))[-1])
        weights = np.maximum(entries, 0.0) * [state.mean_dwell_s for state in self.states]
        return tuple((weights / weights.sum()).tolist())

    @cached_property
    def thresholds(self) -> tuple[tuple[float, ...], ...]:
        """Upper ends in [0, 1), for each state, of the marks that lead to each next state."""
        number = {state.name: index for index, state in enumerate(self.states)}
        rows = []
        for index, state in enumerate(self.states):
            leaves = 1.0 / state.mean_dwell_s / self.event_rate_per_s if state.followed_by else 0.0
            row = [0.0] * len(self.states)
            row[index] = 1.0 - leaves
            for name, probability in state.followed_by:
                row[number[name]] = leaves * probability
            rows.append(tuple(accumulate(row))[:-1])
        return tuple(rows)

    def check_links(self, links: Sequence[LinkFigures]) -> None:
        """Any links will do."""

    def extremes(self, link: LinkFigures) -> Extremes:
        """Bounds of the factors, the same on every link."""
        bandwidths = [state.bandwidth_factor for state in self.states]
        latencies = [state.latency_factor for state in self.states]
        return Extremes(min(bandwidths), max(bandwidths), min(latencies), max(latencies))

    def path(self, links: Sequence[LinkFigures], seed: int) -> Path:
        """Draw a course of the links."""
        return _Courses(self, len(links), seed)


class _Courses:
    """The states of every link by time, computed as far as was requested."""

    def __init__(self, law: MarkovModulated, num_links: int, seed: int) -> None:
        self._law = law
        self._seed = seed
        self._coming = [self._pieces(link) for link in range(num_links)]
        self._pieces_of: list[list[Piece]] = [[next(coming)] for coming in self._coming]

    def piece_at(self, link: int, time_s: float) -> Piece:
        """Piece that holds a time."""
        pieces = self._pieces_of[link]
        while pieces[-1].end_s <= time_s:
            pieces.append(next(self._coming[link]))
        return pieces[bisect_right(pieces, time_s, key=_start_s) - 1]

    def _pieces(self, link: int) -> Iterator[Piece]:
        """Stays in the states, one after the other."""
        law, thresholds = self._law, self._law.thresholds
        is_last = [state.name in law.last_states for state in law.states]
        factors = [(state.bandwidth_factor, state.latency_factor) for state in law.states]
        start_s, index = 0.0, self._first_state(link)
        for time_s, mark in self._events(link):
            if is_last[index]:
                break
            following = bisect_right(thresholds[index], mark)
            if following != index:
                yield Piece(start_s, time_s, *factors[index])
                start_s, index = time_s, following
        yield Piece(start_s, math.inf, *factors[index])

    def _first_state(self, link: int) -> int:
        """Draw the first state: by the common number or the link's own one.

        With the probability ``sqrt(c / (2 - c))`` each it is the common one for both of two links,
        which then correlate by ``c / (2 - c)``.
        """
        law = self._law
        if law.starts_in is not None:
            return [state.name for state in law.states].index(law.starts_in)
        choice, own = self._generator(1, 1 + link).random(2).tolist()
        common = self._generator(1, 0).random()
        mark = common if choice**2 < law.correlation / (2.0 - law.correlation) else own
        return bisect_right(list(accumulate(law.stationary_shares))[:-1], mark)

    def _events(self, link: int) -> Iterator[tuple[float, float]]:
        """Times and marks of all events that may change a link, in order."""
        rate, common = self._law.event_rate_per_s, self._law.correlation
        return heapq.merge(
            self._stream(0, rate * common), self._stream(1 + link, rate * (1.0 - common))
        )

    def _stream(self, stream: int, rate_per_s: float) -> Iterator[tuple[float, float]]:
        """Poisson events, each marked with a number from [0, 1)."""
        if rate_per_s == 0:
            return
        rng = self._generator(0, stream)
        time_s = 0.0
        while True:
            gaps_s = rng.exponential(1.0 / rate_per_s, _EVENTS_AT_ONCE).tolist()
            times_s = list(accumulate(gaps_s, initial=time_s))
            yield from zip(times_s[1:], rng.random(_EVENTS_AT_ONCE).tolist(), strict=True)
            time_s = times_s[-1]

    def _generator(self, purpose: int, stream: int) -> np.random.Generator:
        counter = [0, 0, purpose, stream]
        return np.random.Generator(np.random.Philox(key=self._seed, counter=counter))


def _start_s(piece: Piece) -> float:
    return piece.start_s
