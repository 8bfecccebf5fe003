"""Paths whose links are all redrawn at once, at a fixed interval."""

import math
from collections.abc import Callable

import numpy as np

from des.base.arithmetic import segment_at
from des.dynamics.law import Piece

_SHORTEST_INTERVAL_S = 1e-3
"""A millisecond: far below any latency, and keeps the pieces of a transfer countable."""

_MOST_SEGMENTS = 4096
"""Paths kept; a run advances in time, and past intervals need not stay in memory."""


def require_interval(owner: str, field: str, value: float) -> None:
    """Refuse an interval that is too short, infinite or not a number."""
    if not _SHORTEST_INTERVAL_S <= value < math.inf:
        raise ValueError(
            f"{owner}: {field} must be at least {_SHORTEST_INTERVAL_S} and finite, got {value!r}"
        )


class GridPath:
    """Segment ``k`` rules from ``k * interval_s``, inclusive, to ``(k + 1) * interval_s``.

    ``draw(k)`` gives its factors on bandwidths and latencies, shaped (2, num_links), and always the
    same.
    """

    def __init__(self, interval_s: float, draw: Callable[[int], np.ndarray]) -> None:
        self._interval_s = interval_s
        self._draw = draw
        self._segments: dict[int, list[list[float]]] = {}

    def piece_at(self, link: int, time_s: float) -> Piece:
        """Piece that holds a time."""
        interval_s = self._interval_s
        segment = segment_at(time_s, interval_s)
        factors = self._segments.get(segment)
        if factors is None:
            if len(self._segments) >= _MOST_SEGMENTS:
                self._segments.clear()
            factors = self._segments[segment] = self._draw(segment).tolist()
        start_s, end_s = segment * interval_s, (segment + 1) * interval_s
        return Piece(start_s, end_s, factors[0][link], factors[1][link])
