"""Run of the training of Hi-PPO on a named world: its folder, stages, weights and table."""

import shlex
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

import calibration
from agents.ppo import devices
from calibration import FittedFor
from calibration.loop import LoggedSubject, Subject, Timetable, default_interval_steps
from des import NO_CORRECTIONS, Corrections
from des.base.compiling_ahead import compiling_ahead
from des.base.console import FittedConsole
from des.base.interruption import INTERRUPTED
from des.base.parallel_map import ParallelMap
from des.base.speaking import SPEAKER
from des.job.models import layers_note
from des.worlds.reading import topology_path
from scenarios.frame.outputs import OutputChoice
from scenarios.frame.run_folder import RunFolder
from scenarios.suites import SuiteWorld
from scenarios.train.begun_config import begun_config
from scenarios.train.calibration_subject import subject_of
from scenarios.train.east_west.config import HiPpoConfig, recorded_settings
from scenarios.train.east_west.episodes import Case, episode_cases
from scenarios.train.east_west.outcome import RunOutcome, judge_and_report
from scenarios.train.east_west.training import StagedTraining, train_stages
from scenarios.train.east_west.weights import (
    first_policies,
    judged_meanwhile,
    keep_best,
    new_policies,
)
from scenarios.train.east_west.worlds import OWN, WorldsAround, draw_seeds, named_worlds
from scenarios.train.hi_ppo_files import PLACEMENT_PT
from scenarios.train.numbered_runs import newest_run, next_run
from scenarios.train.training_calibration import training_calibration
from scenarios.train.training_config import PROG
from scenarios.train.workplace import workplace


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    """Worlds, first factors and calibration of a training."""

    config: HiPpoConfig
    worlds: Mapping[str, SuiteWorld]
    initial: Corrections
    subject: Subject | LoggedSubject | str


@dataclass(frozen=True, kw_only=True)
class _Run:
    """A training that has begun, with its folder and console."""

    prepared: _Prepared
    folder: RunFolder
    console: Console


def train_on_world(config: HiPpoConfig, given: frozenset[str]) -> int:
    """Train as the flags say, of which some were given, and return the exit code.

    Raises
    ------
    ValueError
        If a file, a flag or the run folder is wrong.
    """
    console = FittedConsole()
    with workplace(config.workers, config.ray) as at_work:
        if config.resume:
            with RunFolder.opened(config.out or newest_run(PROG)) as folder:
                config = _begun(config, given, folder)
                return _trained(_prepared(config), folder, console, at_work)
        prepared = _prepared(config)
        with RunFolder.created(config.out or next_run()) as folder:
            folder.write_config(recorded_settings(config), _inputs(config))
            return _trained(prepared, folder, console, at_work)


def _prepared(config: HiPpoConfig) -> _Prepared:
    """Read and check all that the flags name, before anything is written."""
    worlds = named_worlds(config)
    return _Prepared(
        config=config,
        worlds=worlds,
        initial=_initial(config, worlds),
        subject=_subject_of(config, worlds),
    )


def _trained(prepared: _Prepared, folder: RunFolder, console: Console, at_work: ParallelMap) -> int:
    devices.use_torch_threads(1)
    run = _Run(prepared=prepared, folder=folder, console=console)
    try:
        if _is_complete(run, at_work):
            return 0
    except KeyboardInterrupt:
        pass  # before, between or after the updates: the last checkpoint is whole
    path = shlex.quote(str(folder.path))
    line = f"Interrupted. Continue with: {PROG} --resume --out {path}"
    console.print(line, soft_wrap=True, markup=False)
    return INTERRUPTED


def _is_complete(run: _Run, at_work: ParallelMap) -> bool:
    """Train, choose, judge and report; returns whether the training is complete."""
    prepared, folder, console = run.prepared, run.folder, run.console
    config, worlds = prepared.config, prepared.worlds
    around = WorldsAround(named=tuple(worlds.values()))
    first = first_policies(config, around)
    start = first or new_policies(config, around)

    def validation() -> list[Case]:
        seeds = draw_seeds("validation", config.seed, config.validation_draws)
        return episode_cases(worlds, seeds, calibrated.in_force, config.preference)

    with (
        compiling_ahead(
            "scenarios.train.east_west.plans_ahead", {"agents.judge.proposals": "explore"}
        ),
        training_calibration(
            prepared.subject,
            folder,
            console,
            timetable=_timetable(config),
            initial=prepared.initial,
            bound=config.calibration_bound,
            is_begun=(folder.path / PLACEMENT_PT).exists(),
        ) as calibrated,
    ):
        stages = StagedTraining(
            config=config,
            around=around,
            start=first,
            folder=folder,
            calibration=calibrated,
            at_work=at_work,
            console=console,
            meanwhile=lambda: (
                judged_meanwhile(start, folder, validation(), at_work)
                if config.workers > 1 and config.ray is None
                else nullcontext(_nothing)
            ),
        )
        if not train_stages(stages):
            return False
    calibrated.print_summary()
    SPEAKER.note(layers_note(worlds[OWN].workload))
    with console.status("choosing the weights on validation episodes"):
        kept = keep_best(start, folder, validation(), at_work, is_trained=first is not None)
    seeds = draw_seeds("evaluation", config.evaluation_seed, config.evaluation_draws)
    outcome = RunOutcome(
        config=config,
        cases=tuple(episode_cases(worlds, seeds, calibrated.in_force, config.preference)),
        kept=kept,
        fidelity=calibrated.lines(),
        choice=OutputChoice(figures=config.figures, parquet=config.parquet),
    )
    judge_and_report(outcome, folder, at_work, console)
    return True


def _nothing() -> None:
    """Wait for nothing."""


def _timetable(config: HiPpoConfig) -> Timetable:
    total = config.updates + config.move_updates
    return Timetable(
        total_steps=total,
        interval_steps=config.calibration_interval_updates or default_interval_steps(total),
    )


def _subject_of(
    config: HiPpoConfig, worlds: Mapping[str, SuiteWorld]
) -> Subject | LoggedSubject | str:
    world = worlds[OWN]
    return subject_of(
        config, topology=world.topology, workload=world.workload, schedule=world.schedule
    )


def _initial(config: HiPpoConfig, worlds: Mapping[str, SuiteWorld]) -> Corrections:
    if config.corrections is None:
        return NO_CORRECTIONS
    world = worlds[OWN]
    fitted_for = FittedFor.of(world.workload, world.topology, network=config.network)
    return calibration.read_corrections(config.corrections, used_for=fitted_for)


def _inputs(config: HiPpoConfig) -> dict[str, Path]:
    """Input files of which the run folder keeps copies: it can be resumed and repeated alone."""
    inputs = {"network": topology_path(config.network)}
    if config.loads is not None and Path(config.loads).is_file():
        inputs["loads"] = Path(config.loads)
    return inputs if config.corrections is None else {**inputs, "corrections": config.corrections}


def _begun(config: HiPpoConfig, given: frozenset[str], folder: RunFolder) -> HiPpoConfig:
    """Configuration that the run was begun with, with the loads that its folder has a copy of."""
    old = begun_config(config, given, folder, recorded_settings)
    is_copied = old.loads is not None and (folder.path / old.loads).is_file()
    return replace(old, loads=str(folder.path / str(old.loads))) if is_copied else old
