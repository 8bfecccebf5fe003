"""Whether one method is quicker than another, or the worlds just happened to suit it."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from des.base.checks import require_count

NUM_RESAMPLES = 4000
LEAST_RESAMPLES = 2000
"""Least number of resamples: with fewer, each end of a 95 % interval rests on less than 50."""

LEAST_WORLDS = 6
"""Least number of worlds: with fewer, even equal signs are no rarer than 5 %: ``2 / 2**5``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A method against a reference on the same cases, as a share of the reference.

    Attributes
    ----------
    mean
        Mean over worlds of ``value / reference - 1``; of several draws of a world, their mean.
    low, high
        Ends of the 95 % interval.
    p_value
        Two-sided, for a mean of 0; at least ``2 / (resamples + 1)``. NaN of fewer worlds than
        `LEAST_WORLDS`.
    """

    mean: float
    low: float
    high: float
    p_value: float
    num_worlds: int


def paired_bootstrap(
    values: Sequence[float] | np.ndarray,
    references: Sequence[float] | np.ndarray,
    worlds: Sequence[Hashable],
    *,
    rng: np.random.Generator,
    num_resamples: int = NUM_RESAMPLES,
) -> Difference:
    """Compare a method with a reference over worlds, by resampling whole worlds.

    Parameters
    ----------
    values, references
        One each for every case: the same world and draw.
    worlds
        World of each case. Draws of one world have its links and its job in common, so they are
        no independent cases: the worlds are.
    num_resamples
        At least 2,000.

    Raises
    ------
    ValueError
        If there is no case, the lengths differ, a reference is not positive or a number is out of
        range.

    Notes
    -----
    Percentile bootstrap [1]_ of the mean over worlds. The p-value is twice the smaller share of
    resampled means on either side of 0, the observed one counted in. Of few worlds the interval is
    too narrow, of one it has no width: ``num_worlds`` tells.

    References
    ----------
    .. [1] B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 13, 16.
    """
    require_count("bootstrap", "num_resamples", num_resamples)
    if num_resamples < LEAST_RESAMPLES:
        raise ValueError(
            f"bootstrap: num_resamples must be at least {LEAST_RESAMPLES}, got {num_resamples}"
        )
    means = relative_by_world(values, references, worlds)
    picks = rng.integers(len(means), size=(num_resamples, len(means)))
    resampled = np.asarray(means)[picks].mean(axis=1)
    low, high = np.quantile(resampled, [0.025, 0.975])
    tails = 1 + min(int((resampled <= 0).sum()), int((resampled >= 0).sum()))
    p_value = min(1.0, 2.0 * tails / (num_resamples + 1))
    return Difference(
        mean=float(np.mean(means)),
        low=float(low),
        high=float(high),
        p_value=p_value if len(means) >= LEAST_WORLDS else math.nan,
        num_worlds=len(means),
    )


def relative_by_world(
    values: Sequence[float] | np.ndarray,
    references: Sequence[float] | np.ndarray,
    worlds: Sequence[Hashable],
) -> list[float]:
    """Mean of ``value / reference - 1`` over the draws of each world, in the order they come up.

    Examples
    --------
    >>> relative_by_world([2.0, 1.0, 3.0], [1.0, 1.0, 2.0], ["a", "a", "b"])
    [0.5, 0.5]
    """
    array, base = np.asarray(values, dtype=float), np.asarray(references, dtype=float)
    if array.ndim != 1 or not array.size or array.shape != base.shape or len(worlds) != array.size:
        raise ValueError(
            "bootstrap: values, references and worlds must be as many, one or more; got "
            f"{array.size}, {base.size} and {len(worlds)}"
        )
    if not (np.isfinite(array).all() and np.isfinite(base).all() and (base > 0).all()):
        raise ValueError("bootstrap: values must be finite and references positive and finite")
    differences: dict[Hashable, list[float]] = {}
    for world, difference in zip(worlds, (array / base - 1.0).tolist(), strict=True):
        differences.setdefault(world, []).append(difference)
    return [float(np.mean(each)) for each in differences.values()]
