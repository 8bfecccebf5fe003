"""Formulas of single numbers, the same source for the readable engine and for the compiled one."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy.typing as npt

from des.base.scalar import scalar

LinkT = TypeVar("LinkT")
AmountT = TypeVar("AmountT", float, npt.NDArray[Any])


@scalar
def goodput(bandwidth_bytes_per_s: float, round_trip_s: float, window_bytes: float) -> float:
    """Rate of bytes that have a link to themselves under a window, ``inf`` for none. [bytes/s]"""
    if window_bytes >= bandwidth_bytes_per_s * round_trip_s:  # no round trip, no limit
        return bandwidth_bytes_per_s
    return window_bytes / round_trip_s


@scalar
def held_bytes(
    num_whole: AmountT, num_halved: AmountT, whole_bytes: AmountT, halved_bytes: AmountT
) -> AmountT:
    """Activations that a stage holds at one moment; the largest over its moments is its peak.

    ``num_whole`` microbatches wait for their input gradient with ``whole_bytes`` each, and
    ``num_halved`` for their weight gradient with ``halved_bytes`` each. In Python the arguments may
    be arrays that broadcast. [bytes]
    """
    found: AmountT = num_whole * whole_bytes + num_halved * halved_bytes
    return found


@scalar
def even_share(total: int, parts: int, index: int) -> int:
    """Part of a count that is split so that parts differ by at most 1, the larger ones first."""
    share, rest = divmod(total, parts)
    return share + 1 if index < rest else share


@scalar
def serialisation_end_s(
    start_s: float,
    num_bytes: float,
    rate_at: Callable[[LinkT, float], tuple[float, float]],
    link: LinkT,
) -> tuple[float, float, float]:
    """Time when the last of ``num_bytes`` leaves, at a rate that may change on the way. [s]

    Parameters
    ----------
    rate_at
        Gives the rate of ``link`` at a time [bytes/s] and until when it holds [s]: later than that
        time, and ``inf`` for ever. A rate of 0 is an outage, in which the bytes wait.

    Returns
    -------
    tuple
        The end, ``inf`` if the rate falls to 0 for ever before; since when the last rate has ruled;
        how many bytes were left then.

    Notes
    -----
    The rate is constant between its changes, so the sum over them is exact.
    """
    rate, until_s = rate_at(link, start_s)
    while True:
        if rate > 0.0:
            end_s = start_s + num_bytes / rate
            if end_s <= until_s:
                return end_s, start_s, num_bytes
        elif until_s == math.inf:
            return math.inf, start_s, num_bytes
        next_rate, next_until_s = rate_at(link, until_s)
        if next_rate != rate:  # an equal rate continues as if there were no border, to the last bit
            num_bytes -= (until_s - start_s) * rate
            if num_bytes <= 0.0:  # the last byte left at the border, rounding aside
                return until_s, start_s, num_bytes
            start_s, rate = until_s, next_rate
        until_s = next_until_s


@scalar
def segment_at(time_s: float, interval_s: float) -> int:
    """Segment of a grid that rules at a time; a border belongs to the segment it opens."""
    segment = math.floor(time_s / interval_s)
    if (segment + 1) * interval_s <= time_s:  # the division was rounded down
        return segment + 1
    if segment * interval_s > time_s:
        return segment - 1
    return segment
