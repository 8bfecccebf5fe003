"""What a training run is about: flags, and the world, model and planner that they stand for."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibration.fit.fitted_for import FittedFor
from des import (
    ALIASES,
    ARCHITECTURES,
    DEFAULT_SCHEDULE,
    NO_CORRECTIONS,
    SCHEDULES,
    Corrections,
    Plan,
    Topology,
    Workload,
    build_workload,
    read_topology,
)
from des.base.command import UsageError
from des.base.flags import option
from des.base.lazy import lazy
from des.dynamics import DYNAMICS
from des.plan.replacement import RESTART_S
from des.training.background import BackgroundLoad
from des.training.training_settings import Planner, TrainingRun
from scenarios.iteration import iteration_scenario

if TYPE_CHECKING:
    from agents.planners import table
    from agents.replanning import training_planner
    from calibration.fit import corrections_file
else:
    table = lazy("agents.planners.table")
    training_planner = lazy("agents.replanning.training_planner")
    corrections_file = lazy("calibration.fit.corrections_file")


PROG = "python -m scenarios.training_run"
PLANNER_NAMES = ("exact", "uniform", "proportional", "round_robin", "random", "single_domain")
"""Keys of `agents.planners.table.PLANNERS`, which is slow to load."""
OF_A_PLANNER = ("horizon_epochs", "restart_s", "pays_bytes")
"""Flags that say nothing where the placement stays."""
OF_OTHER_JOBS = ("mean_duration_s", "gpu_fraction", "memory_fraction", "most_jobs")
"""Flags that say nothing where no jobs of others come."""
OF_A_PLACEMENT = ("placement", "parallelism", "replicas")
"""Flags that say what a planner decides, or does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What is simulated; the fields are the flags."""

    network: str = option("east_central_west", "topology file, or a shipped world", is_file=True)
    dynamics: str | None = option(
        None, f"how links move: one of {', '.join(DYNAMICS)}; none: as the world says"
    )
    model: str = option("llama2_70b", f"one of {', '.join([*ARCHITECTURES, *ALIASES])}")
    num_layers: int | None = option(None, "divide the model into that many equal layers")
    placement: str | None = option(
        None,
        "domain, by number or name, times layers, such as 0*28,1*26,2*26; "
        "none: even parts over all domains in order",
    )
    parallelism: str | None = option(
        None,
        "tensor x data x pipeline, such as 2x4x1, for all domains or one for each, with commas; "
        "none: the GPUs of a domain are one device",
    )
    replicas: str | None = option(
        None, "placements of further replicas in other domains, separated by semicolons"
    )
    planner: str | None = option(
        None, f"asked every epoch, one of {', '.join(PLANNER_NAMES)}; none: the placement stays"
    )
    horizon_epochs: float = option(4.0, "epochs within which a move has to pay for itself")
    schedule: str = option(DEFAULT_SCHEDULE, f"one of {', '.join(SCHEDULES)}")
    microbatches: int = option(32, "microbatches of an iteration")
    microbatch_size: int = option(1, "sequences of a microbatch")
    sequence_length: int = option(4096, "tokens of a sequence")
    corrections: Path | None = option(
        None, "factors found by calibration, a JSON file", is_file=True
    )
    epochs: int = option(24, "epochs of the run")
    epoch_s: float = option(1200.0, "seconds of an epoch")
    seed: int = option(0, "seed of the links and the jobs")
    arrivals_per_s: float = option(0.0, "jobs of others that come to each domain; 0: none come")
    mean_duration_s: float = option(1800.0, "mean time for which one of them runs")
    gpu_fraction: float = option(0.125, "share of a domain's GPUs that it takes")
    memory_fraction: float = option(0.05, "share of a domain's memory that it takes")
    most_jobs: int = option(4, "of them that may run in a domain at a time; the others wait")
    restart_s: float = option(RESTART_S, "seconds that any change of plan takes")
    pays_bytes: bool = option(True, "whether a change of plan has to move the model state")
    out: Path = option(Path("runs/training_run"), "folder for the files")


@dataclass(frozen=True, kw_only=True)
class TrainingRunScenario:
    """What the files and names of a `Config` stand for; ``planner`` may be a plan that stays."""

    topology: Topology
    workload: Workload
    planner: Plan | Planner
    settings: TrainingRun
    corrections: Corrections


def idle_fields(config: Config) -> tuple[str, ...]:
    """Names of the fields that the others make idle."""
    of_a_planner = OF_A_PLANNER if config.planner is None else ()
    return of_a_planner + (OF_OTHER_JOBS if config.arrivals_per_s == 0 else ())


def check_given(config: Config, given: Collection[str]) -> None:
    """Check that no flag was given that has no effect.

    Raises
    ------
    UsageError
        If there is one.
    """
    for name in idle_fields(config):
        if name in given:
            needed = "a planner" if name in OF_A_PLANNER else "arrivals_per_s above 0"
            raise UsageError(
                f"{PROG}: {name} must be left out without {needed}, got {getattr(config, name)!r}"
            )


def load_training_run(config: Config) -> TrainingRunScenario:
    """Read the files and put together what the flags describe.

    Raises
    ------
    ValueError
        If a file, a name or a number is wrong, or a plan does not fit into the memory.
    """
    topology = read_topology(config.network)
    if config.dynamics is not None:
        if config.dynamics not in DYNAMICS:
            allowed = ", ".join(DYNAMICS)
            raise UsageError(f"{PROG}: dynamics must be one of {allowed}; got {config.dynamics!r}")
        topology = replace(topology, dynamics=DYNAMICS[config.dynamics])
    workload = build_workload(
        config.model,
        num_layers=config.num_layers,
        num_microbatches=config.microbatches,
        microbatch_size=config.microbatch_size,
        sequence_length=config.sequence_length,
    )
    path = config.corrections
    fitted_for = FittedFor.of(workload, topology, network=str(config.network))
    corrections = (
        NO_CORRECTIONS
        if path is None
        else corrections_file.read_corrections(path, used_for=fitted_for)
    )
    settings = TrainingRun(
        num_epochs=config.epochs,
        epoch_s=config.epoch_s,
        seed=config.seed,
        background=(background_load(config),) * topology.num_domains,
        restart_s=config.restart_s,
        pays_bytes=config.pays_bytes,
    )
    return TrainingRunScenario(
        topology=topology,
        workload=workload,
        planner=_fixed_plan(config)
        if config.planner is None
        else _replanner(config, workload, settings, corrections),
        settings=settings,
        corrections=corrections,
    )


def background_load(config: Config) -> BackgroundLoad | None:
    """Jobs of others in each domain; None where none come."""
    if config.arrivals_per_s == 0:
        return None
    return BackgroundLoad(
        arrivals_per_s=config.arrivals_per_s,
        mean_duration_s=config.mean_duration_s,
        gpu_fraction=config.gpu_fraction,
        memory_fraction=config.memory_fraction,
        most_jobs=config.most_jobs,
    )


def _fixed_plan(config: Config) -> Plan:
    """Read the plan as the command for one iteration does, which also checks its memory."""
    one_iteration = iteration_scenario.Config(
        network=config.network,
        model=config.model,
        num_layers=config.num_layers,
        placement=config.placement,
        schedule=config.schedule,
        parallelism=config.parallelism,
        replicas=config.replicas,
        microbatches=config.microbatches,
        microbatch_size=config.microbatch_size,
        sequence_length=config.sequence_length,
    )
    return iteration_scenario.load_iteration(one_iteration).plan


def _replanner(
    config: Config, workload: Workload, settings: TrainingRun, corrections: Corrections
) -> Planner:
    for name in OF_A_PLACEMENT:
        if getattr(config, name) is not None:
            raise UsageError(f"{PROG}: {name} must be left out where planner is given")
    if config.planner not in PLANNER_NAMES:
        allowed = ", ".join(PLANNER_NAMES)
        raise UsageError(f"{PROG}: planner must be one of {allowed}; got {config.planner!r}")
    replanning = training_planner.Replanning(
        planner=table.PLANNERS[config.planner],
        workload=workload,
        schedule=config.schedule,
        run=settings,
        horizon_epochs=config.horizon_epochs,
        corrections=corrections,
    )
    return replanning.decide(np.random.default_rng(config.seed))
