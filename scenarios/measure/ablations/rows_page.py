"""Report of an ablation whose rows have a method, a network and a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from scenarios.frame.report import Report
from scenarios.frame.rows_report import group_values, groups_report

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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
