"""A law of moving links, in files ``dynamics: {kind: half_tide, period: 60s, ebb: 0.5}``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from des.dynamics.law import Extremes, LinkFigures, Path, Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfTide:
    """Bandwidths of ``ebb`` times the base for half of each period; the seed says which half."""

    period_s: float
    ebb: float

    def check_links(self, links: Sequence[LinkFigures]) -> None:
        """Any links will do."""

    def extremes(self, link: LinkFigures) -> Extremes:
        """Bounds of the factors, the same on every link."""
        return Extremes(self.ebb, 1.0, 1.0, 1.0)

    def path(self, links: Sequence[LinkFigures], seed: int) -> Path:
        """Draw which half is first."""
        return _TidePath(self.period_s / 2.0, self.ebb, seed % 2)


class _TidePath(NamedTuple):
    half_s: float
    ebb: float
    first: int

    def piece_at(self, link: int, time_s: float) -> Piece:
        turn, half_s = int(time_s // self.half_s), self.half_s
        factor = self.ebb if (turn + self.first) % 2 else 1.0
        return Piece(turn * half_s, (turn + 1) * half_s, factor, 1.0)
