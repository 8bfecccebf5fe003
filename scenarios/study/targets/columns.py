"""Columns of the table of targets, made from the flags: policies, their controls, and planners.

Groups of targets are measured in processes where asked, but for what measures wall times.
"""

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from agents.decision.situation import MakeScheduler
from agents.hi_ppo import controls
from agents.hi_ppo.local.decide import LocalAgent
from agents.hi_ppo.local.policy import load_policy
from agents.hi_ppo.local.shipped import shipped_local_file
from agents.hi_ppo.policies import Policies, shipped_files
from agents.hi_ppo.proposing import proposing
from agents.hi_ppo.schedulers import MOST_SLOWDOWN, make_fixed_rule_schedulers, policy_scheduler
from agents.hi_ppo.whole_proposals import moving_scheduler
from agents.planners.names import MOVING_NAMES, SEARCH_BOUND
from agents.planners.pareto.proposals import Propose
from agents.replanning.bound_schedulers import search_bound_scheduler
from agents.replanning.table import HORIZON_EPOCHS, scheduler_makers
from agents.search.trainer_search import TrainerSearch
from agents.trainers.table import trainer_named
from calibration.reference.pool import map_in_processes
from des.base.command import UsageError
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from des.job.models import layers_note
from des.worlds.reading import topology_path
from scenarios.frame.outputs import repeated_settings
from scenarios.study.targets.config import (
    METHOD_NAMES,
    PROG,
    Config,
    column_methods,
    control_columns,
    targets_of,
)
from scenarios.study.targets.measurement_size import SchedulerColumn, Scope
from scenarios.study.targets.results_store import Key, Origin
from scenarios.study.targets.sizes import FULL, SHORT
from scenarios.study.targets.table import measure_groups
from scenarios.study.targets.time_and_utilisation import SUITES
from scenarios.study.targets.world_file import suite_world_of
from scenarios.suites import suite

with lazy_imports(__name__):
    from agents.ppo import devices


def _scope_of(config: Config) -> Scope:
    """Size of the measurement, and its worlds."""
    sizes = SHORT if config.quick else FULL
    if config.num_worlds is not None and not config.quick:
        sizes = sizes.with_worlds(config.num_worlds)
    given = {
        name: getattr(config, name)
        for name in ("num_worlds", "num_draws", "num_epochs")
        if getattr(config, name) is not None
    }
    world = None
    if config.network is not None:
        workload = config.workload(config.microbatches)
        SPEAKER.note(layers_note(workload))
        topology = config.world(str(config.network))
        world = suite_world_of(config.network.stem, topology, workload)
    scope = Scope(
        sizes=replace(sizes, **given),
        seed=config.seed,
        world=world,
        has_sites=config.sites,
        trainer=trainer_named(config.trainer),
    )
    if config.num_domains is None:
        return scope
    if not any(suite(name).has_domains(*config.num_domains) for name in SUITES):
        raise UsageError(
            f"{PROG}: num_domains must be numbers that one of {', '.join(SUITES)} has worlds of, "
            f"got {','.join(map(str, config.num_domains))}"
        )
    return replace(scope, num_domains=config.num_domains)


def _checkpoints(config: Config) -> tuple[Path, ...]:
    """Trained policies that are measured."""
    paths = config.checkpoint or (() if column_methods(config) else tuple(shipped_files()))
    if config.quick and not config.checkpoint:
        return paths[:1]  # the other seeds are for a run that is not short
    return paths


