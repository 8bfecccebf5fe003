"""Loop of the stages of a training: logs, checkpoints, calibration, snapshots of weights."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.hi_ppo.policies import Policies
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from des.base.parallel_map import ParallelMap
from scenarios.frame.metrics_log import MetricsLog
from scenarios.frame.run_folder import RunFolder
from scenarios.train.east_west.config import HiPpoConfig
from scenarios.train.east_west.stages import TrainingStage, moves_stage, placement_stage
from scenarios.train.east_west.worlds import WorldsAround
from scenarios.train.hi_ppo_files import MOVES_PT, PLACEMENT_PT
from scenarios.train.training_calibration import TrainingCalibration
from scenarios.train.update_loop import Training, rows_cut, run_updates

WALL_COLUMNS = ("wall_s",)
"""Columns of the logs that measure this machine."""

CANDIDATES = "candidates"
"""Folder of weights to choose from, in a run folder."""

_LINES = 5  # of a stage, where no bar can move


@dataclass(frozen=True, kw_only=True)
class StagedTraining:
    """Stages of a training, with all that they share.

    Attributes
    ----------
    start
        First weights, if they are trained ones.
    meanwhile
        Begins other work while the moves are trained, which takes one process; gives what waits
        for it.
    """

    config: HiPpoConfig
    around: WorldsAround
    start: Policies | None
    folder: RunFolder
    calibration: TrainingCalibration
    at_work: ParallelMap
    console: Console
    meanwhile: Callable[[], AbstractContextManager[Callable[[], object]]]


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
    placement = placement_stage(
        run.config, run.around, None if start is None else start.placement, run.at_work
    )
    _restore(run, placement, states[PLACEMENT_PT])
    run.calibration.begin(placement)
    if not _train_stage(run, placement):
        return False
    moves = moves_stage(
        run.config,
        run.around,
        placement=placement.trainer.policy,
        start=None if start is None else start.moves,
        folder=run.folder.path,
        at_work=run.at_work,
    )
    with run.console.status("making episodes of the worlds"):
        _restore(run, moves, states[MOVES_PT])
    with run.meanwhile() as wait:
        is_complete = _train_stage(run, moves)
        if is_complete:
            wait()
    return is_complete


def snapshots(folder: RunFolder, stage: str) -> list[Path]:
    """List the weights that a stage has left, by update."""
    return sorted((folder.path / CANDIDATES).glob(f"{stage}-*.safetensors"))


def _state_in(path: Path) -> Mapping[str, Any] | None:
    if not path.exists():
        return None
    state = load_checkpoint(path)
    if "calibration" not in state:
        raise CheckpointError(
            f"checkpoint {path}: calibration must be there, got none, as in those of "
            "scenarios.east_west_train moves"
        )
    return state


def _restore(
    run: StagedTraining, stage: TrainingStage[Any], state: Mapping[str, Any] | None
) -> None:
    """Continue a stage under the factors in force."""
    stage.recalibrate(run.calibration.in_force)
    trainer = stage.trainer
    if state is not None:
        trainer.load_state(state, source=run.folder.path / stage.kind.checkpoint)


def _train_stage(run: StagedTraining, stage: TrainingStage[Any]) -> bool:
    """Train a stage to its end, or until Ctrl-C; returns whether it is complete."""
    kind, trainer = stage.kind, stage.trainer
    training = Training[dict[str, float]](
        name=kind.name,
        num_updates=trainer.config.num_updates,
        update=lambda: trainer.update,
        step=stage.step,
        row=lambda row, wall_s: {
            "step": trainer.update,
            "update": trainer.update,
            **row,
            "wall_s": wall_s,
        },
        tell=kind.tell,
        save=lambda: _save(run, stage),
        after=lambda: run.calibration.advance(stage),
        num_lines=_LINES,
    )
    with MetricsLog(
        csv_path=run.folder.path / kind.log,
        tensorboard_dir=run.folder.tensorboard / kind.name,
        learning_columns=kind.columns,
        wall_clock_columns=WALL_COLUMNS,
    ) as log:
        note = rows_cut(log, step=trainer.update, update=trainer.update)
        return run_updates(training, log, run.console, note=note).is_complete


def _save(run: StagedTraining, stage: TrainingStage[Any]) -> None:
    """Write the checkpoint, and after the last update the weights to choose from."""
    kind, trainer = stage.kind, stage.trainer
    if trainer.update == trainer.config.num_updates:
        folder = run.folder.path / CANDIDATES
        folder.mkdir(exist_ok=True)
        save_checkpoint(
            folder / f"{kind.name}-{trainer.update:05}.safetensors", kind.payload(trainer)
        )
    calibrated = {"calibration": run.calibration.state()}
    save_checkpoint(run.folder.path / kind.checkpoint, {**trainer.state(), **calibrated})
