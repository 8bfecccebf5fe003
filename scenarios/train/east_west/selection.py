"""Choice of weights by validation episodes: the first ones stay unless others are shown better."""

from collections.abc import Sequence

import numpy as np

from scenarios.frame.statistics import paired_difference


def chosen_weights(times_s: np.ndarray, *, keeps_first: bool) -> int:
    """Return the row of the weights to keep.

    Parameters
    ----------
    times_s
        Times of the same episodes under each of several weights, (C, D). [s]
    keeps_first
        Take others than the first ones only if the whole 95 % interval of their paired difference
        is below 0; else the least mean is taken, the first of equals.

    Raises
    ------
    ValueError
        If there are no weights or no episodes, or a time is not positive and finite.

    Examples
    --------
    >>> times_s = np.array([[10.0, 20.0, 30.0], [9.0, 18.0, 27.0], [7.0, 26.0, 18.0]])
    >>> chosen_weights(times_s, keeps_first=True), chosen_weights(times_s, keeps_first=False)
    (1, 2)
    """
    if times_s.ndim != 2 or not times_s.size or not (times_s > 0).all():
        raise ValueError(f"weights: times_s must be positive and shaped (C, D), got {times_s!r}")
    differences = [paired_difference(row, times_s[0]) for row in times_s]
    allowed: Sequence[int] = range(len(times_s))
    if keeps_first:
        allowed = [0, *(row for row in allowed[1:] if differences[row].high < 0.0)]
    return min(allowed, key=lambda row: differences[row].mean)
