"""Means with 95 % intervals, over draws of an evaluation or seeds of a training."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from des.base.checks import prefixed_errors

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanInterval:
    """A mean and the half width of its 95 % interval, both in the unit of the values.

    ``half_width`` is NaN for a single value: one value says nothing about its spread.
    """

    mean: float
    half_width: float

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half_width

    @property
    def spread_text(self) -> str:
        """Half width behind its sign; empty for one value, which has none."""
        return "" if math.isnan(self.half_width) else f" ± {self.half_width:.2g}"


def mean_and_interval(values: Sequence[float] | np.ndarray) -> MeanInterval:
    """Return the mean of independent values with its 95 % Student-t interval.

    Parameters
    ----------
    values
        One number per draw or seed. With only one, ``half_width`` is NaN.

    Raises
    ------
    ValueError
        If there are no values or one is not finite.

    Notes
    -----
    ``mean +- t(0.975, n - 1) s / sqrt(n)`` with the unbiased sample deviation ``s``. It is exact
    for normal values and approximate otherwise.

    Examples
    --------
    >>> interval = mean_and_interval([1.0, 2.0, 3.0])
    >>> interval.mean, round(interval.half_width, 4)
    (2.0, 2.4841)
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"values must be a non-empty row of finite numbers, got {values!r}")
    mean = float(array.mean())
    if array.size == 1:
        return MeanInterval(mean=mean, half_width=math.nan)
    if array.min() == array.max():  # of equal values the deviation is a rounding error
        return MeanInterval(mean=float(array[0]), half_width=0.0)
    standard_error = float(array.std(ddof=1)) / math.sqrt(array.size)
    quantile = float(stdtrit(array.size - 1, (1 + CONFIDENCE) / 2))
    return MeanInterval(mean=mean, half_width=quantile * standard_error)


def endless_or_mean(values: Sequence[float] | np.ndarray) -> MeanInterval:
    """`mean_and_interval` of times; where one is endless so is the mean, and its spread is NaN.

    Examples
    --------
    >>> endless_or_mean([1.0, math.inf])
    MeanInterval(mean=inf, half_width=nan)
    """
    if np.isposinf(np.asarray(values, dtype=float)).any():
        return MeanInterval(mean=math.inf, half_width=math.nan)
    return mean_and_interval(values)


def paired_difference(
    values: Sequence[float] | np.ndarray, references: Sequence[float] | np.ndarray
) -> MeanInterval:
    """Return the interval of ``(value - reference) / reference`` over paired draws.

    Pairing removes the spread between draws, which two separate intervals would count twice. The
    result is a fraction: 0.1 means 10 % above the reference. Times may be endless: against such a
    reference any other value is -1, and another endless one 0.

    Raises
    ------
    ValueError
        If the lengths differ or a reference is not positive.

    Examples
    --------
    >>> round(paired_difference([11.0, 22.0], [10.0, 20.0]).mean, 12)
    0.1
    """
    array, base = np.asarray(values, dtype=float), np.asarray(references, dtype=float)
    if array.shape != base.shape:
        raise ValueError(
            f"values and references must be paired, got {array.size} and {base.size} of them"
        )
    if not (base > 0).all():
        raise ValueError(f"references must be positive, got {references!r}")
    with np.errstate(invalid="ignore"):  # of two endless times, or over one
        differences = (array - base) / base
    over_endless = np.where(np.isposinf(array), 0.0, -1.0)
    return endless_or_mean(np.where(np.isposinf(base), over_endless, differences))


def summarise(evaluation: pd.DataFrame) -> pd.DataFrame:
    """Return, for each planner, the mean and the 95 % half width of each numeric column.

    Parameters
    ----------
    evaluation
        One row per draw and planner: the columns ``draw``, ``planner``, ``iteration_time_s`` and
        any others. A truth value counts as 0 or 1, so that its mean is a fraction.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``planner``, fastest mean iteration first: ``num_draws``, then for each column
        its mean under the same name and ``<column>_half_width``.

    Raises
    ------
    ValueError
        If a column is missing, a value is not finite or there are no rows.
    """
    for column in ("draw", "planner", "iteration_time_s"):
        if column not in evaluation:
            raise ValueError(f"the evaluation must have the column {column}")
    numeric = evaluation.drop(columns=["draw"]).select_dtypes(include=["number", "bool"])
    rows = []
    for planner, group in evaluation.groupby("planner", sort=True):
        row: dict[str, object] = {"planner": planner, "num_draws": len(group)}
        for column in numeric.columns:
            with prefixed_errors(f"{column} of planner {planner}: "):
                interval = mean_and_interval(group[column].to_numpy(dtype=float))
            row |= {column: interval.mean, f"{column}_half_width": interval.half_width}
        rows.append(row)
    if not rows:
        raise ValueError("the evaluation must have rows, got none")
    return pd.DataFrame(rows).set_index("planner").sort_values("iteration_time_s", kind="stable")
