"""Links that move together: a factor common to all."""

import math

import numpy as np


def require_correlation(owner: str, value: float) -> None:
    """Refuse values outside [0, 1]."""
    if not 0 <= value <= 1:
        raise ValueError(f"{owner}: correlation must be from 0 to 1, got {value!r}")


def share_common_factor(
    rng: np.random.Generator, shape: tuple[int, ...], correlation: float
) -> np.ndarray:
    """Draw standard normal numbers, of which any two along the last axis correlate.

    ``z_i = sqrt(rho) z + sqrt(1 - rho) e_i`` with one common ``z`` and an own ``e_i`` a link.
    """
    own = rng.standard_normal(shape)
    if correlation == 0:
        return own
    common = math.sqrt(correlation) * rng.standard_normal((*shape[:-1], 1))
    # Of one shape: a broadcast that finds no memory for its buffers ends the process (NumPy 2.4).
    return np.repeat(common, shape[-1], axis=-1) + math.sqrt(1.0 - correlation) * own
