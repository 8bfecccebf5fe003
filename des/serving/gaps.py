"""Histogram of gaps between tokens, in bins of 2 %."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

SHORTEST_S = 1e-5
RATIO = 1.02
NUM_BINS = 1000
_LOG_RATIO = math.log(RATIO)


def bin_of(gap_s: float) -> int:
    """Bin of a gap; shorter and longer ones are in the first and last bin."""
    if gap_s <= SHORTEST_S:
        return 0
    return min(int(math.log(gap_s / SHORTEST_S) / _LOG_RATIO), NUM_BINS - 1)


@dataclass(slots=True)
class GapCounter:
    """Gaps between tokens: how many are in each bin, how many in all, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * NUM_BINS)
    num: int = 0
    sum_s: float = 0.0

    def count(self, num: int, gap_s: float) -> None:
        """Count equal gaps."""
        self.counts[bin_of(gap_s)] += num
        self.sum_s += num * gap_s
        self.num += num


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
