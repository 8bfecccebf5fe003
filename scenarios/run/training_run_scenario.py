"""Scenario of a training run: its flags, and their world, model, loads and planner."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

from agents.decision.trained_workload import trained_workload
from agents.decision.training_job import TrainingJob
from agents.planners.names import RULE_NAMES, SEARCH_BOUND
from agents.trainers.table import trainer_named
from calibration.fit.fitted_for import FittedFor
from des import (
    DEFAULT_SCHEDULE,
    NO_CORRECTIONS,
    Corrections,
    Plan,
    Topology,
    Workload,
    check_memory,
)
from des.base.checks import prefixed_errors, require_one_of
from des.base.command import UsageError
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from des.base.strict_json import parse_json
from des.base.text_files import read_text
from des.dynamics import DYNAMICS
from des.training.background import BackgroundLoad, beside_jobs
from des.training.replayed_load import ReplayedLoad
from des.training.training_settings import Planner, TrainingRun
from des.world.domain_load import DomainLoad
from scenarios.iteration import iteration_config
from scenarios.run.deciders import Decided, in_two_levels, planner_of
from scenarios.run.training_run_config import DECIDERS, PROG, Config

with lazy_imports(__name__):
    from agents.decision import plan_document
    from agents.decision.bound_plan import BoundPlan
    from agents.replanning import link_sight
    from agents.search import bound_search, search
    from agents.trainers.trainer import Trainer
    from calibration.fit import corrections_file
    from des.world.files import load_files
    from scenarios.iteration import trained_plan
    from scenarios.iteration.iteration_scenario import IterationScenario

LOAD_COLUMNS = ("time_s", "domain", "gpu_utilisation", "memory_occupancy", "queue_length")
"""Columns of ``loads.csv``."""


def read_replayed_loads(path: Path, topology: Topology) -> tuple[ReplayedLoad | None, ...]:
    """Read a course of loads for each domain; None where the file has none.

    Raises
    ------
    ValueError
        If the file cannot be read, or a cell is not of its column.
    """
    reader = csv.DictReader(io.StringIO(read_text(path)))
    missing = [name for name in LOAD_COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"{path}: must have a column {missing[0]}, got {reader.fieldnames}")
    changes: dict[str, list[tuple[float, DomainLoad]]] = defaultdict(list)
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        require_one_of(where, "domain", row["domain"], topology.index_of)
        try:
            time_s, *figures = (float(row[name]) for name in LOAD_COLUMNS if name != "domain")
            changes[row["domain"]].append((time_s, _load(*figures)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from error
    return tuple(
        ReplayedLoad(changes=tuple(changes[domain.name])) if changes[domain.name] else None
        for domain in topology.domains
    )


def _load(utilisation: float, memory_occupancy: float, queue_length: float) -> DomainLoad:
    return DomainLoad(
        utilisation=utilisation, memory_occupancy=memory_occupancy, queue_length=queue_length
    )


OF_A_PLACEMENT = ("placement", "parallelism", "replicas", "shares")
"""Flags that say what a planner decides, or does not know."""
_OF_ONE_ITERATION = (
    *("placement", "trainer", "parallelism"),
    *(one.name for one in fields(iteration_config.PlacedFlags)),
)
"""Flags that the command for one iteration has, too."""


@dataclass(frozen=True, kw_only=True)
class TrainingRunScenario:
    """Objects named by the files and names of a `Config`; ``planner`` may be a plan that stays."""

    topology: Topology
    workload: Workload
    planner: Plan | Planner
    settings: TrainingRun
    corrections: Corrections


def load_training_run(config: Config) -> TrainingRunScenario:
    """Read the files and put together what the flags describe.

    Raises
    ------
    ValueError
        If a file, a name or a number is wrong, or a plan does not fit into the memory.
    """
    given = _of_flags(config) if config.plan is None else _of_document(config.plan)
    topology = _moving(config, given.topology)
    settings = TrainingRun(
        num_epochs=config.epochs,
        epoch_s=config.epoch_s,
        seed=config.seed,
        background=_background(config, topology),
        restart_s=config.restart_s,
        pays_bytes=config.pays_bytes,
    )
    return TrainingRunScenario(
        topology=topology,
        workload=given.workload,
        planner=given.plan or _decider(config, topology, given, settings),
        settings=settings,
        corrections=given.corrections,
    )


class _Given(NamedTuple):
    """World, job and corrections, and the plan where one is given."""

    topology: Topology
    workload: Workload
    corrections: Corrections
    plan: Plan | None


def read_plan(path: Path) -> BoundPlan:
    """Read a complete plan.

    Raises
    ------
    ValueError
        If the file holds none, or it cannot run.
    """
    with prefixed_errors(f"{path}: "):
        return plan_document.read_document(parse_json(read_text(path, "plan ")))


def _of_document(path: Path) -> _Given:
    bound = read_plan(path)
    return _Given(bound.topology, bound.workload, bound.corrections, bound.plan)


def _of_flags(config: Config) -> _Given:
    topology = config.world(config.network)
    if config.planner is None:
        given = _read_fixed_plan(config)
        return _Given(topology, given.workload, given.corrections, given.plan)
    trainer = trainer_named(config.trainer)
    workload = config.workload(config.microbatches, config.microbatch_size)
    workload = trained_workload(workload, trainer)
    path = config.corrections
    fitted_for = FittedFor.of(workload, topology, network=str(config.network))
    corrections = (
        NO_CORRECTIONS
        if path is None
        else corrections_file.read_corrections(path, used_for=fitted_for)
    )
    asked = _Given(topology, workload, corrections, None)
    if config.planner != SEARCH_BOUND or config.microbatch_size is not None or trainer.is_ideal:
        return asked
    return asked._replace(workload=_find_workload(config, asked, trainer))


def _find_workload(config: Config, asked: _Given, trainer: Trainer) -> Workload:
    """The job in microbatches of the best plan of the trainer at base figures, see `decide`."""
    job = TrainingJob.of(config.workload(config.microbatches))
    request = search.PlanRequest(
        topology=asked.topology.at_start(),
        job=job,
        trainer=trainer,
        corrections=asked.corrections,
    )
    workload = bound_search.search_bound(request, is_best_alone=True).best.bound.workload
    count, size = workload.num_microbatches, workload.tokens_per_microbatch // job.sequence_length
    SPEAKER.note((f"planner {SEARCH_BOUND}: {count} microbatches of {size}, of its first plan",))
    return workload


def _moving(config: Config, topology: Topology) -> Topology:
    """The world under the law of its links and beside the loads that flags give."""
    if config.dynamics is not None:
        require_one_of(PROG, "dynamics", config.dynamics, DYNAMICS)
        topology = replace(topology, dynamics=DYNAMICS[config.dynamics])
    if config.loads is None:
        return topology
    return beside_jobs(topology, load_files.read_loads(config.loads, topology))


def _background(
    config: Config, topology: Topology
) -> tuple[BackgroundLoad | ReplayedLoad | None, ...]:
    """Other jobs in each domain."""
    if config.replay_loads is None:
        return (background_load(config),) * topology.num_domains
    if config.arrivals_per_s:
        raise UsageError(
            f"{PROG}: arrivals_per_s must be left out with replay_loads, "
            f"got {config.arrivals_per_s!r}"
        )
    return read_replayed_loads(config.replay_loads, topology)


def background_load(config: Config) -> BackgroundLoad | None:
    """Background jobs in each domain; None where none arrive."""
    if config.arrivals_per_s == 0:
        return None
    return BackgroundLoad(
        arrivals_per_s=config.arrivals_per_s,
        mean_duration_s=config.mean_duration_s,
        gpu_fraction=config.gpu_fraction,
        memory_fraction=config.memory_fraction,
        most_jobs=config.most_jobs,
    )


def _read_fixed_plan(config: Config) -> IterationScenario:
    """Read the plan as the command for one iteration does, which also checks its memory."""
    one_iteration = iteration_config.Config(
        **{name: getattr(config, name) for name in _OF_ONE_ITERATION}
    )
    with_gradients = trained_plan.with_trainer(one_iteration, frozenset())
    scenario = trained_plan.trained_plan(with_gradients).scenario
    check_memory(scenario.topology, scenario.workload, scenario.plan)
    return scenario


def _decider(config: Config, topology: Topology, given: _Given, settings: TrainingRun) -> Planner:
    for field in OF_A_PLACEMENT:
        if getattr(config, field) is not None:
            raise UsageError(f"{PROG}: {field} must be left out where planner is given")
    name = str(config.planner)
    require_one_of(PROG, "planner", name, DECIDERS)
    if config.is_two_levels and name in RULE_NAMES:
        raise UsageError(
            f"{PROG}: replan_threshold and replan_every must be left out with {name}, a rule of "
            "all epochs at once"
        )
    decided = Decided(
        topology=topology,
        workload=given.workload,
        schedule=config.schedule or DEFAULT_SCHEDULE,
        run=settings,
        horizon_epochs=config.horizon_epochs,
        corrections=given.corrections,
        trainer=trainer_named(config.trainer),
    )
    planner = planner_of(name, decided)
    if config.is_two_levels:
        planner = in_two_levels(planner, decided, config.replan_threshold, config.replan_every)
    sight = link_sight.LinkSight(
        delay_s=config.link_delay_s,
        in_use_alone=config.links_in_use,
        noise=config.link_noise,
        belief=config.link_belief,
        horizon_epochs=max(1, round(config.horizon_epochs)),
    )
    if sight.is_plain:
        return planner
    if name in RULE_NAMES:
        raise UsageError(
            f"{PROG}: flags of how links are seen must be left out with {name}, a rule of all "
            "epochs at once"
        )
    return link_sight.SeenLinks(
        planner=planner, sight=sight, base=topology, epoch_s=config.epoch_s, seed=config.seed
    )
