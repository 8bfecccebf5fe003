"""A rate that several links share, first come, first served, and messages that pass it."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

from des.dynamics.link_course import moving_serialisation_end_s

RateAt = Callable[[float], tuple[float, float]]
"""Rate at a time [bytes/s], and until when it holds [s]."""


class Gate:
    """What earlier messages leave of a shared rate as time passes.

    A message takes, at any time, the least of what its link and its gates have left; it never
    slows down one that came before. So what is left is known beforehand, piece by piece.
    """

    __slots__ = ("_left", "_since_s")

    def __init__(self, rate_bytes_per_s: float) -> None:
        self._since_s = [0.0]
        self._left = [rate_bytes_per_s]

    def forget(self, time_s: float) -> None:
        """Drop what was before a time: nobody asks for it any more."""
        while len(self._since_s) > 1 and self._since_s[1] <= time_s:
            del self._since_s[0], self._left[0]

    def left_at(self, time_s: float) -> tuple[float, float]:
        """Rate that is left at a time [bytes/s], and until when that holds [s]."""
        piece = bisect_right(self._since_s, time_s) - 1
        is_last = piece + 1 == len(self._since_s)
        return self._left[piece], math.inf if is_last else self._since_s[piece + 1]

    def take(self, start_s: float, end_s: float, rate_bytes_per_s: float) -> None:
        """Use a rate for some time; it must be left."""
        first, end = self._cut(start_s), self._cut(end_s)
        for piece in range(first, end):
            self._left[piece] -= rate_bytes_per_s
        for piece in (end, first):
            if piece > 0 and self._left[piece] == self._left[piece - 1]:
                del self._since_s[piece], self._left[piece]

    def _cut(self, time_s: float) -> int:
        """Let a piece begin at a time; returns its number."""
        piece = bisect_right(self._since_s, time_s) - 1
        if self._since_s[piece] == time_s:
            return piece
        self._since_s.insert(piece + 1, time_s)
        self._left.insert(piece + 1, self._left[piece])
        return piece + 1


def gated_end_s(
    start_s: float, num_bytes: float, rate_at: RateAt, gates: Sequence[Gate], *, owner: str
) -> float:
    """Time when a message has left through a link and its gates, whose rates it then takes. [s]

    Raises
    ------
    StarvationError
        If the link, the owner, is down for ever before the last byte has left.

    Examples
    --------
    Of 10 bytes/s a message has 6 for 2 s; the next one gets 4 until then, and 8 of its link behind.

    >>> uplink = Gate(10.0)
    >>> gated_end_s(0.0, 12.0, lambda time_s: (6.0, math.inf), [uplink], owner="link")
    2.0
    >>> gated_end_s(0.0, 24.0, lambda time_s: (8.0, math.inf), [uplink], owner="link")
    4.0
    """

    def least_at(time_s: float) -> tuple[float, float]:
        rate, until_s = rate_at(time_s)
        for gate in gates:
            left, to_s = gate.left_at(time_s)
            rate, until_s = min(rate, left), min(until_s, to_s)
        return rate, until_s

    end_s = moving_serialisation_end_s(start_s, num_bytes, least_at, owner=owner)
    time_s = start_s
    while time_s < end_s:
        rate, until_s = least_at(time_s)
        until_s = min(until_s, end_s)
        if rate > 0.0:
            for gate in gates:
                gate.take(time_s, until_s, rate)
        time_s = until_s
    return end_s
