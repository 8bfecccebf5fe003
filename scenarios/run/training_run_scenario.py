"""Scenario of a training run: its flags, and their world, model and planner."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agents.planners.names import PLANNER_NAMES, POLICY, RULE_NAMES, SCHEDULER_NAMES
from calibration.fit.fitted_for import FittedFor
from des import (
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
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy
from des.dynamics import DYNAMICS
from des.job.models import MODEL_HELP
from des.plan.replacement import RESTART_S
from des.training.background import BackgroundLoad, beside_jobs
from des.training.replayed_load import ReplayedLoad
from des.training.training_settings import Planner, TrainingRun
from des.world.domain_load import LOADS_HELP
from scenarios.frame.outputs import figures_option, parquet_option
from scenarios.frame.profile_flags import (
    EXTRAPOLATE_HELP,
    PROFILE_GPU_HELP,
    PROFILE_HELP,
    with_profiles,
)
from scenarios.iteration import iteration_scenario
from scenarios.run.deciders import Decided, planner_of
from scenarios.run.queue_loads import read_replayed_loads

if TYPE_CHECKING:
    from calibration.fit import corrections_file
    from des.world.files import load_files
else:
    load_files = lazy("des.world.files.load_files")
    corrections_file = lazy("calibration.fit.corrections_file")


PROG = "python -m scenarios.training_run"
OF_A_PLANNER = ("horizon_epochs", "restart_s", "pays_bytes", "replan_threshold")
"""Flags that say nothing where the placement stays."""
OF_OTHER_JOBS = ("mean_duration_s", "gpu_fraction", "memory_fraction", "most_jobs")
"""Flags without effect where no background jobs arrive."""
OF_A_PLACEMENT = ("placement", "parallelism", "replicas", "shares")
"""Flags that say what a planner decides, or does not know."""
OF_A_PROPOSAL = ("horizon_epochs", "schedule")
"""Flags for planners of one plan: rules and schedulers have a horizon and choose the schedule."""
DECIDERS = (*PLANNER_NAMES, *RULE_NAMES, *SCHEDULER_NAMES, POLICY)
"""Planners, rules, schedulers and the trained policies that may decide, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Settings of a training run; the fields are the flags."""

    network: str = option("east_central_west", "topology file, or a shipped world", is_file=True)
    dynamics: str | None = option(
        None, f"law of the links: one of {', '.join(DYNAMICS)}; none: as the world says"
    )
    model: str = option("llama2_70b", MODEL_HELP, is_file=True)
    num_layers: int | None = option(None, "number of layers", default_text="the model's")
    profile: tuple[str, ...] = option((), PROFILE_HELP)
    profile_gpu: str | None = option(None, PROFILE_GPU_HELP)
    extrapolate: bool = option(False, EXTRAPOLATE_HELP)
    placement: str | None = option(
        None,
        "domain, by number or name, times layers, such as 0*28,1*26,2*26; "
        "none: even parts over all domains in order",
    )
    parallelism: str | None = option(
        None,
        "tensor x data x pipeline, such as 2x4x1, for all domains or one for each, with commas; "
        "8x1x4v3 has 3 chunks a device in a loop, 8x1x4w2 has 2 there and back; "
        "none: the GPUs of a domain are one device",
    )
    replicas: str | None = option(
        None, "placements of further replicas in other domains, separated by semicolons"
    )
    shares: str | None = option(
        None, "microbatches of each replica, such as 20,12; none: as even as can be"
    )
    planner: str | None = option(
        None, f"decides every epoch, one of {', '.join(DECIDERS)}; none: the placement stays"
    )
    horizon_epochs: float = option(4.0, "epochs within which a move has to pay for itself")
    schedule: str = option(DEFAULT_SCHEDULE, f"one of {', '.join(SCHEDULES)}")
    microbatches: int = option(32, "microbatches of an iteration")
    microbatch_size: int = option(1, "sequences of a microbatch")
    sequence_length: int = option(4096, "tokens of a sequence")
    corrections: Path | None = option(
        None, "factors found by calibration, a JSON file", is_file=True
    )
    loads: str | None = option(
        None, f"{LOADS_HELP}; for the whole run, in which the queue has no effect", is_file=True
    )
    epochs: int = option(24, "epochs of the run")
    epoch_s: float = option(1200.0, "seconds of an epoch")
    seed: int = option(0, "seed of the links and the jobs")
    arrivals_per_s: float = option(0.0, "background jobs that arrive in each domain; 0: none")
    mean_duration_s: float = option(1800.0, "mean time for which one of them runs")
    gpu_fraction: float = option(0.125, "share of a domain's GPUs that it takes")
    memory_fraction: float = option(0.05, "share of a domain's memory that it takes")
    replay_loads: Path | None = option(
        None,
        "loads.csv of a queue or run, in place of arrivals",
        is_file=True,
    )
    most_jobs: int = option(4, "background jobs at a time in a domain, at most; the others wait")
    replan_threshold: float | None = option(
        None,
        "ask the planner only where a link or a domain in use has changed by more than this share "
        "since it was asked, such as 0.2; none: in every epoch",
    )
    restart_s: float = option(RESTART_S, "seconds that any change of plan takes")
    pays_bytes: bool = option(True, "whether a change of plan has to move the model state")
    out: Path = option(Path("runs/training_run"), "folder for the files")
    figures: tuple[str, ...] = figures_option()
    parquet: bool = parquet_option()


@dataclass(frozen=True, kw_only=True)
class TrainingRunScenario:
    """Objects named by the files and names of a `Config`; ``planner`` may be a plan that stays."""

    topology: Topology
    workload: Workload
    planner: Plan | Planner
    settings: TrainingRun
    corrections: Corrections


def idle_fields(config: Config) -> tuple[str, ...]:
    """Names of the fields that the others make idle."""
    of_a_planner: tuple[str, ...] = OF_A_PLANNER if config.planner is None else ()
    if config.planner in DECIDERS and config.planner not in PLANNER_NAMES:
        of_a_planner = OF_A_PROPOSAL
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
            needed = "arrivals_per_s above 0"
            if name in (*OF_A_PLANNER, *OF_A_PROPOSAL):
                needed = "a planner" if config.planner is None else "a planner of one plan"
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
    topology = with_profiles(
        read_topology(config.network),
        config.profile,
        gpu=config.profile_gpu,
        extrapolates=config.extrapolate,
    )
    if config.dynamics is not None:
        if config.dynamics not in DYNAMICS:
            allowed = ", ".join(DYNAMICS)
            raise UsageError(f"{PROG}: dynamics must be one of {allowed}; got {config.dynamics!r}")
        topology = replace(topology, dynamics=DYNAMICS[config.dynamics])
    if config.loads is not None:
        topology = beside_jobs(topology, load_files.read_loads(config.loads, topology))
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
        background=_background(config, topology),
        restart_s=config.restart_s,
        pays_bytes=config.pays_bytes,
    )
    return TrainingRunScenario(
        topology=topology,
        workload=workload,
        planner=_fixed_plan(config)
        if config.planner is None
        else _decider(config, topology, workload, settings, corrections),
        settings=settings,
        corrections=corrections,
    )


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


def _fixed_plan(config: Config) -> Plan:
    """Read the plan as the command for one iteration does, which also checks its memory."""
    one_iteration = iteration_scenario.Config(
        network=config.network,
        model=config.model,
        num_layers=config.num_layers,
        profile=config.profile,
        profile_gpu=config.profile_gpu,
        extrapolate=config.extrapolate,
        placement=config.placement,
        schedule=config.schedule,
        parallelism=config.parallelism,
        replicas=config.replicas,
        shares=config.shares,
        microbatches=config.microbatches,
        microbatch_size=config.microbatch_size,
        sequence_length=config.sequence_length,
    )
    return iteration_scenario.load_iteration(one_iteration).plan


def _decider(
    config: Config,
    topology: Topology,
    workload: Workload,
    settings: TrainingRun,
    corrections: Corrections,
) -> Planner:
    for field in OF_A_PLACEMENT:
        if getattr(config, field) is not None:
            raise UsageError(f"{PROG}: {field} must be left out where planner is given")
    name = str(config.planner)
    if name not in DECIDERS:
        raise UsageError(f"{PROG}: planner must be one of {', '.join(DECIDERS)}; got {name!r}")
    if config.replan_threshold is not None and name in RULE_NAMES:
        raise UsageError(
            f"{PROG}: replan_threshold must be left out with {name}, a rule of all epochs at once"
        )
    decided = Decided(
        topology=topology,
        workload=workload,
        schedule=config.schedule,
        run=settings,
        horizon_epochs=config.horizon_epochs,
        corrections=corrections,
    )
    return planner_of(name, decided, config.replan_threshold)
