"""Report of a fit of layer times: constants, errors on runs left out, and every run."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from calibration.measured.kernel_fit import KernelFit, errors_of_runs
from calibration.measured.runs import LayerTimeFigures, RunTable
from des.base.csv_text import csv_text

UNITS = ("of the peak", "of the bandwidth", "s a layer", "s an iteration", "s a step")
"""Units of the constants in the order of `calibration.measured.kernel_fit.vector_of`."""


def constants_of(figures: LayerTimeFigures) -> dict[str, float]:
    """The constants that are fitted by name, in the order of the fit."""
    kernels = asdict(figures.kernels)
    for setting in ("attention_share", "graphs", "hides_all_to_alls"):
        del kernels[setting]
    return kernels | {"step_latency_s": figures.step_latency_s}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport:
    """A fit with the errors of every run: by all constants, and by those fitted without it."""

    tables: tuple[RunTable, ...]
    fitted: KernelFit
    errors: tuple[float, ...]
    left_out_errors: tuple[float, ...]
    num_folds: int

    @classmethod
    def of(
        cls,
        tables: Sequence[RunTable],
        fitted: KernelFit,
        left_out: np.ndarray,
        num_folds: int,
    ) -> "KernelReport":
        """Make a report of a fit to the runs of some tables."""
        sample = [(run, table.setup) for table in tables for run in table.runs]
        return cls(
            tables=tuple(tables),
            fitted=fitted,
            errors=tuple(errors_of_runs(sample, fitted.figures).tolist()),
            left_out_errors=tuple(left_out.tolist()),
            num_folds=num_folds,
        )

    def error_rows(self) -> list[tuple[str, int, float, float, float]]:
        """Name, number of runs, and errors of each table: mean absolute, left out, mean signed."""
        rows, first = [], 0
        for table in self.tables:
            part = slice(first, first + len(table.runs))
            own, left_out = np.array(self.errors[part]), np.array(self.left_out_errors[part])
            own_mean, left_out_mean = float(np.abs(own).mean()), float(np.abs(left_out).mean())
            rows.append((table.name, len(table.runs), own_mean, left_out_mean, float(own.mean())))
            first = part.stop
        return rows

    def lines(self) -> list[str]:
        """Say the errors first, then the constants, one a line."""
        lines = [
            f"{name}: {num} runs, mean absolute error {own:.1%}; {left_out:.1%} with constants "
            f"fitted without the run ({self.num_folds} folds); mean {signed:+.1%}"
            for name, num, own, left_out, signed in self.error_rows()
        ]
        constants = constants_of(self.fitted.figures)
        for (name, value), factor, unit in zip(
            constants.items(), self.fitted.intervals, UNITS, strict=True
        ):
            lines.append(
                f"{name}: {value:.4g} {unit}, 95 % {value / factor:.3g} to {value * factor:.3g}"
            )
        return lines

    def json_bytes(self) -> bytes:
        """Write JSON of the constants, their intervals, and the errors on the fitted rows."""
        constants = constants_of(self.fitted.figures)
        kernels = self.fitted.figures.kernels
        content = {
            "kernels": {
                "matmul_efficiency": kernels.matmul_efficiency,
                "memory_efficiency": kernels.memory_efficiency,
                "layer_launch": f"{kernels.layer_launch_s * 1e6!r}us",
                "iteration_overhead": f"{kernels.iteration_overhead_s * 1e6!r}us",
            },
            "step_latency_s": self.fitted.figures.step_latency_s,
            "interval_95_percent": {
                name: [value / factor, value * factor]
                for (name, value), factor in zip(
                    constants.items(), self.fitted.intervals, strict=True
                )
            },
            "fitted_on": [
                {
                    "table": table.name,
                    "source": table.source,
                    "runs": num,
                    "mean_absolute_error": own,
                    "mean_absolute_error_left_out": left_out,
                    "mean_error": signed,
                }
                for table, (_, num, own, left_out, signed) in zip(
                    self.tables, self.error_rows(), strict=True
                )
            ],
            "folds": self.num_folds,
        }
        return (json.dumps(content, indent=1) + "\n").encode()

    def csv_bytes(self) -> bytes:
        """Write a CSV with one row for each run."""
        rows: list[tuple[object, ...]] = [
            ("table", "run", "measured_s", "predicted_s", "error", "error_left_out")
        ]
        runs = [(table.name, run) for table in self.tables for run in table.runs]
        for (name, run), error, left_out in zip(
            runs, self.errors, self.left_out_errors, strict=True
        ):
            predicted_s = run.measured_iteration_s * (1.0 + error)
            rows.append((name, run.label, run.measured_iteration_s, predicted_s, error, left_out))
        return csv_text(rows).encode()
