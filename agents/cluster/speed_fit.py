"""Fit of a speed curve to measured iteration times on a few numbers of GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from des.base.lazy import lazy_imports
from des.cluster.queued_job import SpeedCurve

with lazy_imports(__name__):
    from scipy import optimize

PROFILED_GPUS = (1, 2, 4, 8)
"""Numbers of GPUs on which a job is profiled before its first launch."""


def fit_speed_curve(
    widths: Sequence[int], iteration_s: Sequence[float], *, like: SpeedCurve
) -> SpeedCurve:
    """Fit ``compute / n + overhead + communication * n`` by non-negative least squares.

    Parameters
    ----------
    widths, iteration_s
        Numbers of GPUs, and the times of an iteration on them.
    like
        Curve whose range of GPUs and noise scale are kept.

    Raises
    ------
    ValueError
        If nothing was measured, or no part of the time falls with the number of GPUs.

    Examples
    --------
    >>> curve = fit_speed_curve([1, 2, 4], [5.0, 3.0, 2.0], like=SpeedCurve())
    >>> round(curve.compute, 9), round(curve.overhead, 9), round(curve.communication, 9)
    (4.0, 1.0, 0.0)
    """
    if not widths or len(widths) != len(iteration_s):
        raise ValueError(
            "speed curve: iteration_s must be one time for each number of GPUs, "
            f"got {len(iteration_s)} for {len(widths)}"
        )
    numbers = np.asarray(widths, dtype=float)
    columns = np.stack([1.0 / numbers, np.ones_like(numbers), numbers], axis=1)
    fitted, _ = optimize.nnls(columns, np.asarray(iteration_s, dtype=float))
    compute, overhead, communication = (float(part) for part in fitted)
    return replace(like, compute=compute, overhead=overhead, communication=communication)
