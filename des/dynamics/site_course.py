"""Course of sites that come and go: whether each is up at each tick of a clock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt

from des.base.checks import require_positive

Flags = npt.NDArray[np.bool_]
Stays = npt.NDArray[np.float64]
"""Lengths of stays, (K,). [s]"""

DAY_S = 86400.0


@dataclass(frozen=True, kw_only=True, eq=False)
class SiteCourse:
    """Whether sites are up, tick by tick.

    Attributes
    ----------
    sites
        Names, S of them.
    tick_s
        Time between two ticks; a site is up or down for all of a tick. [s]
    up
        (T, S), T at least 1.
    """

    sites: tuple[str, ...]
    tick_s: float
    up: Flags

    def __post_init__(self) -> None:
        require_positive("course", "tick_s", self.tick_s)
        if self.up.ndim != 2 or self.up.shape[1] != len(self.sites) or not self.up.size:
            raise ValueError(
                f"course: up must be ticks x {len(self.sites)} sites, at least one of each, got "
                f"{self.up.shape}"
            )

    @property
    def num_ticks(self) -> int:
        """Ticks, T."""
        return len(self.up)

    @property
    def duration_s(self) -> float:
        """Length of the course. [s]"""
        return self.num_ticks * self.tick_s

    @cached_property
    def shares(self) -> npt.NDArray[np.float64]:
        """Share of the time for which each site is up, (S,)."""
        shares: npt.NDArray[np.float64] = self.up.mean(axis=0)
        return shares

    def part(self, begin: float, end: float) -> Self:
        """Return the part from one share of the course to another, such as its second half."""
        first, last = round(begin * self.num_ticks), round(end * self.num_ticks)
        return replace(self, up=np.ascontiguousarray(self.up[first:last]))

    def of_sites(self, places: Sequence[int]) -> Self:
        """Return the course of some sites, by their places."""
        names = tuple(self.sites[place] for place in places)
        return replace(self, sites=names, up=np.ascontiguousarray(self.up[:, list(places)]))

    def resampled(self, tick_s: float) -> Self:
        """Return the course seen at the ticks of another clock."""
        num_ticks = max(int(self.duration_s / tick_s), 1)
        rows = np.minimum((np.arange(num_ticks) * tick_s / self.tick_s), self.num_ticks - 1)
        return replace(self, tick_s=tick_s, up=self.up[rows.astype(np.int64)])

    def stretched(self, factor: float) -> Self:
        """Return the course with all stays longer by a factor, on the same clock."""
        return replace(self, tick_s=self.tick_s * factor).resampled(self.tick_s)

    def thinned(self, factor: float) -> Self:
        """Return the course whose stays up end after a part 1 / ``factor``, rounded up to ticks.

        Examples
        --------
        >>> full = SiteCourse(sites=("a",), tick_s=60.0, up=np.array([[1, 1, 1, 1, 0, 1]], bool).T)
        >>> full.thinned(2.0).up[:, 0].astype(int).tolist()
        [1, 1, 0, 0, 0, 1]
        """
        up = self.up.copy()
        for site in range(len(self.sites)):
            for first, last in _runs(up[:, site]):
                if up[first, site]:
                    kept = int(np.ceil((last - first) / factor))
                    up[first + kept : last, site] = False
        return replace(self, up=up)

    def stays(self, site: int, *, are_whole: bool = True) -> tuple[Stays, Stays]:
        """Lengths of the stays up and down of a site; whole ones exclude the first and last. [s]"""
        column = self.up[:, site]
        whole = _runs(column)[1:-1] if are_whole else _runs(column)
        lengths = np.array([last - first for first, last in whole]) * self.tick_s
        is_up = np.array([column[first] for first, _ in whole], np.bool_)
        return lengths[is_up], lengths[~is_up]


def _runs(column: Flags) -> list[tuple[int, int]]:
    """Begin and end of the stays of a site. [ticks]"""
    borders = [0, *(np.flatnonzero(column[1:] != column[:-1]) + 1).tolist(), len(column)]
    return list(pairwise(borders))
