"""Fit times of transfers between GPUs to measured all-reduces, and test them on cells left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from calibration.commands.console import progress_bar, say, write_and_say
from des.base.checks import require_positive, require_seed
from des.base.command import UsageError
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    import numpy as np

    from calibration.measured import collective_errors as measured_errors
    from calibration.measured import collective_fit, collective_report, collective_table

EXAMPLES = """\
examples:
  python -m calibration devices
      the shipped figures, from the shipped table
  python -m calibration devices --runs my_cluster.csv --out runs/my_devices

a table is CSV with the columns node,workers,gpus_per_node,bytes,median_ms, or JSON as the shipped
calibration/measured/data/all_reduce.json; node is one of its machines or a kind of server of
python -m scenarios.devices show --simulate; fewer gpus_per_node than workers means several machines

files written to --out:
  link_figures.json  the constants with intervals, errors, and the cells they are from
  cells.csv          every cell: measured, predicted, error, error by constants fitted without it
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of the fit."""

    runs: tuple[Path, ...] = option(
        (), "tables of measured all-reduces, JSON or CSV", default_text="the shipped one"
    )
    least_bytes: float = option(2.0**20, "smallest buffers taken", check=require_positive)
    folds: int = option(4, "parts of the cells, each left out once")
    halves: int = option(20, "drawn halves of the cells, each fitted and tested on the other half")
    bootstrap: int = option(200, "fits to cells drawn again, for the intervals")
    seed: int = option(0, "seed of folds, halves and intervals", check=require_seed)
    out: Path = option(Path("runs/devices"), "folder for the files")


def run(config: Config) -> None:
    """Fit, test and write."""
    paths = config.runs or (collective_table.SHIPPED_TABLE,)
    tables = [collective_table.read_measured_table(path) for path in paths]
    table = collective_fit.CellTable(
        cells=tuple(
            cell for one in tables for cell in one.cells if cell.payload_bytes >= config.least_bytes
        ),
        source="; ".join(one.source for one in tables),
    )
    _check(config, len(table.cells))
    report = _report(config, table)
    for line in report.lines():
        say(line)
    files = {"link_figures.json": report.json_bytes(), "cells.csv": report.csv_bytes()}
    write_and_say(config.out, files, lines=list(report.lines()))


def _check(config: Config, num_cells: int) -> None:
    if num_cells < 2:
        raise UsageError(
            f"--runs must have at least 2 cells of --least-bytes {config.least_bytes:g} or more, "
            f"got {num_cells}"
        )
    if not 2 <= config.folds <= num_cells:
        raise UsageError(
            f"--folds must be at least 2 and at most the {num_cells} cells, got {config.folds}"
        )
    for flag, value in (("--halves", config.halves), ("--bootstrap", config.bootstrap)):
        if value < 1:
            raise UsageError(f"{flag} must be at least 1, got {value}")


def _report(config: Config, table: collective_fit.CellTable) -> collective_report.CollectiveReport:
    rng = np.random.default_rng(config.seed)
    with progress_bar("fits") as progress:
        total = config.folds + config.halves + config.bootstrap
        task = progress.add_task("", total=total)

        def on_step() -> None:
            progress.advance(task)

        return collective_report.CollectiveReport(
            table=table,
            vector=collective_fit.fit_cells(table),
            left_out=measured_errors.errors_left_out(table, config.folds, rng, on_step),
            intervals=collective_fit.bootstrap_intervals(table, config.bootstrap, rng, on_step),
            num_folds=config.folds,
            halves=measured_errors.halves_errors(table, config.halves, config.seed, on_step),
        )
