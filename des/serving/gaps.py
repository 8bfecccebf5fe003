"""Histogram of gaps between tokens, in bins of 2 %."""

import math
from collections.abc import Sequence

SHORTEST_S = 1e-5
RATIO = 1.02
NUM_BINS = 1000
_LOG_RATIO = math.log(RATIO)


def bin_of(gap_s: float) -> int:
    """Bin of a gap; shorter and longer ones are in the first and last bin."""
    if gap_s <= SHORTEST_S:
        return 0
    return min(int(math.log(gap_s / SHORTEST_S) / _LOG_RATIO), NUM_BINS - 1)


def gap_percentile_s(counts: Sequence[int], percent: float) -> float | None:
    """Gap below which that share of gaps lies, to 2 %; None where there are none. [s]

    Examples
    --------
    >>> counts = [0] * NUM_BINS
    >>> counts[bin_of(0.1)] = 99
    >>> counts[bin_of(3.0)] = 1
    >>> round(gap_percentile_s(counts, 95.0), 2)
    0.1
    """
    total = sum(counts)
    if not total:
        return None
    left = percent / 100.0 * total
    for number, count in enumerate(counts):
        left -= count
        if left <= 0:
            return float(SHORTEST_S * RATIO ** (number + 0.5))
    raise AssertionError("shares of counts are at most their sum")
