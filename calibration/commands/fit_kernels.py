"""Fit layer times from shapes to measured iterations, and test them on runs left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from calibration.commands.console import progress_bar, say, write_and_say
from des.base.command import UsageError
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from calibration.measured import kernel_fit, kernel_report, runs

EXAMPLES = """\
examples:
  cd scenarios/reproduce/data/measured
  python -m calibration kernels --runs vtrain_multi.json,vtrain_single.json
      the shipped figures of A100 GPUs, in about 5 minutes
  python -m calibration kernels --runs my_cluster.json --folds 5 --out runs/my_kernels

a file of runs is JSON: source, setup (GPU model, network, recomputation) and rows with the sizes,
the parallelism and measured_iteration_s of each run; see the shipped ones

files written to --out:
  kernels.json   the constants with intervals, errors, and which rows they are from;
                 its "kernels" are the key of a topology file
  runs.csv       every run: measured, predicted, predicted by constants fitted without it
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of the fit."""

    runs: tuple[Path, ...] = option((), "files of measured runs")
    folds: int = option(4, "parts of the runs, each left out once")
    out: Path = option(Path("runs/kernels"), "folder for the files")


def run(config: Config) -> None:
    """Fit, test and write."""
    if not config.runs:
        raise UsageError("--runs must name at least one file of measured runs, got none")
    tables = [runs.read_runs(path) for path in config.runs]
    sample = [(one, table.setup) for table in tables for one in table.runs]
    if not 2 <= config.folds <= len(sample):
        raise UsageError(
            f"--folds must be at least 2 and at most the {len(sample)} runs, got {config.folds}"
        )
    with progress_bar("predictions of all runs") as progress:
        task = progress.add_task("", total=None)

        def on_step() -> None:
            progress.advance(task)

        fitted = kernel_fit.fit_kernels(sample, on_step)
        left_out = kernel_fit.cross_validated_errors(sample, config.folds, on_step)
    report = kernel_report.KernelReport.of(tables, fitted, left_out, config.folds)
    for line in report.lines():
        say(line)
    files = {"kernels.json": report.json_bytes(), "runs.csv": report.csv_bytes()}
    write_and_say(config.out, files, lines=list(report.lines()))
