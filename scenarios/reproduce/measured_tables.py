"""Tables of measured figures with the simulator's: rows, errors, bounds and biases of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Protocol

import pandas as pd

from scenarios.reproduce.report import Bound

RUN_COLUMNS = (
    "num_gpus",
    "hidden_size",
    "num_layers",
    "global_batch",
    "tensor",
    "data",
    "pipeline",
    "microbatch_size",
)
"""Sizes of a run and the way it was shared, as columns of its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCell:
    """A measured figure of a run, and the simulator's.

    Parameters
    ----------
    run
        Name of the run in a few words.
    quantity
        Name of the figure with its unit, ``iteration_s``.
    columns
        Further columns of the row: sizes, and how the work was shared.
    job
        All that the run shares with others that do the same work in another way. Cells of equal
        job and quantity are ranked; None is ranked with nothing.
    """

    run: str
    quantity: str
    measured: float
    predicted: float
    columns: Mapping[str, int | str] = field(default_factory=dict)
    job: tuple[object, ...] | None = None

    @property
    def error_percent(self) -> float:
        """Signed error; above 0 the prediction is larger. [%]"""
        return 100.0 * (self.predicted / self.measured - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorTarget:
    """A target for the mean absolute error of a table's cells of one quantity.

    ``noun`` names the cells in the plural. A table without a ``target`` is not judged. A missed
    target has the error on record as its bound, ``recorded``.
    """

    quantity: str
    noun: str
    target: float | None
    published: float | None = None
    recorded: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """Cells of one file, the targets they are held against, and what its readers must know.

    ``regimes`` are columns by whose values the signed bias is told.
    """

    name: str
    cells: tuple[MeasuredCell, ...]
    targets: tuple[ErrorTarget, ...]
    regimes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class TableKind(Protocol):
    """A module that predicts tables of one form."""

    def predict_table(self, path: Path, shipped: Path) -> MeasuredTable:
        """Read a file and predict its cells; what it lacks is that of the shipped file."""


def table_frame(tables: Iterable[MeasuredTable]) -> pd.DataFrame:
    """All cells, one a row: what was run, measured and predicted figures, signed error. [%]"""
    rows = []
    for table in tables:
        for cell in table.cells:
            rows.append(
                {"table": table.name, "run": cell.run}
                | dict(cell.columns)
                | {
                    "quantity": cell.quantity,
                    "measured": cell.measured,
                    "predicted": cell.predicted,
                    "error_percent": cell.error_percent,
                }
            )
    frame = pd.DataFrame(rows)
    figures = ["quantity", "measured", "predicted", "error_percent"]
    columns = [name for name in frame.columns if name not in figures]
    counts = [name for name in columns if pd.api.types.is_numeric_dtype(frame[name].dtype)]
    return frame[[*columns, *figures]].astype(dict.fromkeys(counts, "Int64"))


def table_bounds(tables: Iterable[MeasuredTable]) -> tuple[tuple[Bound, ...], tuple[str, ...]]:
    """Hold each quantity of each table against its target; one without is not judged."""
    bounds, unjudged = [], []
    for table in tables:
        for aim in table.targets:
            errors = [
                abs(cell.error_percent) for cell in table.cells if cell.quantity == aim.quantity
            ]
            if not errors:
                continue
            said = "" if aim.published is None else f" (best published {aim.published:.1%})"
            line = f"mean absolute error [%] of {len(errors)} {aim.noun} of {table.name}{said}"
            error = sum(errors) / len(errors)
            if aim.target is None:
                unjudged.append(f"{line}: {error:.1f}")
            else:
                recorded = None if aim.recorded is None else 100.0 * aim.recorded
                target = 100.0 * aim.target
                bounds.append(Bound.at_most(line, error, target, recorded=recorded, shown=".1f"))
    return tuple(bounds), tuple(unjudged)


def regime_lines(tables: Iterable[MeasuredTable]) -> list[str]:
    """Signed bias and mean absolute error of each table by its ways to share the work."""
    lines = []
    for table in tables:
        for quantity, cells in _by_quantity(table).items():
            parts = []
            for column in table.regimes:
                values = pd.Series([cell.columns[column] for cell in cells], name=column)
                errors = pd.Series([cell.error_percent for cell in cells])
                means = ", ".join(
                    f"{value}: {each.mean():+.1f} ({each.abs().mean():.1f}, n {len(each)})"
                    for value, each in errors.groupby(values)
                )
                parts.append(f"{column} {means}")
            if parts:
                lines.append(
                    f"{table.name}, {quantity}, mean error (mean absolute) [%] by regime: "
                    f"{'; '.join(parts)}."
                )
    return lines


def _by_quantity(table: MeasuredTable) -> dict[str, list[MeasuredCell]]:
    found: dict[str, list[MeasuredCell]] = {}
    for cell in table.cells:
        found.setdefault(cell.quantity, []).append(cell)
    return found


CLEAR = 0.1
"""Difference of measured figures from which a pair is clear: twice what two measurements of one
configuration differ by.
"""


def ranked_otherwise(tables: Iterable[MeasuredTable]) -> list[str]:
    """Count, for each table, clear pairs of ways to run one job, and those in the other order.

    A pair has equal jobs and quantities.
    """
    lines = []
    for table in tables:
        figures: dict[tuple[object, ...], list[tuple[float, float]]] = {}
        for cell in table.cells:
            if cell.job is not None:
                same = figures.setdefault((cell.quantity, *cell.job), [])
                same.append((cell.measured, cell.predicted))
        num_clear = num_wrong = 0
        for same in figures.values():
            for (one, one_found), (other, other_found) in combinations(same, 2):
                if abs(one / other - 1.0) < CLEAR:
                    continue
                num_clear += 1
                num_wrong += (one < other) != (one_found < other_found)
        if num_clear:
            lines.append(
                f"{table.name}: {num_wrong} of {num_clear} pairs of runs of one job that differ by "
                f"{CLEAR:.0%} or more are ranked otherwise."
            )
    return lines
