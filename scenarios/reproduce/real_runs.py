"""Steps of real PyTorch pipelines over emulated WAN links, predicted by runtime and hosts.

``torch.distributed.pipelining`` 2.13 over gloo and TCP, a process a site, measured as torch posts
receives (stock) and with all posted first (early), on hosts set for long links (tuned) and as Linux
comes (default). Each column of the table has a bound for its mean absolute error and for the 95th
percentile. Nothing is fitted to a row.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from des.base.checks import prefixed_errors
from des.base.command import UsageError
from scenarios.reproduce.cases import PUBLISHED, existing_cases, read_form
from scenarios.reproduce.measured import SHOWN, draw
from scenarios.reproduce.measured_tables import MeasuredCell, MeasuredTable, table_frame
from scenarios.reproduce.real_runs_rows import RealRunRow, RealRunRows
from scenarios.reproduce.report import Bound, Reproduction

SHIPPED = PUBLISHED / "real_runs"


class ErrorAim(NamedTuple):
    """Targets for the mean and the 95th percentile of absolute errors, and those on record. [%]"""

    mean: float
    p95: float
    recorded_mean: float | None = None
    recorded_p95: float | None = None


AIMS = {
    "stock_tuned": ErrorAim(3.0, 6.0),
    "stock_default": ErrorAim(8.0, 20.0, 9.0, 26.5),
    "early_tuned": ErrorAim(2.0, 7.0),
    "early_default": ErrorAim(8.0, 20.0, 8.4, 25.0),
}
"""Aims by the key of a measurement."""

_NOTES = (
    "Payload gets 1448/1500 of a link, the relay of the emulation adds 0.125 ms to each way, and a "
    "pass takes 2.5 ms over its slept time. Constants of gloo, TCP and Linux are in "
    "des.program.rendezvous and des.costs.connection_window.",
)


def reproduce_cases(folder: Path) -> Reproduction:
    """Reproduce the pipelines of a folder."""
    return reproduce(predict_pipelines(folder), is_shipped=folder == SHIPPED)


def predict_pipelines(folder: Path) -> MeasuredTable:
    """Predict all measurements of a folder; the quantity of a cell is its runtime and hosts.

    Raises
    ------
    UsageError
        If there is no such folder, or no file of pipelines in it.
    ValueError
        If a file is wrong; naming file, row, field, what is allowed and what came.
    """
    paths = sorted(existing_cases(folder, kind="folder").glob("pipelines*.json"))
    if not paths:
        raise UsageError(f"cases: must be a folder with pipelines*.json; {folder} has none")
    cells = []
    for path in paths:
        for row in read_form(path, RealRunRows).root:
            with prefixed_errors(f"{path}: "):
                cells += [_cell(row, key) for key in AIMS if key in row.measured]
    return MeasuredTable(name="real_runs", cells=tuple(cells), targets=())


def _cell(row: RealRunRow, key: str) -> MeasuredCell:
    return MeasuredCell(
        run=row.name,
        quantity=key,
        measured=row.measured[key].median_s,
        predicted=row.predicted_s(key),
        columns={"schedule": row.schedule},
    )


def reproduce(table: MeasuredTable, *, is_shipped: bool) -> Reproduction:
    """Judge mean and 95th percentile of the absolute errors of each runtime on each hosts.

    Errors on record are those of the shipped rows.
    """
    columns = {
        key: cells
        for key in AIMS
        if (cells := [cell for cell in table.cells if cell.quantity == key])
    }
    return Reproduction(
        title="Steps of real PyTorch pipelines over emulated WAN links",
        frame=table_frame([table]),
        bounds=tuple(
            bound for key, cells in columns.items() for bound in _bounds(key, cells, is_shipped)
        ),
        shown=SHOWN[1:],
        figure=draw([table]),
        notes=(*(_ranking(key, cells) for key, cells in columns.items()), _regret(table), *_NOTES),
    )


def _bounds(key: str, cells: Sequence[MeasuredCell], is_shipped: bool) -> tuple[Bound, Bound]:
    errors, aim = [abs(cell.error_percent) for cell in cells], AIMS[key]
    recorded = (aim.recorded_mean, aim.recorded_p95) if is_shipped else (None, None)
    return (
        Bound.at_most(
            f"{key}: mean absolute error [%] of {len(cells)} runs",
            float(np.mean(errors)),
            aim.mean,
            recorded=recorded[0],
            shown=".1f",
        ),
        Bound.at_most(
            f"{key}: 95th percentile of it [%]",
            float(np.percentile(errors, 95)),
            aim.p95,
            recorded=recorded[1],
            shown=".1f",
        ),
    )


def _ranking(key: str, cells: Sequence[MeasuredCell]) -> str:
    """Rank correlation (Spearman, no ties) of predictions with measurements."""
    ranks = np.argsort(np.argsort([(cell.measured, cell.predicted) for cell in cells], 0), 0)
    num_runs, distance = len(cells), int(np.sum((ranks[:, 0] - ranks[:, 1]) ** 2))
    correlation = 1.0 - 6.0 * distance / max(1, num_runs * (num_runs**2 - 1))
    bias = np.mean([cell.error_percent for cell in cells])
    return f"{key}: rank correlation {correlation:.3f}, mean error {bias:+.1f} %."


def _regret(table: MeasuredTable) -> str:
    """Loss from choosing the runtime by predictions instead of by measurements."""
    choices: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for cell in table.cells:
        pair = choices.setdefault((cell.run, cell.quantity.split("_")[1]), [])
        pair.append((cell.predicted, cell.measured))
    regrets = [min(pair)[1] / min(own for _, own in pair) - 1.0 for pair in choices.values()]
    return (
        "Regret of the runtime that is predicted to be quicker, mean over runs and hosts: "
        f"{100.0 * np.mean(regrets):.2f} %."
    )
