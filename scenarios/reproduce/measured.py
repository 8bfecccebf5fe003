"""Iteration times of measured training runs, predicted from shapes of layers and a data sheet.

Runs of Megatron-DeepSpeed on A100 clusters: of vTrain (J. Bang et al., MICRO 2024) on one node and
on many, and of Megatron-Turing NLG 530B. The bound of each table is its target for the mean
absolute error; the best published error stands next to it. The five constants of layer times were
fitted on the public rows of vTrain that come with EastWest; other rows, in --cases, were not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.flags import option, parse
from des.base.lazy import lazy
from des.world.gpu_models import FITTED_KERNELS
from scenarios.reproduce.cases import PUBLISHED, existing_cases

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure as matplotlib_figure
    from matplotlib.figure import Figure

    from calibration.measured import runs
    from calibration.measured.runs import RunTable
    from scenarios.frame import plots
    from scenarios.reproduce import measured_pairs, report
    from scenarios.reproduce.report import Bound, Reproduction
else:
    matplotlib_figure = lazy("matplotlib.figure")
    measured_pairs = lazy("scenarios.reproduce.measured_pairs")
    pd = lazy("pandas")
    plots = lazy("scenarios.frame.plots")
    report = lazy("scenarios.reproduce.report")
    runs = lazy("calibration.measured.runs")

PROG = "python -m scenarios.reproduce measured"
SHIPPED = PUBLISHED / "measured"
TITLES = {
    "vtrain_multi": "vTrain, 64-512 A100",
    "vtrain_single": "vTrain, one node",
    "mtnlg": "Megatron-Turing NLG 530B",
}
"""Tables by the beginning of a file's name."""

STEP_LATENCY_S = 2.19e-5
"""Latency of a step of a collective between two GPUs, launch and waiting included; fitted. [s]"""

SHOWN = ("table", "run", "measured_s", "predicted_s", "error_percent")
FITTED = (
    "Fitted: efficiencies of matrix products and of memory, launches of a layer, overhead of an "
    "iteration, latency of a step; all on the 56 + 72 public rows of vTrain (vtrain_multi.json, "
    "vtrain_single.json) by `python -m calibration kernels`, none per table or per run. "
    "Everything else is a data sheet's or the file's."
)
_EXAMPLES = f"""\
--cases is a folder of files whose names begin with {", ".join(TITLES)};
a file without setup takes that of the shipped file of the same table

examples:
  {PROG}
  {PROG} --cases unseen_rows --out runs/unseen

exit codes: 0 every bound is met; 1 one is not; 2 a flag or a file is wrong; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of the reproduction of measured runs; the fields are the flags."""

    cases: Path = option(SHIPPED, "folder of tables of measured runs")
    out: Path = option(Path("runs/reproduce/measured"), "folder for table and picture")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES)
    return report.publish(reproduce(read_run_tables(config.cases)), config.out)


def read_run_tables(folder: Path) -> dict[str, RunTable]:
    """Read all tables of a folder that are known, by the beginning of their files' names.

    Raises
    ------
    UsageError
        If there is no such folder, or none of the tables in it.
    ValueError
        If a file is wrong, see `calibration.measured.runs.read_runs`.
    """
    existing_cases(folder, kind="folder")
    tables = {}
    for name in TITLES:
        shipped = runs.read_runs(SHIPPED / f"{name}.json")
        for path in sorted(folder.glob(f"{name}*.json")):
            tables[path.stem] = runs.read_runs(path, shipped.setup)
    if not tables:
        names = ", ".join(f"{name}*.json" for name in TITLES)
        raise UsageError(f"cases: must be a folder with any of {names}; {folder} has none")
    return tables


def reproduce(tables: dict[str, RunTable]) -> Reproduction:
    """Predict every run and judge the mean absolute error of each table."""
    frame = compare(tables)
    bounds, unjudged = table_bounds(frame, tables)
    return report.Reproduction(
        title="Iteration times of measured runs, from shapes of layers",
        frame=frame,
        bounds=bounds,
        unjudged=unjudged,
        shown=SHOWN,
        figure=draw(frame),
        notes=(*regimes(frame), *measured_pairs.ranked_otherwise(frame), FITTED),
    )


def compare(tables: dict[str, RunTable]) -> pd.DataFrame:
    """Table of all runs: what each was, measured and predicted times, signed error. [%]"""
    figures = runs.LayerTimeFigures(kernels=FITTED_KERNELS, step_latency_s=STEP_LATENCY_S)
    rows = []
    for name, table in tables.items():
        for run in table.runs:
            found = runs.PredictedRun(run=run, setup=table.setup, figures=figures)
            rows.append(
                {
                    "table": name,
                    "run": run.label,
                    "num_gpus": run.num_gpus,
                    "hidden_size": run.hidden_size,
                    "num_layers": run.num_layers,
                    "global_batch": run.global_batch,
                    "tensor": run.tensor,
                    "data": run.data,
                    "pipeline": run.pipeline,
                    "microbatch_size": run.microbatch_size,
                    "measured_s": run.measured_iteration_s,
                    "predicted_s": found.predicted_s,
                    "error_percent": 100.0 * found.relative_error,
                }
            )
    return pd.DataFrame(rows)


def table_bounds(
    frame: pd.DataFrame, tables: dict[str, RunTable]
) -> tuple[tuple[Bound, ...], tuple[str, ...]]:
    """Hold each table against its target; a table without one is not judged."""
    bounds, unjudged = [], []
    for name, table in tables.items():
        errors = frame.loc[frame["table"] == name, "error_percent"]
        published = table.setup.published_error
        said = "" if published is None else f" (best published {published:.1%})"
        line = f"mean absolute error [%] of {len(errors)} runs of {name}{said}"
        error = float(errors.abs().mean())
        if table.setup.target_error is None:
            unjudged.append(f"{line}: {error:.1f}")
        else:
            bounds.append(
                report.Bound.at_most(line, error, 100.0 * table.setup.target_error, shown=".1f")
            )
    return tuple(bounds), tuple(unjudged)


def regimes(frame: pd.DataFrame) -> list[str]:
    """Signed bias and mean absolute error of each table by its ways to share the work."""
    lines = []
    for name, rows in frame.groupby("table", sort=False):
        parts = []
        for column in ("tensor", "pipeline", "microbatch_size", "hidden_size"):
            groups = rows.groupby(column)["error_percent"]
            means = ", ".join(
                f"{value}: {errors.mean():+.1f} ({errors.abs().mean():.1f}, n {len(errors)})"
                for value, errors in groups
            )
            parts.append(f"{column} {means}")
        lines.append(f"{name}, mean error (mean absolute) [%] by regime: {'; '.join(parts)}.")
    return lines


def draw(frame: pd.DataFrame) -> Figure:
    """Predicted against measured times of each table, with lines at 20 % off."""
    names = list(frame["table"].unique())
    figure = matplotlib_figure.Figure(
        figsize=(4.0 * len(names), 4.2), dpi=120, layout="constrained"
    )
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        rows = frame[frame["table"] == name]
        ends = np.array([rows["measured_s"].min() * 0.7, rows["measured_s"].max() * 1.4])
        axes.plot(ends, ends, color=plots.INK, linewidth=0.8)
        for factor in (0.8, 1.2):
            axes.plot(ends, factor * ends, color=plots.FAINT, linewidth=0.8)
        axes.plot(rows["measured_s"], rows["predicted_s"], "o", color=plots.BLUE, markersize=4)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("measured iteration time [s]")
        axes.set_ylabel("predicted [s]")
        axes.set_title(next((title for key, title in TITLES.items() if name.startswith(key)), name))
    return figure
