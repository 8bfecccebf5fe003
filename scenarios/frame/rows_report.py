"""Report of a measurement: tables of its frames, and their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from des.figures.figure import Figure
from scenarios.frame.outputs import repetition_of
from scenarios.frame.plots import interval_figure
from scenarios.frame.report import PageTable, Report

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pandas.core.groupby import SeriesGroupBy

_MOST_COLUMNS = 12
"""Columns of a table that fit on a page of 1280 pixels."""


def rows_report(
    config: DataclassInstance,
    prog: str,
    *,
    title: str,
    question: str,
    answer: str,
    tables: Mapping[str, pd.DataFrame],
    figures: Sequence[Figure] = (),
    caveats: Sequence[str] = (),
) -> Report:
    """Return the report of a command: its tables by title, then its figures."""
    return Report(
        title=title,
        question=question,
        answer=answer,
        repeat=repetition_of(prog, config),
        tables=tuple(frame_table(name, frame) for name, frame in tables.items()),
        figures=tuple(figures),
        caveats=tuple(caveats),
    )


def groups_report(
    config: DataclassInstance,
    prog: str,
    groups: Mapping[str, np.ndarray],
    *,
    name: str,
    title: str,
    question: str,
    answer: str,
    label: str,
    points: str,
) -> Report:
    """Return the report that compares groups of values, such as a figure of each method.

    Its table has number, mean, deviation and quartiles of each group; its figure, called ``name``,
    the values (``points`` says what one is) with means and intervals.
    """
    table = pd.DataFrame({group: pd.Series(values).describe() for group, values in groups.items()})
    return rows_report(
        config,
        prog,
        title=title,
        question=question,
        answer=answer,
        tables={label: table.T.rename_axis("group").reset_index()},
        figures=[interval_figure(groups, name=name, title=title, label=label, points=points)],
    )


def group_values(groups: SeriesGroupBy[Any, Any]) -> dict[str, np.ndarray]:
    """Return the values of each group of a grouped column, by its name.

    Examples
    --------
    >>> frame = pd.DataFrame({"policy": ["ppo", "fifo", "ppo"], "wait": [1.0, 2.0, 3.0]})
    >>> values = group_values(frame.groupby("policy", sort=False)["wait"])
    >>> {name: own.tolist() for name, own in values.items()}
    {'ppo': [1.0, 3.0], 'fifo': [2.0]}
    """
    return {str(name): own.to_numpy(dtype=float) for name, own in groups}


def frame_table(title: str, frame: pd.DataFrame) -> PageTable:
    """Return a frame as a table of a page, numbers to four digits.

    A wide one of few rows is turned, as a page is too narrow for it.

    Examples
    --------
    >>> frame_table("Waits", pd.DataFrame({"queue": ["M/M/1"], "wait": [0.428571]})).rows
    (('M/M/1', '0.4286'),)
    """
    if len(frame.columns) > _MOST_COLUMNS and len(frame) < len(frame.columns):
        first = str(frame.columns[0])
        frame = frame.astype(object).set_index(first).T.rename_axis(first).reset_index()
    return PageTable(
        title=title,
        head=tuple(map(str, frame.columns)),
        rows=tuple(tuple(map(cell_text, row)) for row in frame.itertuples(index=False, name=None)),
    )


def cell_text(value: object) -> str:
    """Text of a cell: numbers to four digits, nothing for None."""
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
