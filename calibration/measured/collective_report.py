"""Report of a fit of link figures: constants, errors on cells left out, cells that none explain."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibration.measured.collective_errors import HalvesErrors, cell_errors, unexplained
from calibration.measured.collective_fit import CellTable, Real, all_constants, constant_names
from des.base.csv_text import csv_text
from des.devices.figures_file import link_figures_json

_MANY = 3
"""Most digits of constants in lines."""


@dataclass(frozen=True, kw_only=True)
class CollectiveReport:
    """A fit to measured all-reduces with its errors.

    Attributes
    ----------
    vector
        Fitted logarithms.
    intervals
        95 % intervals of all constants, (2, N).
    left_out
        Signed error of every cell by constants fitted without its fold, (M,).
    """

    table: CellTable
    vector: Real
    intervals: Real
    left_out: Real
    num_folds: int
    halves: HalvesErrors

    @cached_property
    def errors(self) -> Real:
        """Signed error of every cell by constants fitted to all."""
        return cell_errors(self.table, self.vector)

    @cached_property
    def reasons(self) -> list[str | None]:
        """Reasons why cells cannot be explained, None where they can."""
        return unexplained(self.table.cells)

    def lines(self) -> list[str]:
        """Say the errors first, then the cells without explanation, then the constants."""
        return [
            f"{len(self.table.cells)} cells of {', '.join(dict.fromkeys(self._nodes))}, as rings",
            self._error_line("all constants", self.errors),
            self._error_line(f"constants fitted without the cell, {self.num_folds} folds",
                             self.left_out),
            *self._halves_lines(),
            *self._row_lines(),
            *self._unexplained_lines(),
            *self._constant_lines(),
        ]  # fmt: skip

    def json_bytes(self) -> bytes:
        """Write the figures, with intervals, errors, and the cells they were fitted to."""
        names, told = constant_names(self.table), self._told
        fitted_on: dict[str, dict[str, str]] = defaultdict(dict)
        for cell in self.table.cells:
            row = f"{cell.workers} GPUs, {cell.gpus_per_node} each"
            earlier = fitted_on[cell.node].get(row)
            size = f"{cell.payload_bytes}"
            fitted_on[cell.node][row] = f"{earlier}, {size}" if earlier else size
        fit = {
            "fitted_on_bytes": dict(fitted_on),
            "interval_95_percent": {
                name: [_round(low), _round(high)]
                for name, low, high in zip(names, *self.intervals, strict=True)
                if name in told
            },
            "not_told_by_the_cells": [name for name in names if name not in told],
            "errors": {
                "all_constants": _summary(np.abs(self.errors)),
                f"left_out_{self.num_folds}_folds": _summary(np.abs(self.left_out)),
                f"other_half_of_{len(self.halves.medians)}": {
                    "median": _round(np.median(self.halves.medians)),
                    "p95": _round(np.median(self.halves.p95s)),
                    "median_explained": _round(np.median(self.halves.medians_explained)),
                    "p95_explained": _round(np.median(self.halves.p95s_explained)),
                },
            },
            "unexplained": {
                cell.label: reason
                for cell, reason in zip(self.table.cells, self.reasons, strict=True)
                if reason
            },
        }
        return link_figures_json(self.table.figures(self.vector), fit)

    def csv_bytes(self) -> bytes:
        """Write a CSV with one row for each cell."""
        rows: list[tuple[object, ...]] = [
            ("node", "workers", "gpus_per_node", "bytes", "measured_ms", "predicted_ms",
             "error", "error_left_out", "unexplained")
        ]  # fmt: skip
        for cell, error, left_out, reason in zip(
            self.table.cells, self.errors, self.left_out, self.reasons, strict=True
        ):
            milliseconds = cell.time_s * 1e3
            rows.append(
                (*cell.row, cell.payload_bytes, f"{milliseconds:.6g}",
                 f"{milliseconds * (1 + error):.6g}", f"{error:.4f}", f"{left_out:.4f}",
                 reason or "")
            )  # fmt: skip
        return csv_text(rows).encode()

    @cached_property
    def _told(self) -> frozenset[str]:
        """Constants that the cells move: off the first guess, or off the shared one."""
        names = constant_names(self.table)
        values = dict(zip(names, all_constants(self.table, self.vector).tolist(), strict=True))
        first = dict(zip(names, all_constants(self.table, self.table.start).tolist(), strict=True))
        return frozenset(
            name
            for name, value in values.items()
            if value != first[name]
            and not (name.startswith("models.") and value == values[_shared(name)])
        )

    @property
    def _nodes(self) -> list[str]:
        return [cell.node for cell in self.table.cells]

    def _error_line(self, what: str, errors: Real) -> str:
        explained = np.array([reason is None for reason in self.reasons])
        plain = np.abs(errors[explained])
        return (
            f"{what}: median error {np.median(np.abs(errors)):.1%}, "
            f"p95 {np.quantile(np.abs(errors), 0.95):.1%}; without the cells named below "
            f"{np.median(plain):.1%} and {np.quantile(plain, 0.95):.1%}"
        )

    def _halves_lines(self) -> list[str]:
        found = self.halves
        return [
            f"fitted to one half, {len(found.medians)} draws, on the other: median error "
            f"{np.median(found.medians):.1%}, p95 {np.median(found.p95s):.1%} "
            f"({found.p95s.min():.0%} to {found.p95s.max():.0%}); without the cells named below "
            f"{np.median(found.medians_explained):.1%} and {np.median(found.p95s_explained):.1%}"
        ]

    def _row_lines(self) -> list[str]:
        """Errors of each machine, inside and across."""
        groups: dict[str, list[int]] = defaultdict(list)
        for place, cell in enumerate(self.table.cells):
            where = "inside" if cell.workers == cell.gpus_per_node else "across machines"
            groups[f"{cell.node}, {where}"].append(place)
        return [
            f"  {name}: {len(places)} cells, median error "
            f"{np.median(np.abs(self.errors[places])):.1%}, left out "
            f"{np.median(np.abs(self.left_out[places])):.1%}, most "
            f"{np.abs(self.left_out[places]).max():.0%}"
            for name, places in groups.items()
        ]

    def _unexplained_lines(self) -> list[str]:
        named = [
            f"  {cell.label}: {cell.time_s * 1e3:.4g} ms, {reason}"
            for cell, reason in zip(self.table.cells, self.reasons, strict=True)
            if reason
        ]
        if not named:
            return ["no cell that latency and bandwidth cannot explain"]
        return ["cells that no latency and bandwidth explain:", *named]

    def _constant_lines(self) -> list[str]:
        lines = []
        names, values = constant_names(self.table), all_constants(self.table, self.vector)
        for name, value, low, high in zip(names, values, *self.intervals, strict=True):
            if name not in self._told:
                continue
            shown = [_in_units(name, each) for each in (value, low, high)]
            lines.append(f"{name}: {shown[0]}, 95 % {shown[1]} to {shown[2]}")
        return lines


def _shared(name: str) -> str:
    return f"pooled.{name.rsplit('.', maxsplit=1)[-1]}"


def _summary(errors: Real) -> dict[str, float]:
    return {"median": _round(np.median(errors)), "p95": _round(np.quantile(errors, 0.95))}


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def _in_units(name: str, value: float) -> str:
    if name.endswith("_bytes_per_s"):
        return f"{value / 1e9:.{_MANY}g} GB/s"
    if name.endswith("_s"):
        return f"{value * 1e6:.{_MANY}g} us"
    return f"{value:.{_MANY}g} of the line rate"
