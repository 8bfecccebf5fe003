"""Kernels of the length of stays, see `des.dynamics.stay_law`."""

import math

import numpy as np

from des.base.jit import kernel

_HALVINGS = 48


@kernel
def stay_survival(figures: np.ndarray, length_s: float) -> float:
    """Probability that a stay of a law, by its figures (5,), lasts longer than a length."""
    if length_s <= 0.0:
        return 1.0
    log = math.log(length_s)
    first = math.erfc((log - math.log(figures[1])) / figures[2] * math.sqrt(0.5))
    other = math.erfc((log - math.log(figures[3])) / figures[4] * math.sqrt(0.5))
    survival: float = 0.5 * (figures[0] * first + (1.0 - figures[0]) * other)
    return survival


@kernel
def stay_length_s(figures: np.ndarray, survival: float) -> float:
    """Length that a stay outlasts with a probability: the inverse of `stay_survival`. [s]"""
    low, high = -5.0, 25.0  # 7 ms to 2,000 years, as logarithms
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if stay_survival(figures, math.exp(middle)) > survival:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))
