"""Identifiability of the correction factors from cases, and their precision."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from des.base.lazy import lazy_imports
from des.plan.corrections import FACTORS

with lazy_imports(__name__):
    from scipy import special

OUTLIER_ERROR = 0.01
"""Relative errors up to about it count as squares, larger ones less and less: soft L1."""

CONFIDENCE = 0.95

_LEAST_SENSITIVITY = 1e-6
"""Change of relative errors by a coordinate; times are rounded to nanoseconds by references."""

_LEAST_INDEPENDENCE = 1e-3
"""Part of a unit column of the Jacobian that is at right angles to those of other factors."""

_ALONE = 1.0 + 1e-9
"""A little more than 1, so that a factor which one case alone can tell is not known at all."""


class NotIdentified(NamedTuple):
    """A factor that stays at 1 (an overhead at 0), and why."""

    factor: str
    reason: str


def not_identified(jacobian: np.ndarray, factors: Sequence[int]) -> list[NotIdentified]:
    """Name factors that move nothing, or nothing but what the factors before them move.

    Parameters
    ----------
    jacobian
        Derivatives of relative errors by the coordinates of the factors, shaped (errors, factors).
    factors
        Positions in `FACTORS`; of several that cannot be told apart the first one is.

    Examples
    --------
    >>> jacobian = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0]])
    >>> for each in not_identified(jacobian, (0, 1, 2)):
    ...     print(*each, sep=": ")
    intra_bandwidth_factor: moves the predictions as compute_time_factor does
    intra_latency_factor: moves no prediction
    """
    found, independent = [], list[int]()
    units = np.zeros_like(jacobian)
    for column, factor in enumerate(factors):
        sensitivity = float(np.sqrt(np.mean(jacobian[:, column] ** 2)))
        if sensitivity < _LEAST_SENSITIVITY:
            found.append(NotIdentified(FACTORS[factor], "moves no prediction"))
            continue
        units[:, column] = jacobian[:, column] / np.linalg.norm(jacobian[:, column])
        others = units[:, independent]
        parts = np.linalg.lstsq(others, units[:, column], rcond=None)[0]
        if np.linalg.norm(units[:, column] - others @ parts) < _LEAST_INDEPENDENCE:
            likes = [
                FACTORS[factors[other]]
                for other, part in zip(independent, parts, strict=True)
                if abs(part) > _LEAST_INDEPENDENCE
            ]
            verb = "does" if len(likes) == 1 else "do together"
            reason = f"moves the predictions as {' and '.join(likes)} {verb}"
            found.append(NotIdentified(FACTORS[factor], reason))
            continue
        independent.append(column)
    return found


def half_widths(jacobian: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Half of the confidence interval of each coordinate at the best fit.

    Parameters
    ----------
    jacobian
        Derivatives at the best fit, of full rank, shaped (2 N, factors).
    residuals
        Errors there, shaped (2 N,): two of each of N cases, the first ones of all cases first.

    Notes
    -----
    The jackknife over cases, by one Newton step for each case left out: the sandwich estimator with
    the cases as clusters, corrected for leverage (CR3 in [1]_). Cases are taken as independent
    draws; the two errors of one case need not be, and errors may be larger in some cases than in
    others. The model is taken as linear over the interval, and the estimates as Student's t with N
    less the number of factors as degrees of freedom. What all cases share, such as a rule that the
    simulator does not know, is not part of the interval.

    References
    ----------
    .. [1] A. C. Cameron and D. L. Miller, "A practitioner's guide to cluster-robust inference",
       J. Human Resources 50(2), 2015.
    """
    num_cases, num_factors = len(residuals) // 2, jacobian.shape[1]
    spread = 1.0 + (residuals / OUTLIER_ERROR) ** 2
    curved = jacobian * spread[:, np.newaxis] ** -1.5
    inverse = np.linalg.inv(jacobian.T @ curved)
    blocks, curved_blocks, pulls = (
        np.moveaxis(each.reshape(2, num_cases, -1), 0, 1)
        for each in (jacobian, curved, residuals / np.sqrt(spread))
    )
    left = _ALONE * np.eye(2) - curved_blocks @ inverse @ np.swapaxes(blocks, 1, 2)
    scores = (np.swapaxes(blocks, 1, 2) @ np.linalg.solve(left, pulls))[:, :, 0]
    variances = ((scores @ inverse) ** 2).sum(axis=0) * (num_cases - 1) / num_cases
    quantile = float(special.stdtrit(num_cases - num_factors, 0.5 + CONFIDENCE / 2.0))
    widths: np.ndarray = quantile * np.sqrt(variances)
    return widths
