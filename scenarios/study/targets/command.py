"""Measure every target, with a verdict on each."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from agents.trainers.ideal import IDEAL
from des.base.command import EXIT_CODES
from des.base.commands import command_given
from des.base.document import DOCUMENT
from des.base.flags import from_dict, to_dict
from des.base.interruption import INTERRUPTED
from des.base.lazy import lazy_imports
from des.base.machine import usable_cores
from scenarios.frame.outputs import repeated_settings, repetition_of
from scenarios.frame.run_folder import RunFolder
from scenarios.study.targets.config import (
    METHOD_NAMES,
    PROG,
    Config,
    column_methods,
    control_columns,
)
from scenarios.study.targets.names import GROUP_NAMES, MEASURED
from scenarios.study.training_curves import read_log, shipped_logs, training_curves

with lazy_imports(__name__):
    from rich.console import Console

    from agents.hi_ppo import controls
    from des.base import console as base_console
    from des.figures.figure import Figure
    from scenarios.study import trained_plans
    from scenarios.study.targets import columns as target_columns
    from scenarios.study.targets import table as targets_table
    from scenarios.study.targets import target_table, time_and_utilisation
    from scenarios.study.targets.measurement_size import SchedulerColumn, Scope
    from scenarios.study.targets.results_store import KeptGroup, Key, Origin


_EXAMPLES = f"""\
examples:
  {PROG} --quick --method search_h4
  {PROG} --checkpoint seed0.safetensors,seed1.safetensors,seed2.safetensors --out runs/kpi
  {PROG} --network east_central_west --model llama2_7b --targets time,gap --quick
  {PROG} --sites --quick
  {PROG} --num-epochs 64 --workers 8 --out runs/kpi_long
  {PROG} --resume --out runs/kpi

methods: {", ".join(METHOD_NAMES)}
targets: {", ".join(GROUP_NAMES)}

files written to --out, besides config.json:
  {MEASURED}/                        targets of each column and group, as soon as they are known
  kpi.json, kpi.csv, report.html   all figures with their definitions, references and notes

--resume continues the run in --out with its original flags: others are refused, those
left out are taken from there. Groups that are in {MEASURED}/ are not measured again; a file that
they come from must not have changed since.

exit codes: 0 no target is missed; 1 a target is missed; 2 a flag or a file is wrong;
  {EXIT_CODES}
"""


@command_given(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config, given: frozenset[str]) -> int:
    """Run the command on its settings."""
    if config.resume:
        config = _begun(config, given)
    config.choice()  # refused before minutes of work
    columns = target_columns.scheduler_columns(config)
    origins = target_columns.origins_of(config, columns)
    console = base_console.FittedConsole()
    try:
        with _folder(config) as folder:
            return _run(config, columns, origins, folder, console)
    except KeyboardInterrupt:
        command = f"{PROG} --resume --out {shlex.quote(str(config.out))}"
        console.print(f"Interrupted. Continue with: {command}", soft_wrap=True, markup=False)
        return INTERRUPTED


def _run(
    config: Config,
    columns: Sequence[SchedulerColumn],
    origins: Mapping[Key, Origin],
    folder: RunFolder,
    console: Console,
) -> int:
    """Measure what is not there yet, and write and show all."""
    names = tuple(column.name for column in columns)
    many = 1 if columns[0].scope.is_short else usable_cores()
    num_workers = config.workers or many
    tasks = target_columns.group_tasks(config, names, folder.path, num_workers)
    if min(num_workers, len(tasks)) > 1:
        target_columns.measure_in_processes(tasks, num_workers)
    kept = targets_table.measure_groups(columns, origins, folder.path)
    measured = target_table.MeasuredTargets(
        columns=tuple(column.name for column in columns),
        targets=tuple(
            tuple(
                replace(one, is_quick=column.scope.is_short)
                for key in origins
                if key[0] == column.name
                for one in kept[key].targets
            )
            for column in columns
        ),
        are_seeds=not column_methods(config),
        num_controls=len(controls.CONTROLS) if control_columns(config) else 0,
    )
    note = f"{scope_note(columns[0].scope)}{revisions_note([kept[key] for key in origins])}"
    targets_table.write_targets(
        folder,
        measured,
        note,
        choice=config.choice(),
        repeat=repetition_of(PROG, config),
        views=trained_plans.example_views(columns[0].scope.worlds("eval_static")[0]),
        figures=_figures(config),
    )
    DOCUMENT.add(**measured.to_plain(note), out=config.out)
    targets_table.show_targets(console, measured, note)
    console.print(f"written: {config.out}", soft_wrap=True)
    for line in measured.open_targets:
        console.print(line, soft_wrap=True)
    return 1 if measured.missed else 0


def _begun(config: Config, given: frozenset[str]) -> Config:
    """Flags that the run in the folder was begun with; those given again must be the same."""
    folder = RunFolder.open_existing(config.out)
    former = repeated_settings(Config()) | {"trainer": IDEAL.name}  # before the flag was there
    record = former | folder.read_config()
    current = repeated_settings(config)
    flags = {name: current[name] for name in given & current.keys()}
    folder.require_begun_with(record, flags, PROG)
    present = to_dict(config) | {"resume": True}
    here = {name: value for name, value in present.items() if name not in current}
    return from_dict(Config, record | here, source=str(folder.config_json))


def _folder(config: Config) -> AbstractContextManager[RunFolder]:
    """Make the run folder, or open that of the same run; it is locked meanwhile."""
    if config.resume:
        return RunFolder.opened(config.out)
    return RunFolder.created(config.out, repeated_settings(config))


def _figures(config: Config) -> tuple[Figure, ...]:
    """Training of the shipped policies, where these are measured."""
    logs = shipped_logs()
    if config.checkpoint or column_methods(config) or not logs:
        return ()
    return (training_curves({path.name: read_log(path) for path in logs}),)


def scope_note(scope: Scope) -> str:
    """Say on how much the table rests."""
    sizes = scope.sizes
    where = f"the world {scope.world.name}" if scope.world else f"{sizes.num_worlds} worlds a suite"
    where += " of real sites" if scope.has_sites else ""
    note = f"{where}, {sizes.num_draws} draws each, {sizes.num_epochs} epochs a draw; "
    firsts = [world for name in time_and_utilisation.SUITES for world in scope.worlds(name, 1)]
    note += trained_plans.devices_note(scope.trainer, firsts)
    if scope.is_short:
        return f"{note}: too few draws to claim anything"
    return note


def revisions_note(groups: Sequence[KeptGroup]) -> str:
    """Warn where rows come from different source revisions."""
    revisions = dict.fromkeys(str(group.source_revision) for group in groups)
    if len(revisions) == 1:
        return ""
    return f"; measured at the source revisions {', '.join(revisions)}"
