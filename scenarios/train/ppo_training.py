"""Trainings of a policy by `agents.ppo.trainer` with a CSV curve and a checkpoint."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents.ppo.checkpoint import load_checkpoint, save_checkpoint
from agents.ppo.trainer import PPOTrainer, UpdateReport
from des.base.command import UsageError
from des.base.console import FittedConsole
from scenarios.frame.update_log import UpdateLog
from scenarios.train.update_loop import Training, run_updates

_COLUMNS = ("step", "mean_reward", "entropy", "explained_variance")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFiles:
    """Files of a training; ``extra`` are further entries of the checkpoint."""

    checkpoint: Path
    curve: Path
    extra: Mapping[str, object] = field(default_factory=dict)


def train_to_the_end(learner: PPOTrainer, files: TrainingFiles, *, resume: bool) -> bool:
    """Train to the end or until Ctrl-C; returns whether the training is complete.

    Raises
    ------
    UsageError
        If there is no checkpoint to resume.
    """
    path = files.checkpoint
    if resume:
        if not path.is_file():
            raise UsageError(f"--resume: {path} must be the checkpoint of a training, got no file")
        learner.load_state(load_checkpoint(path))
    training = Training(
        name=path.stem,
        num_updates=num_updates(learner),
        update=lambda: learner.update_count,
        step=learner.update,
        row=lambda report, _: _row(report),
        tell=lambda report: f"{report.step_count} decisions, reward {report.mean_reward:.4f}",
        save=lambda: save_checkpoint(path, learner.state() | dict(files.extra)),
    )
    with UpdateLog(files.curve, _COLUMNS, num_updates=learner.update_count) as log:
        return run_updates(training, log, FittedConsole(stderr=True), note=log.note).is_complete


def num_updates(learner: PPOTrainer) -> int:
    """Updates of a whole training by decisions."""
    return math.ceil(learner.total_steps / learner.steps_per_update)


def _row(report: UpdateReport) -> dict[str, object]:
    return {
        "step": report.step_count,
        "mean_reward": f"{report.mean_reward:.6f}",
        "entropy": f"{report.entropy:.4f}",
        "explained_variance": f"{report.explained_variance:.4f}",
    }
