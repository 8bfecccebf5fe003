"""The links of a run as time passes: what rules when, and how long bytes take under it."""

import math
from collections.abc import Callable, Sequence
from operator import call

from des.base import arithmetic
from des.dynamics import LinkFigures, Movement


class StarvationError(ValueError):
    """Bytes wait for a link that is down and never comes back."""


class Weather:
    """Factors on the figures of each link while an iteration runs, which starts at time 0."""

    __slots__ = ("_current", "_path", "_start_s")

    def __init__(self, movement: Movement, links: Sequence[LinkFigures]) -> None:
        self._path = movement.law.path(links, movement.seed)
        self._start_s = movement.start_s
        self._current = [(0.0, 0.0, 1.0, 1.0)] * len(links)  # an empty span, which holds no time

    def piece(self, link: int, time_s: float) -> tuple[float, float, float]:
        """Bandwidth factor and latency factor of a link at a time, and until when they rule.

        A border belongs to what it opens: the time until which is always after ``time_s``. It is
        ``inf`` for what rules for ever.
        """
        from_s, until_s, bandwidth_factor, latency_factor = self._current[link]
        if from_s <= time_s < until_s:
            return bandwidth_factor, latency_factor, until_s
        start_s, path = self._start_s, self._path
        found = path.piece_at(link, start_s + time_s)
        while found.end_s - start_s <= time_s:  # the sum was rounded down
            found = path.piece_at(link, found.end_s)
        while found.start_s - start_s > time_s:  # or up
            found = path.piece_at(link, math.nextafter(found.start_s, -math.inf))
        until_s = found.end_s - start_s
        self._current[link] = (found.start_s - start_s, until_s, *found[2:])
        return found.bandwidth_factor, found.latency_factor, until_s

    def span(self, link: int, time_s: float) -> tuple[float, float, float, float]:
        """Begin and end of the time in which the factors at a time rule, and these factors."""
        self.piece(link, time_s)
        return self._current[link]


def moving_serialisation_end_s(
    start_s: float,
    num_bytes: float,
    rate_at: Callable[[float], tuple[float, float]],
    *,
    owner: str = "link",
) -> float:
    """Time when the last of ``num_bytes`` leaves, at a rate that may change on the way. [s]

    Parameters
    ----------
    rate_at
        Gives the rate at a time [bytes/s] and until when it holds [s]: later than that time, and
        ``inf`` for ever. A rate of 0 is an outage, in which the bytes wait.
    owner
        Owner of the link, for the error.

    Raises
    ------
    StarvationError
        If the rate falls to 0 for ever before the last byte has left.

    Notes
    -----
    The rate is constant between its changes, so the sum over them is exact.

    Examples
    --------
    8 bytes from 1 s on: 4 within 2 s, nothing from 3 s to 10 s, the others within 1 s.

    >>> def rate_at(time_s: float) -> tuple[float, float]:
    ...     return (2.0, 3.0) if time_s < 3.0 else (0.0, 10.0) if time_s < 10.0 else (4.0, math.inf)
    >>> moving_serialisation_end_s(1.0, 8.0, rate_at)
    11.0
    """
    end_s, since_s, left_bytes = arithmetic.serialisation_end_s(start_s, num_bytes, call, rate_at)
    if end_s == math.inf:
        raise StarvationError(
            f"{owner}: is down for ever from {since_s:g} s on, with {left_bytes:g} bytes to send"
        )
    return end_s
