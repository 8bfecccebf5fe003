"""Train over seeds and hyper-parameters, several at once, and show which settings are best."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from des.base.checks import MOST_ITEMS, require_count
from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.document import DOCUMENT
from des.base.flags import option, parse
from des.base.interruption import INTERRUPTED
from des.base.lazy import lazy_imports
from scenarios.frame.files import write_csv
from scenarios.frame.outputs import (
    REPORT,
    OutputFlags,
    repetition_of,
    write_outputs,
)
from scenarios.frame.ray_extra import LOCAL, ray_module
from scenarios.frame.run_lock import lock_folder

with lazy_imports(__name__):
    import pandas as pd
    from rich.console import Console

    from des.base import console as base_console
    from scenarios.train import sweep_grid, sweep_results, sweep_running
    from scenarios.train.sweep_grid import Trial
    from scenarios.train.sweep_running import Submit


PROG = "python -m scenarios.sweep"

_EPILOG = f"""\
Every combination of the varied fields is trained with every seed, in a folder of its own: finished
ones are taken as they are, others continued. Writes sweep.csv, report.html, sweep.png and
seed_curves.png. On a cluster of Ray, --out and input files must be on a disk that all machines
share.

examples:
  {PROG} --quick --vary num_envs=32,64 --out runs/try
  {PROG} --vary learning_rate=1e-4,3e-4 --seeds 0,1,2 --workers 2 --out runs/rates

exit codes: 0 all went well; 1 some trainings failed; 2 bad input; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of a sweep."""

    vary: tuple[str, ...] = option(
        (),
        "FIELD=VALUE,... of scenarios.east_west_train --policy flat, a list as 64x64; may be given "
        "several times",
    )
    seeds: tuple[int, ...] = option((0, 1, 2), "training seeds")
    base: Path | None = option(
        None, "scenario file of scenarios.east_west_train with the other settings", is_file=True
    )
    workers: int | None = option(
        None,
        "trainings at once; none: one per CPU, on a cluster as many as it has room for",
        formerly="processes",
    )
    ray: str | None = option(
        None, f"train on Ray: {LOCAL} starts one here, auto or an address finds a cluster"
    )
    out: Path = option(Path("runs/sweep"), "folder of all runs; existing runs are resumed")
    quick: bool = option(False, "runs of seconds that show all steps and learn little")

    def __post_init__(self) -> None:
        if len(set(self.seeds)) != len(self.seeds) or not self.seeds:
            raise UsageError(f"{PROG}: seeds must be one or more different ones, got {self.seeds}")
        if self.workers is not None:
            require_count(PROG, "workers", self.workers, MOST_ITEMS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config = _parse(argv)
    config.choice()  # refused before hours of work
    flags = [] if config.base is None else ["--config", str(config.base)]
    flags += ["--workers", "1", *(["--quick"] if config.quick else [])]
    trials = sweep_grid.trials_of(
        _assignments(config.vary), seeds=config.seeds, flags=flags, out=config.out
    )
    sweep_grid.refuse_other_runs((trial.point for trial in trials), PROG)
    console = base_console.FittedConsole()
    at_once = config.workers
    if at_once is None:
        at_once = len(trials) if config.ray not in (None, LOCAL) else os.cpu_count() or 1
    config.out.mkdir(parents=True, exist_ok=True)
    try:
        with lock_folder(config.out), _submitter(config.ray, at_once) as submit:
            errors = sweep_running.run_trials(trials, submit, at_once=at_once, console=console)
            table = sweep_results.trials_table(trials, errors)
            _write(config, trials, table)
            DOCUMENT.add(rows=table, errors=errors, out=config.out)
            _show(config, trials, errors, table, console)
    except KeyboardInterrupt:
        console.print("Interrupted. The same command continues.")
        return INTERRUPTED
    return 1 if errors else 0


def _parse(argv: Sequence[str] | None) -> Config:
    """Read the command line, with all ``--vary`` of it joined."""
    gatherer = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    gatherer.add_argument("--vary", action="append", default=[])
    try:
        found, others = gatherer.parse_known_args(argv)
    except argparse.ArgumentError as error:
        raise UsageError(str(error)) from error
    joined = [f"--vary={','.join(found.vary)}"] if found.vary else []
    return parse(Config, [*others, *joined], prog=PROG, description=__doc__ or "", epilog=_EPILOG)


def _assignments(pieces: Sequence[str]) -> list[str]:
    """Undo the splitting at commas: a piece with = begins the next field.

    Examples
    --------
    >>> _assignments(["num_envs=32", "64", "learning_rate=1e-3"])
    ['num_envs=32,64', 'learning_rate=1e-3']
    """
    assignments: list[str] = []
    for piece in pieces:
        if "=" in piece or not assignments:
            assignments.append(piece)
        else:
            assignments[-1] += f",{piece}"
    return assignments


@contextmanager
def _submitter(ray: str | None, at_once: int) -> Iterator[Submit]:
    """Give the function that starts a training, here or on Ray."""
    if ray is None:
        with sweep_running.process_submitter() as submit:
            yield submit
    else:
        with ray_module("scenarios.train.sweep_ray").ray_submitter(ray, num_cpus=at_once) as submit:
            yield submit


def _write(config: Config, trials: Sequence[Trial], table: pd.DataFrame) -> None:
    """Write the rows, and a report where a training went through."""
    if table["error"].notna().all():
        write_csv(config.out / "sweep.csv", table)
        return
    page = sweep_results.sweep_report(trials, table, repetition_of(PROG, config))
    choice = config.choice()
    write_outputs(config.out, choice, page, {"sweep": table})


def _show(
    config: Config,
    trials: Sequence[Trial],
    errors: dict[str, str],
    table: pd.DataFrame,
    console: Console,
) -> None:
    fields = list(trials[0].settings)
    settings = sweep_results.settings_table(table, fields)
    console.print(sweep_results.show_table(settings, fields))
    if len(errors) < len(trials):
        console.print(f"Report: {config.out / REPORT}", soft_wrap=True, markup=False)
    for trial in trials:
        if trial.name in errors:
            line = f"FAILED: {trial.name}: {errors[trial.name]} (all of it: {trial.point.log})"
            console.print(line, soft_wrap=True, markup=False)
