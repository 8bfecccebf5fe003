"""Report and printed result of an ablation whose rows have a method, a network and a seed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from des.base.document import DOCUMENT
from scenarios.frame.report import Report
from scenarios.frame.rows_report import group_values, groups_report

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from rich.console import Console
    from rich.table import Table


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
