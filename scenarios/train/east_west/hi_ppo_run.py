"""Run of the training of Hi-PPO on a named world: its folder, stages, weights and table."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from agents.ppo import devices
from calibration.loop import Timetable, default_interval_steps
from des.base.compiling_ahead import compiling_ahead
from des.base.console import FittedConsole
from des.base.parallel_map import ParallelMap
from des.base.speaking import SPEAKER
from des.job.models import layers_note
from scenarios.frame.outputs import OutputChoice
from scenarios.frame.run_folder import RunFolder
from scenarios.suites import SuiteWorld
from scenarios.train.calibration_subject import first_factors, subject_of
from scenarios.train.east_west.config import HiPpoConfig, list_recorded_settings
from scenarios.train.east_west.episodes import Case, episode_cases
from scenarios.train.east_west.outcome import RunOutcome, judge_and_report
from scenarios.train.east_west.training import StagedTraining, train_stages
from scenarios.train.east_west.weights import (
    first_policies,
    judge_meanwhile,
    keep_best,
    new_policies,
)
from scenarios.train.east_west.worlds import OWN, WorldsAround, draw_seeds, named_worlds
from scenarios.train.hi_ppo_files import PLACEMENT_PT
from scenarios.train.training_calibration import TrainingCalibration, training_calibration
from scenarios.train.workplace import workplace
from scenarios.train.world_runs import run_in_folder


def train_on_world(config: HiPpoConfig, given: frozenset[str]) -> int:
    """Train as the flags say, of which some were given, and return the exit code.

    Raises
    ------
    ValueError
        If a file, a flag or the run folder is wrong.
    """
    with workplace(config.workers, config.ray) as at_work:
        return run_in_folder(
            config, given, list_recorded_settings, lambda begun: partial(_prepare(begun), at_work)
        )


def _prepare(config: HiPpoConfig) -> Callable[[ParallelMap, RunFolder], bool]:
    """Read and check all that the flags name, before anything is written."""
    worlds = named_worlds(config)
    own = worlds[OWN]
    calibrating = partial(
        training_calibration,
        subject_of(config, topology=own.topology, workload=own.workload, schedule=own.schedule),
        timetable=_timetable(config),
        initial=first_factors(config, own.topology, own.workload),
        bound=config.calibration_bound,
    )
    return partial(_is_complete, config, worlds, calibrating)


def _is_complete(
    config: HiPpoConfig,
    worlds: Mapping[str, SuiteWorld],
    calibrating: Callable[..., AbstractContextManager[TrainingCalibration]],
    at_work: ParallelMap,
    folder: RunFolder,
) -> bool:
    """Train, choose, judge and report; returns whether the training is complete."""
    devices.use_torch_threads(1)
    console = FittedConsole()
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
        calibrating(folder, console, is_begun=(folder.path / PLACEMENT_PT).exists()) as calibrated,
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
                judge_meanwhile(start, folder, validation(), at_work)
                if config.workers > 1 and config.ray is None
                else nullcontext(lambda: None)
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


def _timetable(config: HiPpoConfig) -> Timetable:
    total = config.updates + config.move_updates
    return Timetable(
        total_steps=total,
        interval_steps=config.calibration_interval_updates or default_interval_steps(total),
    )
