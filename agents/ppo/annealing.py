"""Schedules by which learning rates and weights of entropies fall over a training.

Every law takes a first value, a final one and the progress: 0 at the first update, 1 at the end.
"""

import math
from collections.abc import Callable

AnnealingLaw = Callable[[float, float, float], float]


def linear_annealing(first: float, final: float, progress: float) -> float:
    """Straight line from the first value to the final one.

    Examples
    --------
    >>> linear_annealing(4.0, 2.0, 0.25)
    3.5
    """
    return first + (final - first) * progress


def weighted_mean_annealing(first: float, final: float, progress: float) -> float:
    """Same line as a mean of both ends by weights: its rounding is not `linear_annealing`'s.

    The shipped local policies were trained with it.

    Examples
    --------
    >>> weighted_mean_annealing(4.0, 2.0, 0.25)
    3.5
    """
    return final * progress + first * (1.0 - progress)


def cosine_annealing(first: float, final: float, progress: float) -> float:
    """Half a period of a cosine, slow at both ends [1]_; the first value must not be 0.

    References
    ----------
    .. [1] I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts",
       ICLR 2017, equation 5.

    Examples
    --------
    >>> [cosine_annealing(4.0, 2.0, progress) for progress in (0.0, 0.5, 1.0)]
    [4.0, 3.0, 2.0]
    """
    share = final / first
    return first * (share + (1.0 - share) * 0.5 * (1.0 + math.cos(math.pi * progress)))
