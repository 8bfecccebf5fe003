"""The training loop of a scenario: progress, metrics, checkpoints, and a clean stop on Ctrl-C."""

import math
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from agents.flat.recalibration import corrections_of
from agents.flat.task import PlacementTask
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from agents.ppo.trainer import PPOTrainer, UpdateReport
from des import Corrections
from scenarios.frame.metrics_log import MetricsLog
from scenarios.frame.run_folder import RunFolder
from scenarios.train.flat_calibration import FlatTraining
from scenarios.train.interrupts import interrupts
from scenarios.train.training_calibration import TrainingCalibration

UPDATES_PER_CHECKPOINT = 10
LINES_WITHOUT_TERMINAL = 10
"""Number of progress lines of a training without a terminal, where no bar can move."""


def restore(
    trainer: PPOTrainer, calibration: TrainingCalibration, folder: RunFolder, fingerprint: str
) -> None:
    """Continue a trainer and its calibration where the last checkpoint of the run left them.

    A run that was stopped before its first checkpoint starts again. ``fingerprint`` is that of the
    task, see `agents.flat.task.PlacementTask.fingerprint`.

    Raises
    ------
    CheckpointError
        If the checkpoint is damaged, belongs to another run or task, or its environments simulate
        with other correction factors than those in force.
    """
    path = folder.checkpoint_pt
    if not path.exists():
        return
    state = load_checkpoint(path)
    if state.get("task") != fingerprint:
        raise CheckpointError(
            f"checkpoint {path}: task must be that of this run ({fingerprint[:12]}), "
            f"got another one ({str(state.get('task'))[:12]})"
        )
    try:
        trainer.load_state(state)
    except CheckpointError as error:
        raise CheckpointError(f"checkpoint {path}: {error}") from error
    of_calibration = state.get("calibration")
    if of_calibration is not None and not isinstance(of_calibration, Mapping):
        raise CheckpointError(
            f"checkpoint {path}: calibration must be a dict or None, "
            f"got {type(of_calibration).__name__}"
        )
    calibration.load_state(of_calibration, source=path)
    _require_factors(trainer, calibration.in_force, path)


def _require_factors(trainer: PPOTrainer, in_force: Corrections, path: Path) -> None:
    """Refuse a checkpoint whose environments simulate with other factors than its calibration."""
    try:
        found = corrections_of(trainer.rollouts)
    except ValueError as error:
        raise CheckpointError(f"checkpoint {path}: {error}") from error
    if found != in_force:
        raise CheckpointError(
            f"checkpoint {path}: corrections of the environments must be those in force, "
            f"{in_force}; got {found}"
        )


def train(
    task: PlacementTask,
    trainer: PPOTrainer,
    calibration: TrainingCalibration,
    folder: RunFolder,
    console: Console,
) -> bool:
    """Train, calibrated, until all steps are done or the user presses Ctrl-C.

    Whenever this returns, metrics and checkpoint agree and `restore` continues from them.

    Returns
    -------
    bool
        Whether the training is complete and was not stopped.
    """
    calibrated, fingerprint = FlatTraining(task=task, trainer=trainer), task.fingerprint()
    with (
        MetricsLog(csv_path=folder.metrics_csv, tensorboard_dir=folder.tensorboard) as log,
        _Display(trainer, console) as display,
        interrupts(console) as interrupted,
    ):
        num_cut = log.resume_from(trainer.step_count)
        if num_cut:
            console.print(
                f"{log.csv_path}: {num_cut} rows after the checkpoint, which is of update "
                f"{trainer.update_count}, are cut; their updates are made again",
                soft_wrap=True,
                markup=False,
            )
        while not (trainer.finished or interrupted.is_set):
            started_s = time.perf_counter()
            report = trainer.update()
            wall_s = time.perf_counter() - started_s
            log.append(_row(report, wall_s, report.rollout_steps / wall_s))
            display.show(report)
            calibration.advance(calibrated)
            due = trainer.update_count % UPDATES_PER_CHECKPOINT == 0
            if due or trainer.finished or interrupted.is_set:
                of_run = {"task": fingerprint, "calibration": calibration.state()}
                log.sync()
                save_checkpoint(folder.checkpoint_pt, {**trainer.state(), **of_run})
    return trainer.finished and not interrupted.is_set


def _row(report: UpdateReport, wall_s: float, steps_per_s: float) -> dict[str, float]:
    return {
        "step": report.step_count,
        "update": report.update_index,
        "mean_reward": report.mean_reward,
        "mean_iteration_time_s": report.metrics["iteration_time_s"],
        "mean_utilisation": report.metrics["utilisation"],
        "mean_communication_cost_bytes": report.metrics["communication_cost_bytes"],
        "policy_loss": report.policy_loss,
        "value_loss": report.value_loss,
        "entropy": report.entropy,
        "approximate_kl": report.approximate_kl,
        "clip_fraction": report.clip_fraction,
        "explained_variance": report.explained_variance,
        "learning_rate": report.learning_rate,
        "wall_s": wall_s,
        "steps_per_s": steps_per_s,
    }


class _Display:
    """A progress bar in a terminal, ten lines elsewhere."""

    def __init__(self, trainer: PPOTrainer, console: Console) -> None:
        self._trainer = trainer
        self._console = console
        self._first_step = trainer.step_count
        self._started_s = time.perf_counter()
        self._progress = Progress(
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}  ETA"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not console.is_terminal,
        )
        self._task: TaskID = self._progress.add_task(
            "training", total=trainer.total_steps, completed=trainer.step_count, figures=""
        )

    def __enter__(self) -> "_Display":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, report: UpdateReport) -> None:
        """Show the figures of one update."""
        elapsed_s = time.perf_counter() - self._started_s
        rate = (report.step_count - self._first_step) / elapsed_s
        figures = (
            f"{rate:,.0f}/s  reward {report.mean_reward:+.3f}  "
            f"iteration {report.metrics['iteration_time_s']:.1f} s"
        )
        total = self._trainer.total_steps
        completed = min(report.step_count, total)
        self._progress.update(self._task, completed=completed, figures=figures)
        if not self._console.is_terminal:
            before = completed - report.rollout_steps
            tenth = total / LINES_WITHOUT_TERMINAL
            if math.floor(completed / tenth) > math.floor(max(0, before) / tenth):
                eta_s = (total - completed) / rate
                self._console.print(
                    f"training {completed:,}/{total:,} steps  {figures}  ETA {eta_s:.0f} s",
                    soft_wrap=True,
                )
