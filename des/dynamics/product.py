"""Several laws at once: their factors are multiplied."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from des.base.lazy import lazy_imports
from des.dynamics.law import Extremes, Law, LinkFigures, Path, Piece
from des.dynamics.movement import require_moving

with lazy_imports(__name__):
    from des.base import random_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """Law whose factors are those of several laws, multiplied; each is drawn on its own."""

    laws: tuple[Law, ...]

    def __post_init__(self) -> None:
        if not self.laws:
            raise ValueError("dynamics: laws must hold at least one law, got none")
        for index, law in enumerate(self.laws):
            require_moving(f"dynamics: laws[{index}]", law)

    def check_links(self, links: Sequence[LinkFigures]) -> None:
        """Refuse links that one of the laws cannot move."""
        for law in self.laws:
            law.check_links(links)

    def extremes(self, link: LinkFigures) -> Extremes:
        """Bounds of the factors: the products of those of the laws."""
        bounds = zip(*(law.extremes(link) for law in self.laws), strict=True)
        return Extremes(*map(math.prod, bounds))

    def path(self, links: Sequence[LinkFigures], seed: int) -> Path:
        """Draw a course of each law, with seeds that follow from the one given."""
        return _ProductPath(
            [
                law.path(links, int(random_numbers.derive_seed(seed, index, 0)))
                for index, law in enumerate(self.laws)
            ]
        )


class _ProductPath:
    """Pieces end where one of any law does."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths

    def piece_at(self, link: int, time_s: float) -> Piece:
        """Piece that holds a time; one for ever where any law has the link down for ever."""
        pieces = [path.piece_at(link, time_s) for path in self._paths]
        ends = [one for one in pieces if one.bandwidth_factor == 0 and one.end_s == math.inf]
        if ends:
            start_s = min(one.start_s for one in ends)
            pieces = [path.piece_at(link, start_s) for path in self._paths]
            return Piece(start_s, math.inf, 0.0, math.prod(one.latency_factor for one in pieces))
        starts_s, ends_s, bandwidths, latencies = zip(*pieces, strict=True)
        return Piece(max(starts_s), min(ends_s), math.prod(bandwidths), math.prod(latencies))
