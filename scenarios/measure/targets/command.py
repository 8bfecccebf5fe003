"""Measure every target, with a verdict on each."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agents.planners.names import MOVING_NAMES
from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.document import DOCUMENT
from des.base.flags import from_dict, parse_given
from des.base.interruption import INTERRUPTED
from des.base.lazy import lazy
from des.worlds.reading import topology_path
from scenarios.frame.outputs import OutputChoice
from scenarios.frame.run_folder import RunFolder
from scenarios.measure.targets.config import (
    METHOD_NAMES,
    PROG,
    Config,
    column_methods,
    command_text,
    control_columns,
    recorded_flags,
    targets_of,
)
from scenarios.measure.targets.names import GROUP_NAMES, MEASURED
from scenarios.measure.targets.notes import revisions_note, scope_note
from scenarios.measure.training_curves import read_log, shipped_logs, training_curves

if TYPE_CHECKING:
    from rich.console import Console

    from agents.decision.situation import MakeScheduler
    from agents.hi_ppo import controls, policies, proposing, schedulers, whole_schedulers
    from agents.hi_ppo.local import decide, policy, shipped
    from agents.planners.pareto.proposals import Propose
    from agents.ppo import devices
    from agents.replanning import table
    from des.base import console as base_console
    from des.figures.figure import Figure
    from scenarios.measure import example_plan
    from scenarios.measure.targets import measurement_size, results_store, target_table, world_file
    from scenarios.measure.targets import table as targets_table
    from scenarios.measure.targets.measurement_size import SchedulerColumn, Scope, Sizes
    from scenarios.measure.targets.results_store import Key, Origin
else:
    decide = lazy("agents.hi_ppo.local.decide")
    policy = lazy("agents.hi_ppo.local.policy")
    shipped = lazy("agents.hi_ppo.local.shipped")
    controls = lazy("agents.hi_ppo.controls")
    policies = lazy("agents.hi_ppo.policies")
    proposing = lazy("agents.hi_ppo.proposing")
    schedulers = lazy("agents.hi_ppo.schedulers")
    whole_schedulers = lazy("agents.hi_ppo.whole_schedulers")
    devices = lazy("agents.ppo.devices")
    table = lazy("agents.replanning.table")
    base_console = lazy("des.base.console")
    example_plan = lazy("scenarios.measure.example_plan")
    measurement_size = lazy("scenarios.measure.targets.measurement_size")
    results_store = lazy("scenarios.measure.targets.results_store")
    targets_table = lazy("scenarios.measure.targets.table")
    target_table = lazy("scenarios.measure.targets.target_table")
    world_file = lazy("scenarios.measure.targets.world_file")


_EXAMPLES = f"""\
examples:
  {PROG} --quick --method search_h4
  {PROG} --checkpoint seed0.pt,seed1.pt,seed2.pt --out runs/kpi
  {PROG} --network east_central_west --model llama2_7b --targets time,gap --quick
  {PROG} --sites --quick
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config, given = parse_given(
        Config, argv, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES
    )
    if config.resume:
        config = _begun(config, given)
    OutputChoice(figures=config.figures, parquet=config.parquet)  # refused before minutes of work
    devices.use_torch_threads(1)  # as the response times have it, whatever was measured before
    scope = scope_of(config)
    columns = scheduler_columns(config, scope)
    origins = origins_of(config, columns)
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
    kept = targets_table.measure_groups(columns, origins, folder.path)
    measured = target_table.MeasuredTargets(
        columns=tuple(column.name for column in columns),
        targets=tuple(
            tuple(one for key in origins if key[0] == column.name for one in kept[key].targets)
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
        choice=OutputChoice(figures=config.figures, parquet=config.parquet),
        frame=targets_table.TargetFrame(
            command=command_text(config),
            configuration=recorded_flags(config),
            views=example_plan.example_views(columns[0].scope.worlds("eval_static")[0]),
            figures=_figures(config),
        ),
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
    record = recorded_flags(Config()) | folder.read_config()
    current = recorded_flags(config)
    flags = {name: current[name] for name in given & current.keys()}
    folder.require_begun_with(record, flags, PROG)
    begun = from_dict(Config, record, source=str(folder.config_json))
    return replace(begun, out=config.out, resume=True)


@contextmanager
def _folder(config: Config) -> Iterator[RunFolder]:
    """Make the run folder, or open that of the same run; it is locked meanwhile."""
    if config.resume:
        with RunFolder.opened(config.out) as folder:
            yield folder
    else:
        with RunFolder.created(config.out) as folder:
            folder.write_config(recorded_flags(config))
            yield folder


def _figures(config: Config) -> tuple[Figure, ...]:
    """Training of the shipped policies, where these are measured."""
    logs = shipped_logs()
    if config.checkpoint or column_methods(config) or not logs:
        return ()
    return (training_curves({path.name: read_log(path) for path in logs}),)


def scope_of(config: Config) -> Scope:
    """Size of the measurement, and its worlds."""
    sizes: Sizes = measurement_size.SHORT if config.quick else measurement_size.FULL
    if config.num_worlds is not None and not config.quick:
        sizes = sizes.with_worlds(config.num_worlds)
    given = {
        name: getattr(config, name)
        for name in ("num_worlds", "num_draws", "num_epochs")
        if getattr(config, name) is not None
    }
    world = (
        None if config.network is None else world_file.world_of_file(config.network, config.model)
    )
    return measurement_size.Scope(
        sizes=replace(sizes, **given), seed=config.seed, world=world, has_sites=config.sites
    )


def _checkpoints(config: Config) -> tuple[Path, ...]:
    """Trained policies that are measured."""
    paths = config.checkpoint or (() if column_methods(config) else tuple(policies.shipped_files()))
    if config.quick and not config.checkpoint:
        return paths[:1]  # the other seeds are for a run that is not short
    return paths


def scheduler_columns(config: Config, scope: Scope) -> list[SchedulerColumn]:
    """Make a column for each checkpoint and each method."""
    paths, methods = _checkpoints(config), column_methods(config)
    if not paths and not methods:
        raise UsageError(
            f"{PROG}: there must be something to measure, and no policy is shipped: give "
            f"--checkpoint, or --method with one of {', '.join(METHOD_NAMES)}"
        )
    makers: dict[str, tuple[MakeScheduler, Propose | None]] = {
        path.stem: schedulers.policy_scheduler(path) for path in paths
    }
    known = table.scheduler_makers() | {
        name: partial(whole_schedulers.moving_scheduler, name) for name in MOVING_NAMES
    }
    makers |= {name: (known[name], None) for name in methods}
    if len(makers) < len(paths) + len(methods):
        raise UsageError(f"{PROG}: checkpoints must have names of their own, each once")
    agent = None  # binds one pipeline of single sequences
    if not config.sites:
        agent = decide.LocalAgent(policy=policy.load_policy(_local_file(config)))
    bounded = {
        path.stem: schedulers.policy_scheduler(path, schedulers.MOST_SLOWDOWN)[0] for path in paths
    }
    fixed_rules = {path.stem: schedulers.fixed_rule_schedulers(path) for path in paths}
    if control_columns(config):
        own = _controls(paths[0])
        makers |= {name: (make, propose) for name, (make, propose, _) in own.items()}
        bounded |= {name: steady for name, (_, _, steady) in own.items()}
    return [
        measurement_size.SchedulerColumn(
            name=name,
            make=make,
            scope=scope,
            propose=propose,
            local=agent,
            make_bounded=bounded.get(name),
            fixed_rules=fixed_rules.get(name, {}),
        )
        for name, (make, propose) in makers.items()
    ]


def _controls(path: Path) -> dict[str, tuple[MakeScheduler, Propose, MakeScheduler]]:
    """Schedulers that have learnt nothing, or moves alone, proposals, and those with a bound."""
    trained = policies.Policies.load(path)
    return {
        name: (
            controls.control_scheduler(trained, name),
            proposing.proposing(controls.control_proposer(trained, name)),
            controls.control_scheduler(trained, name, schedulers.MOST_SLOWDOWN),
        )
        for name in controls.CONTROLS
    }


def origins_of(config: Config, columns: Sequence[SchedulerColumn]) -> dict[Key, Origin]:
    """Inputs of the targets of each column and group, in the order of the table."""
    shared = {} if config.sites else {"local": _local_file(config)}
    if config.network is not None:
        shared["world"] = topology_path(config.network)
    paths = _checkpoints(config)
    checkpoints = {path.stem: {"checkpoint": path} for path in paths}
    if control_columns(config):
        checkpoints |= {name: {"checkpoint": paths[0]} for name in controls.CONTROLS}
    flags, origins = recorded_flags(config), dict[results_store.Key, results_store.Origin]()
    for column in columns:
        origin = results_store.Origin.of(flags, checkpoints.get(column.name, {}) | shared)
        origins |= {(column.name, group): origin for group in targets_of(config)}
    return origins


def _local_file(config: Config) -> Path:
    return shipped.shipped_local_file() if config.local is None else config.local
