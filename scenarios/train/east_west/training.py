"""Loop of the stages of a training: logs, checkpoints, calibration, snapshots of weights."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agents.hi_ppo.policies import Policies
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from des.base.parallel_map import ParallelMap
from scenarios.frame.metrics_log import MetricsLog
from scenarios.frame.run_folder import RunFolder
from scenarios.train.east_west.config import HiPpoConfig
from scenarios.train.east_west.stages import (
    MoveTraining,
    MoveWorkplace,
    PlacementStage,
    TrainingStage,
)
from scenarios.train.east_west.worlds import WorldsAround
from scenarios.train.hi_ppo_files import MOVES_PT, PLACEMENT_PT
from scenarios.train.interrupts import interrupts
from scenarios.train.training_calibration import TrainingCalibration

WALL_COLUMNS = ("wall_s",)
"""Columns of the logs that measure this machine."""

CANDIDATES = "candidates"
"""Folder of weights to choose from, in a run folder."""

_UPDATES_PER_CHECKPOINT = 10
_LINES = 5  # of a stage, where no bar can move


@dataclass(frozen=True, kw_only=True)
class StagedTraining:
    """Stages of a training, with all that they share.

    Attributes
    ----------
    start
        First weights, if they are trained ones.
    """

    config: HiPpoConfig
    around: WorldsAround
    start: Policies | None
    folder: RunFolder
    calibration: TrainingCalibration
    at_work: ParallelMap
    console: Console


def train_stages(run: StagedTraining) -> bool:
    """Train both stages from where the folder has them; returns whether they are complete.

    The weights that each stage ends with are left in `CANDIDATES`.

    Raises
    ------
    CheckpointError
        If a checkpoint of the folder is damaged or of another training.
    """
    states = {name: _state_in(run.folder.path / name) for name in (PLACEMENT_PT, MOVES_PT)}
    last = MOVES_PT if states[MOVES_PT] is not None else PLACEMENT_PT
    newest = states[last]
    if newest is not None:
        found = newest.get("calibration")
        run.calibration.load_state(found, source=run.folder.path / last)
    start = run.start
    placement = PlacementStage(
        run.config, run.around, None if start is None else start.placement, run.at_work
    )
    _restore(run, placement, states[PLACEMENT_PT])
    run.calibration.begin(placement)
    if not _train_stage(run, placement):
        return False
    moves = MoveTraining(
        run.config,
        run.around,
        placement=placement.trainer.policy,
        start=None if start is None else start.moves,
        place=MoveWorkplace(folder=run.folder.path, at_work=run.at_work),
    )
    with run.console.status("making episodes of the worlds"):
        _restore(run, moves, states[MOVES_PT])
    return _train_stage(run, moves)


def snapshots(folder: RunFolder, stage: str) -> list[Path]:
    """List the weights that a stage has left, by update."""
    return sorted((folder.path / CANDIDATES).glob(f"{stage}-*.pt"))


def _state_in(path: Path) -> Mapping[str, Any] | None:
    if not path.exists():
        return None
    state = load_checkpoint(path)
    if "calibration" not in state:
        raise CheckpointError(
            f"checkpoint {path}: calibration must be there, got none, as in those of "
            "scenarios.train_hi_ppo"
        )
    return state


def _restore(run: StagedTraining, stage: TrainingStage, state: Mapping[str, Any] | None) -> None:
    """Continue a stage under the factors in force."""
    stage.recalibrate(run.calibration.in_force)
    if state is not None:
        stage.load_state(state, source=run.folder.path / stage.checkpoint)


def _train_stage(run: StagedTraining, stage: TrainingStage) -> bool:
    """Train a stage to its end, or until Ctrl-C; returns whether it is complete."""
    console, total = run.console, stage.num_updates
    with (
        MetricsLog(
            csv_path=run.folder.path / stage.log,
            tensorboard_dir=run.folder.tensorboard / stage.name,
            learning_columns=stage.columns,
            wall_clock_columns=WALL_COLUMNS,
        ) as log,
        _progress(console) as progress,
        interrupts(console) as interrupted,
    ):
        if num_cut := log.resume_from(stage.update):
            console.print(
                f"{log.csv_path}: {num_cut} rows after the checkpoint, which is of update "
                f"{stage.update}, are cut; their updates are made again",
                soft_wrap=True,
                markup=False,
            )
        task = progress.add_task(stage.name, total=total, completed=stage.update, figures="")
        while stage.update < total and not interrupted.is_set:
            begin_s = time.perf_counter()
            row = stage.advance()
            wall_s = time.perf_counter() - begin_s
            log.append({"step": stage.update, "update": stage.update, **row, "wall_s": wall_s})
            progress.update(task, completed=stage.update, figures=stage.told(row))
            if not console.is_terminal and _is_told(stage.update, total):
                line = f"{stage.name}: update {stage.update} of {total}: {stage.told(row)}"
                console.print(line, soft_wrap=True)
            run.calibration.advance(stage)
            _keep(run, stage, log, is_stopped=interrupted.is_set)
    return stage.update == total and not interrupted.is_set


def _keep(run: StagedTraining, stage: TrainingStage, log: MetricsLog, *, is_stopped: bool) -> None:
    """Write the snapshots and the checkpoint that are due after an update."""
    is_last = stage.update == stage.num_updates
    if is_last:
        folder = run.folder.path / CANDIDATES
        folder.mkdir(exist_ok=True)
        save_checkpoint(folder / f"{stage.name}-{stage.update:05}.pt", stage.payload())
    if is_last or is_stopped or stage.update % _UPDATES_PER_CHECKPOINT == 0:
        log.sync()
        calibrated = {"calibration": run.calibration.state()}
        save_checkpoint(run.folder.path / stage.checkpoint, {**stage.state(), **calibrated})


def _is_told(update: int, total: int) -> bool:
    return update * _LINES // total > (update - 1) * _LINES // total


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}  ETA"),
        TimeRemainingColumn(compact=True),
        console=console,
        disable=not console.is_terminal,
    )
