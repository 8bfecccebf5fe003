"""Training of the flat policy: its log, its checkpoint, and its calibrated steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from agents.flat.measured_epoch import MEASURED_BYTES
from agents.flat.policy_planner import placements_of
from agents.flat.recalibration import corrections_of, recalibrate
from agents.flat.task import PlacementTask
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from agents.ppo.trainer import PPOTrainer, UpdateReport
from calibration.loop import Choices, LoggedSubject, Subject, Timetable, default_interval_steps
from des import Corrections
from des.base.checks import prefixed_errors
from scenarios.frame.metrics_log import MetricsLog
from scenarios.frame.run_folder import RunFolder
from scenarios.train.calibration_subject import subject_of
from scenarios.train.ppo_training import num_updates
from scenarios.train.training_calibration import TrainingCalibration
from scenarios.train.training_config import Config
from scenarios.train.update_loop import Training, rows_cut, run_updates

MOST_CHOICES = 256
"""Last decisions that represent the policy to a calibration."""


@dataclass(frozen=True, kw_only=True)
class FlatTraining:
    """A flat training, as its calibration follows it."""

    task: PlacementTask
    trainer: PPOTrainer

    @property
    def step_count(self) -> int:
        """Decisions made."""
        return self.trainer.step_count

    def choices(self) -> Choices:
        """Placements of the last decisions."""
        return placements_of(self.task, self.trainer.recent_actions(MOST_CHOICES))

    def recalibrate(self, corrections: Corrections) -> None:
        """Let all environments simulate with other factors."""
        recalibrate(self.trainer.rollouts, corrections)


def flat_timetable(config: Config) -> Timetable:
    """Return the steps at which a flat training is calibrated."""
    return Timetable(
        total_steps=config.steps,
        interval_steps=config.calibration_interval_steps or default_interval_steps(config.steps),
        steps_per_update=config.num_envs * config.steps_per_rollout,
    )


def flat_subject(config: Config, task: PlacementTask) -> Subject | LoggedSubject | str:
    """Say what is calibrated of a task, or why nothing is; errors are those of `subject_of`."""
    if task.backend is not None:
        return f"as {config.backend} measures the iterations"
    world = task.world.world(0)
    if config.calibration == "ns3" and world.transport.packets.connections == "fresh":
        raise ValueError(
            "calibration ns3 of --policy flat: connections of transport.packets must be reused, as "
            "environments know no law of the transport; got fresh"
        )
    return subject_of(config, topology=world, workload=task.workload, schedule=task.schedule)


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
    with prefixed_errors(f"checkpoint {path}: ", CheckpointError):
        found = corrections_of(trainer.rollouts)
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

    def save() -> None:
        of_run = {"task": fingerprint, "calibration": calibration.state()}
        save_checkpoint(folder.checkpoint_pt, {**trainer.state(), **of_run})

    training = Training(
        name="training",
        num_updates=num_updates(trainer),
        update=lambda: trainer.update_count,
        step=trainer.update,
        row=_row,
        tell=lambda report: (
            f"{min(report.step_count, trainer.total_steps):,}/{trainer.total_steps:,} steps, "
            f"reward {report.mean_reward:+.3f}, "
            f"iteration {report.metrics['iteration_time_s']:.1f} s"
        ),
        save=save,
        after=lambda: calibration.advance(calibrated),
    )
    with MetricsLog(csv_path=folder.metrics_csv, tensorboard_dir=folder.tensorboard) as log:
        note = rows_cut(log, step=trainer.step_count, update=trainer.update_count)
        return run_updates(training, log, console, note=note).is_complete


def _row(report: UpdateReport, wall_s: float) -> dict[str, float]:
    cost = "communication_cost_bytes"
    return {
        "step": report.step_count,
        "update": report.update_index,
        "mean_reward": report.mean_reward,
        "mean_iteration_time_s": report.metrics["iteration_time_s"],
        "mean_utilisation": report.metrics["utilisation"],
        f"mean_{cost}": report.metrics[cost if cost in report.metrics else MEASURED_BYTES],
        "policy_loss": report.policy_loss,
        "value_loss": report.value_loss,
        "entropy": report.entropy,
        "approximate_kl": report.approximate_kl,
        "clip_fraction": report.clip_fraction,
        "explained_variance": report.explained_variance,
        "learning_rate": report.learning_rate,
        "wall_s": wall_s,
        "steps_per_s": report.rollout_steps / wall_s,
    }
