"""Steps of real PyTorch pipelines over emulated WAN links, predicted by runtime and hosts.

``torch.distributed.pipelining`` 2.13 over gloo and TCP, a process a site, measured as torch posts
receives (stock) and with all posted first (early), on hosts set for long links (tuned) and as Linux
comes (default). Each column of the table has a bound for its mean absolute error and for the 95th
percentile. Nothing is fitted to a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.flags import JsonFlag, option, parse
from des.base.lazy import lazy
from des.figures.figure import Axis, Figure, Panel
from des.figures.marks import Line, Points
from des.figures.palette import BLUE, GREY, INK
from scenarios.frame.outputs import figures_option, parquet_option
from scenarios.reproduce.bound import Bound
from scenarios.reproduce.cases import PUBLISHED, existing_cases, read_form

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.reproduce import real_runs_rows, report
    from scenarios.reproduce.report import Reproduction
else:
    pd = lazy("pandas")
    real_runs_rows = lazy("scenarios.reproduce.real_runs_rows")
    report = lazy("scenarios.reproduce.report")

PROG = "python -m scenarios.reproduce real_runs"
SHIPPED = PUBLISHED / "real_runs"


class Aim(NamedTuple):
    """Targets for the mean and the 95th percentile of absolute errors, and those on record. [%]"""

    mean: float
    p95: float
    recorded_mean: float | None = None
    recorded_p95: float | None = None


AIMS = {
    "stock_tuned": Aim(3.0, 6.0),
    "stock_default": Aim(8.0, 20.0, 9.0, 26.5),
    "early_tuned": Aim(2.0, 7.0),
    "early_default": Aim(8.0, 20.0, 8.4, 25.0),
}
"""Aims by the key of a measurement."""

_NOTES = (
    "Payload gets 1448/1500 of a link, the relay of the emulation adds 0.125 ms to each way, and a "
    "pass takes 2.5 ms over its slept time. Constants of gloo, TCP and Linux are in "
    "des.program.rendezvous and des.costs.connection_window.",
)
_EXAMPLES = f"""\
--cases is a folder of files pipelines*.json of the form of the shipped one

examples:
  {PROG}
  {PROG} --cases unseen_runs --out runs/unseen

exit codes: 0 every bound is met; 1 one is not; 2 a flag or a file is wrong; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Settings of the reproduction of real runs; the fields are the flags."""

    cases: Path = option(SHIPPED, "folder of measured pipelines")
    out: Path = option(Path("runs/reproduce/real_runs"), "folder for table and picture")
    figures: tuple[str, ...] = figures_option()
    parquet: bool = parquet_option()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES)
    frame_of_run = report.run_frame(config, PROG)
    found = reproduce(predict_folder(config.cases), is_shipped=config.cases == SHIPPED)
    return report.publish(found, config.out, frame_of_run)


def predict_folder(folder: Path) -> pd.DataFrame:
    """Predict all measurements of a folder, one a row.

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
        for row in read_form(path, real_runs_rows.PipelineRows).root:
            try:
                cells += [_cell(row, key) for key in AIMS if key in row.measured]
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
    return pd.DataFrame(cells)


def _cell(row: real_runs_rows.PipelineRow, key: str) -> dict[str, object]:
    measured_s, predicted_s = row.measured[key].median_s, row.predicted_s(key)
    runtime, hosts = key.split("_")
    return {
        "run": row.name,
        "schedule": row.schedule,
        "runtime": runtime,
        "hosts": hosts,
        "measured_s": measured_s,
        "predicted_s": predicted_s,
        "error_percent": 100.0 * (predicted_s / measured_s - 1.0),
    }


def reproduce(frame: pd.DataFrame, *, is_shipped: bool) -> Reproduction:
    """Judge mean and 95th percentile of the absolute errors of each runtime on each hosts.

    Errors on record are those of the shipped rows.
    """
    columns = {
        f"{runtime}_{hosts}": cells
        for (runtime, hosts), cells in frame.groupby(["runtime", "hosts"])
    }
    judged = [(key, columns[key]) for key in AIMS if key in columns]
    return report.Reproduction(
        title="Steps of real PyTorch pipelines over emulated WAN links",
        frame=frame,
        bounds=tuple(bound for key, cells in judged for bound in _bounds(key, cells, is_shipped)),
        figure=draw(judged),
        notes=(*(_ranking(key, cells) for key, cells in judged), _regret(frame), *_NOTES),
    )


def _bounds(key: str, cells: pd.DataFrame, is_shipped: bool) -> tuple[Bound, Bound]:
    errors, aim, name = cells["error_percent"].abs(), AIMS[key], key.replace("_", ", ")
    return (
        Bound.at_most(
            f"{name}: mean absolute error [%] of {len(cells)} runs",
            float(errors.mean()),
            aim.mean,
            recorded=aim.recorded_mean if is_shipped else None,
            shown=".1f",
        ),
        Bound.at_most(
            f"{name}: 95th percentile of it [%]",
            float(errors.quantile(0.95)),
            aim.p95,
            recorded=aim.recorded_p95 if is_shipped else None,
            shown=".1f",
        ),
    )


def _ranking(key: str, cells: pd.DataFrame) -> str:
    """Rank correlation (Spearman) of a column's predictions with its measurements."""
    ranks = cells[["measured_s", "predicted_s"]].rank()
    return (
        f"{key.replace('_', ', ')}: rank correlation "
        f"{ranks['measured_s'].corr(ranks['predicted_s']):.3f}, mean error "
        f"{cells['error_percent'].mean():+.1f} %."
    )


def _regret(frame: pd.DataFrame) -> str:
    """What choosing the runtime by predictions costs against choosing it by measurements."""
    regrets = [
        cells.sort_values("predicted_s")["measured_s"].iloc[0] / cells["measured_s"].min() - 1.0
        for _, cells in frame.groupby(["run", "hosts"])
    ]
    return (
        "Regret of the runtime that is predicted to be quicker, mean over runs and hosts: "
        f"{100.0 * sum(regrets) / len(regrets):.2f} %."
    )


def draw(columns: Sequence[tuple[str, pd.DataFrame]]) -> Figure:
    """Predicted against measured times of each runtime and hosts, with lines at 20 % off."""
    num_cells = sum(len(cells) for _, cells in columns)
    return Figure(
        name="picture",
        title="Predicted against measured steps of PyTorch",
        seen=f"{num_cells} measured steps against those that are predicted, by runtime and hosts; "
        "grey lines are 20 % off.",
        panels=tuple(_panel(key, cells) for key, cells in columns),
        columns=2,
        width=8.0,
    )


def _panel(key: str, cells: pd.DataFrame) -> Panel:
    measured = tuple(cells["measured_s"].astype(float))
    ends = (0.7 * min(measured), 1.4 * max(measured))
    lines = [
        Line(
            label="",
            x=ends,
            y=(factor * ends[0], factor * ends[1]),
            colour=INK if factor == 1.0 else GREY,
            width=0.8,
        )
        for factor in (1.0, 0.8, 1.2)
    ]
    predicted = tuple(cells["predicted_s"].astype(float))
    return Panel(
        x=Axis(label="measured [s]", scale="log"),
        y=Axis(label="predicted [s]", scale="log"),
        marks=(*lines, Points(label="", x=measured, y=predicted, colour=BLUE, size=4.0)),
        title=key.replace("_", ", "),
        height=3.2,
        grid="both",
    )