def scheduler_columns(config: Config) -> list[SchedulerColumn]:
    """Make a column for each checkpoint and each method; all share a scope."""
    scope = _scope_of(config)
    paths, methods = _checkpoints(config), column_methods(config)
    if not paths and not methods:
        raise UsageError(
            f"{PROG}: there must be something to measure, and no policy is shipped: give "
            f"--checkpoint, or --method with one of {', '.join(METHOD_NAMES)}"
        )
    makers: dict[str, tuple[MakeScheduler, Propose | None]] = {
        path.stem: policy_scheduler(path) for path in paths
    }
    known = scheduler_makers() | {name: partial(moving_scheduler, name) for name in MOVING_NAMES}
    known[SEARCH_BOUND] = partial(
        search_bound_scheduler, TrainerSearch(trainer=scope.trainer), HORIZON_EPOCHS
    )
    makers |= {name: (known[name], None) for name in methods}
    if len(makers) < len(paths) + len(methods):
        raise UsageError(f"{PROG}: checkpoints must have names of their own, each once")
    agent = None  # binds one pipeline of single sequences
    if not config.sites:
        agent = LocalAgent(policy=load_policy(_local_file(config)))
    bounded = {path.stem: policy_scheduler(path, MOST_SLOWDOWN)[0] for path in paths}
    fixed_rules = {path.stem: make_fixed_rule_schedulers(path) for path in paths}
    if control_columns(config):
        own = _controls(paths[0])
        makers |= {name: (make, propose) for name, (make, propose, _) in own.items()}
        bounded |= {name: steady for name, (_, _, steady) in own.items()}
    return [
        SchedulerColumn(
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
    devices.use_torch_threads(1)  # as the response times have it, whatever was measured before
    trained = Policies.load(path)
    return {
        name: (
            controls.control_scheduler(trained, name),
            proposing(controls.control_proposer(name)),
            controls.control_scheduler(trained, name, MOST_SLOWDOWN),
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
    flags, origins = repeated_settings(config), dict[Key, Origin]()
    for column in columns:
        origin = Origin.of(flags, checkpoints.get(column.name, {}) | shared)
        origins |= {(column.name, group): origin for group in targets_of(config)}
    return origins


def _local_file(config: Config) -> Path:
    return shipped_local_file() if config.local is None else config.local


ALONE = "response"
"""Group of response times, which other processes would make longer."""

_LONGEST = ("headroom", "stability", "fluctuation")
"""Groups that take longest, which begin first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTask:
    """A group of targets of some columns of a run, measured in one process."""

    config: Config
    group: str
    columns: tuple[str, ...]
    run_folder: Path


def group_tasks(
    config: Config, names: Sequence[str], run_folder: Path, num_workers: int
) -> list[GroupTask]:
    """Split a run, but for `ALONE`: by groups, as columns share references; then by columns.

    Examples
    --------
    >>> config = Config(targets=("time", "stability", "response"), method=("uniform",))
    >>> [(one.group, one.columns) for one in group_tasks(config, ["a", "b", "c"], Path(), 4)]
    [('stability', ('a', 'c')), ('stability', ('b',)), ('time', ('a', 'c')), ('time', ('b',))]
    """
    groups = [group for group in targets_of(config) if group != ALONE]
    groups.sort(key=lambda group: (*_LONGEST, group).index(group))
    num_parts = min(len(names), math.ceil(num_workers / max(1, len(groups))))
    parts = [tuple(names[part::num_parts]) for part in range(num_parts)]
    return [
        GroupTask(config=config, group=group, columns=part, run_folder=run_folder)
        for group in groups
        for part in parts
    ]


def measure_in_processes(tasks: Sequence[GroupTask], num_workers: int) -> None:
    """Measure groups in processes; `measure_groups` reads what they keep.

    Figures are those of one process: references that groups share are found in each process.

    Raises
    ------
    ValueError, OSError
        If a file is corrupt or of another run, or cannot be read or written; ChildProcessError if a
        process died.
    RuntimeError
        If a group fails otherwise, naming it.
    """
    outcomes = map_in_processes(
        measure_group, tasks, num_workers=num_workers, timeout_s=None, at_once=True
    )
    with closing(outcomes), SPEAKER.doing("targets in processes"):
        for num_done, (position, outcome) in enumerate(outcomes, start=1):
            group = tasks[position].group
            if isinstance(outcome, ChildProcessError):
                raise ChildProcessError(f"target {group}: {outcome}") from outcome
            if isinstance(outcome, ValueError | OSError):
                raise outcome
            if isinstance(outcome, Exception):
                raise RuntimeError(f"target {group}: {outcome}") from outcome
            SPEAKER.reached(f"{num_done} of {len(tasks)} measured, {group} last")


def measure_group(task: GroupTask) -> None:
    """Measure a group of some columns in this process, and keep each in the run folder."""
    columns, origins = _columns_of(task.config)
    keys = [(column, task.group) for column in task.columns]
    measure_groups(columns, origins, task.run_folder, keys)


@lru_cache(maxsize=1)
def _columns_of(config: Config) -> tuple[list[SchedulerColumn], dict[Key, Origin]]:
    """All columns of a run, which share the references that this process finds."""
    columns = scheduler_columns(config)
    return columns, origins_of(config, columns)
