"""Report and printed result of an ablation whose rows have a method, a network and a seed.

Means are over networks and training seeds, both of which are drawn.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from des.base.document import DOCUMENT
from des.base.lazy import lazy_imports
from scenarios.frame.report import Report
from scenarios.frame.rows_report import group_values, groups_report
from scenarios.frame.statistics import CONFIDENCE, MeanInterval, mean_and_interval

with lazy_imports(__name__):
    from _typeshed import DataclassInstance
    from rich.console import Console
    from rich.table import Table


def over_seeds_and_networks(values: np.ndarray) -> MeanInterval:
    """Mean of a table with its 95 % interval, for other seeds and other networks.

    Parameters
    ----------
    values
        One row per training seed, one column per network, shaped (S, N). With one of either, only
        the others are taken as drawn.

    Raises
    ------
    ValueError
        If the table is empty or a figure is not finite.

    Notes
    -----
    Both rows and columns are drawn, so the variance of the mean is estimated by ``a + b``, that of
    the means of networks over N and that of the means of seeds over S; what neither explains counts
    twice, so intervals are rather too wide. Degrees of freedom are those of Satterthwaite [1]_.

    References
    ----------
    .. [1] F. E. Satterthwaite, "An approximate distribution of estimates of variance components",
       Biometrics Bulletin 2(6), 1946.

    Examples
    --------
    >>> interval = over_seeds_and_networks(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    >>> interval.mean, round(interval.half_width, 4)  # seeds agree: networks alone count
    (2.0, 2.4841)
    """
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"values must be a non-empty table of finite numbers, got {values!r}")
    num_seeds, num_networks = values.shape
    if min(num_seeds, num_networks) == 1:
        return mean_and_interval(values.ravel())
    parts = [
        float(means.var(ddof=1)) / len(means)
        for means in (values.mean(axis=0), values.mean(axis=1))
    ]
    variance = sum(parts)
    mean = float(values.mean())
    if variance == 0.0:
        return MeanInterval(mean=mean, half_width=0.0)
    shares = [part / variance for part in parts]
    freedom = 1.0 / (shares[0] ** 2 / (num_networks - 1) + shares[1] ** 2 / (num_seeds - 1))
    quantile = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    return MeanInterval(mean=mean, half_width=quantile * math.sqrt(variance))


def comparison_report(
    config: DataclassInstance,
    prog: str,
    frame: pd.DataFrame,
    *,
    by: str,
    value: str,
    label: str,
    title: str,
    question: str,
    lines: Sequence[str],
) -> Report:
    """Return the report: ``value`` by method, the column ``by``; a point is a network's mean."""
    means = frame.groupby([by, "network"], sort=False)[value].mean()
    return groups_report(
        config,
        prog,
        group_values(means.groupby(level=by, sort=False)),
        name="methods",
        title=title,
        question=question,
        answer="; ".join(lines) + ".",
        label=label,
        points="each network, mean over seeds",
    )


def show_verdicts(
    console: Console, table: Table, lines: Sequence[str], *, frame: pd.DataFrame, csv: Path
) -> None:
    """Print the table, the verdicts and the file of the rows, or put all into the document."""
    DOCUMENT.add(rows=frame, verdicts=list(lines), out=csv.parent)
    console.print(table)
    for line in lines:
        console.print(line, soft_wrap=True)
    sys.stdout.write(f"rows: {csv}\n")
