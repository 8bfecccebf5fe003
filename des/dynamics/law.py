"""Interface of every law of moving links, and one draw of it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class LinkFigures(Protocol):
    """A link as a law sees it: its ends and its base figures."""

    @property
    def source(self) -> str:
        """Domain it comes from."""

    @property
    def target(self) -> str:
        """Domain it goes to."""

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Base bandwidth."""

    @property
    def latency_s(self) -> float:
        """Base latency, one way."""


class Piece(NamedTuple):
    """Conditions on one link from ``start_s``, inclusive, to ``end_s``; ``inf`` is for ever."""

    start_s: float
    end_s: float
    bandwidth_factor: float
    latency_factor: float


class Extremes(NamedTuple):
    """Bounds of the factors on a link."""

    least_bandwidth_factor: float
    most_bandwidth_factor: float
    least_latency_factor: float
    most_latency_factor: float


class Path(Protocol):
    """One draw of a law: a piecewise constant course of every link, from time 0 on."""

    def piece_at(self, link: int, time_s: float) -> Piece:
        """Piece that holds a time on the link at a position; the same in any order of queries."""


class Law(Protocol):
    """Law by which links move in time; frozen: the same (links, seed) always give the same path."""

    def check_links(self, links: Sequence[LinkFigures]) -> None:
        """Raise ``ValueError`` where the law cannot move these links."""

    def extremes(self, link: LinkFigures) -> Extremes:
        """Bounds of the factors on a link."""

    def path(self, links: Sequence[LinkFigures], seed: int) -> Path:
        """Draw a course of the links."""
