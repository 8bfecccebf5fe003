"""Errors of fitted link figures on cells left out, and cells that no constants explain."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.measured.collective_fit import CellTable, Real, Rows, fit_cells
from calibration.measured.collective_table import CollectiveCell

MOST_ABOVE_CHORD = 0.2
"""Part by which a cell may lie above the line between a smaller and a larger one of its row."""

MOST_ABOVE_LARGER = 0.05
"""Part by which a cell may take longer than a larger one of its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvesErrors:
    """Errors on halves of the cells by constants fitted to the other halves, (H,) each.

    ``..._explained`` leave out the cells that latency and bandwidth cannot explain.
    """

    medians: Real
    p95s: Real
    medians_explained: Real
    p95s_explained: Real


def cell_errors(table: CellTable, vector: Real, rows: Rows | None = None) -> Real:
    """Signed relative errors of some cells, all if not given; above 0 is predicted too slow."""
    chosen = table.rows if rows is None else rows
    predicted_s = table.predicted_s(vector, chosen, is_rounded=False)
    found: Real = predicted_s / table.columns["time"][chosen] - 1.0
    return found


def errors_left_out(
    table: CellTable,
    num_folds: int,
    rng: np.random.Generator,
    on_step: Callable[[], None] = lambda: None,
) -> Real:
    """Signed error of every cell by constants fitted without its fold, (N,); folds are drawn."""
    count = len(table.cells)
    order = rng.permutation(count)
    errors = np.full(count, np.nan)
    for fold in range(num_folds):
        left_out = order[fold::num_folds]
        kept = np.setdiff1d(order, left_out)
        errors[left_out] = cell_errors(table, fit_cells(table, kept), left_out)
        on_step()
    return errors


def halves_errors(
    table: CellTable,
    num_halves: int,
    seed: int,
    on_step: Callable[[], None] = lambda: None,
) -> HalvesErrors:
    """Errors on the other halves of drawn halves; draw ``i`` is of the seed ``seed + i``."""
    count = len(table.cells)
    is_explained = np.array([excess is None for excess in unexplained(table.cells)])
    found = []
    for draw in range(num_halves):
        order = np.random.default_rng(seed + draw).permutation(count)
        fitted, left_out = order[: count // 2], order[count // 2 :]
        errors = np.abs(cell_errors(table, fit_cells(table, fitted), left_out))
        plain = errors[is_explained[left_out]]
        found.append(
            [
                np.median(errors),
                np.quantile(errors, 0.95),
                np.median(plain),
                np.quantile(plain, 0.95),
            ]
        )
        on_step()
    medians, p95s, medians_explained, p95s_explained = np.array(found).T
    return HalvesErrors(
        medians=medians,
        p95s=p95s,
        medians_explained=medians_explained,
        p95s_explained=p95s_explained,
    )


def unexplained(cells: Sequence[CollectiveCell]) -> list[str | None]:
    """Reason why latency and bandwidth cannot explain a cell, None where they can; one a cell.

    A floor, a latency and a bandwidth make times of one row that rise with the bytes and never lie
    above the line between two others. No fit is needed to tell.
    """
    rows: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for place, cell in enumerate(cells):
        rows[cell.row].append(place)
    found: list[str | None] = [None] * len(cells)
    for places in rows.values():
        for place in places:
            size = cells[place].payload_bytes
            smaller = [other for other in places if cells[other].payload_bytes < size]
            larger = [other for other in places if cells[other].payload_bytes > size]
            found[place] = _reason(cells[place], smaller, larger, cells)
    return found


def _reason(
    cell: CollectiveCell, smaller: list[int], larger: list[int], cells: Sequence[CollectiveCell]
) -> str | None:
    least_s = min((cells[place].time_s for place in larger), default=np.inf)
    if cell.time_s > least_s * (1 + MOST_ABOVE_LARGER):
        return f"{cell.time_s / least_s - 1:.0%} longer than a larger message"
    chords = [
        _between(cells[low], cells[high], cell.payload_bytes) for low in smaller for high in larger
    ]
    excess = cell.time_s / min(chords, default=np.inf) - 1
    if excess > MOST_ABOVE_CHORD:
        return f"{excess:.0%} above the line between a smaller and a larger message"
    return None


def _between(low: CollectiveCell, high: CollectiveCell, payload_bytes: int) -> float:
    share = (payload_bytes - low.payload_bytes) / (high.payload_bytes - low.payload_bytes)
    return low.time_s + share * (high.time_s - low.time_s)
