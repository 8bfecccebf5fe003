"""The summary of an evaluation as a table, for a console and for a page."""

import math
from dataclasses import dataclass

import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from scenarios.frame.report import PageTable


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """Format of a column of the summary; the shown number is the value times ``factor``."""

    heading: str
    factor: float = 1.0
    best: str = ""  # "low", "high" or neither


_QUANTITIES = {
    "iteration_time_s": _Quantity(heading="iteration time [s]", best="low"),
    "utilisation": _Quantity(heading="utilisation [%]", factor=1e2, best="high"),
    "communication_cost_bytes": _Quantity(heading="comm. cost [GB]", factor=1e-9, best="low"),
    "communication_cost_cycles": _Quantity(heading="exposed [Gcycles]", factor=1e-9, best="low"),
    "migration_s": _Quantity(heading="change [s]", best="low"),
    "moved_bytes": _Quantity(heading="moved [GB]", factor=1e-9, best="low"),
    "decision_time_s": _Quantity(heading="decision time [ms]", factor=1e3, best="low"),
    "reward": _Quantity(heading="reward", best="high"),
    "fits_memory": _Quantity(heading="fits mem. [%]", factor=1e2, best="high"),
}
_REPORT_ONLY = ("reward", "migration_s", "moved_bytes")
_HALF_WIDTH = "_half_width"


def summary_table(summary: pd.DataFrame) -> Table:
    """Return the summary of `scenarios.frame.statistics.summarise` as a table for a rich console.

    Some columns stay in the HTML report, so that the table fits 80 characters.
    """
    columns = [column for column in _value_columns(summary) if column not in _REPORT_ONLY]
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, caption=_note(summary), caption_justify="left"
    )
    table.add_column("planner", no_wrap=True)
    for column in columns:
        table.add_column(
            Text(_quantity(column).heading.replace(" ", "\n")), justify="right", no_wrap=True
        )
    for planner, row in summary.iterrows():
        cells = [
            Text(
                _cell(row, column).replace(" ", ""),
                style="bold" if _is_best(summary, row, column) else "",
            )
            for column in columns
        ]
        table.add_row(Text(str(planner)), *cells)
    return table


def summary_page_table(summary: pd.DataFrame) -> PageTable:
    """Return the same summary, with all its columns, as a table of a page."""
    columns = _value_columns(summary)
    rows, best = [], set()
    for planner, row in summary.iterrows():
        cells = [_cell(row, column) for column in columns]
        best |= {
            (place, cell)
            for place, (cell, column) in enumerate(zip(cells, columns, strict=True), start=1)
            if _is_best(summary, row, column)
        }
        rows.append((str(planner), *cells))
    return PageTable(
        title="Planners",
        head=("planner", *(_quantity(column).heading for column in columns)),
        rows=tuple(rows),
        best=frozenset(best),
        notes=(_note(summary),),
    )


def _note(summary: pd.DataFrame) -> str:
    counts = sorted({int(count) for count in summary["num_draws"]})
    draws = " or ".join(map(str, counts))
    return f"Mean ± half width of the 95 % Student-t interval over {draws} draws; best in bold."


def _value_columns(summary: pd.DataFrame) -> list[str]:
    """Columns that have an interval, the known quantities first and in their order."""
    columns = [name for name in summary.columns if f"{name}{_HALF_WIDTH}" in summary]
    known = [name for name in _QUANTITIES if name in columns]
    return known + [name for name in columns if name not in known]


def _quantity(column: str) -> _Quantity:
    return _QUANTITIES.get(column, _Quantity(heading=column))


def _is_best(summary: pd.DataFrame, row: "pd.Series[float]", column: str) -> bool:
    """Whether no planner's mean is better; planners that tie are all best."""
    best = _quantity(column).best
    if not best or summary[column].nunique() == 1:
        return False
    return bool(row[column] == (summary[column].min() if best == "low" else summary[column].max()))


def _cell(row: "pd.Series[float]", column: str) -> str:
    """Show a mean to the second digit of its half width; rounding errors count as no spread."""
    factor = _quantity(column).factor
    mean, half_width = factor * row[column], factor * row[f"{column}{_HALF_WIDTH}"]
    if math.isnan(half_width):
        return f"{mean:.4g}"
    if half_width <= 1e-9 * abs(mean):
        return f"{mean:.4g} ± 0"
    decimals = max(0, 1 - math.floor(math.log10(half_width)))
    return f"{mean:,.{decimals}f} ± {half_width:,.{decimals}f}"
