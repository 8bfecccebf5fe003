"""Training of a policy by PPO with a CSV curve and a checkpoint, which a later run resumes."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from des.base.command import UsageError
from des.base.lazy import lazy
from scenarios.frame.writing import write_files

if TYPE_CHECKING:
    from agents.ppo import checkpoint
    from agents.ppo.trainer import PPOTrainer
else:
    checkpoint = lazy("agents.ppo.checkpoint")

SAVED_EVERY = 10
"""Updates between two checkpoints."""
_CURVE_HEAD = "step,mean_reward,entropy,explained_variance"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFiles:
    """Files of a training: the checkpoint and the curve, which are in one folder."""

    checkpoint: Path
    curve_name: str
    extra: Mapping[str, object] = field(default_factory=dict)
    """Further entries of the checkpoint."""
    told_every: int = SAVED_EVERY
    """Updates between two lines of progress."""

    @property
    def curve(self) -> Path:
        """Curve with a row for each update."""
        return self.checkpoint.parent / self.curve_name


def train_to_the_end(learner: "PPOTrainer", files: TrainingFiles, *, resume: bool) -> None:
    """Update until the training is finished; keep curve and checkpoint every 10 updates.

    Raises
    ------
    UsageError
        If there is no checkpoint to resume.
    """
    rows = _resumed(learner, files) if resume else [_CURVE_HEAD]
    while not learner.finished:
        report = learner.update()
        rows.append(
            f"{report.step_count},{report.mean_reward:.6f},{report.entropy:.4f},"
            f"{report.explained_variance:.4f}"
        )
        if learner.finished or learner.update_count % files.told_every == 0:
            sys.stderr.write(f"{report.step_count} decisions: reward {report.mean_reward:.4f}\n")
        if learner.finished or learner.update_count % SAVED_EVERY == 0:
            text = "\n".join(rows) + "\n"
            write_files(files.curve.parent, {files.curve_name: text.encode()})
            checkpoint.save_checkpoint(files.checkpoint, learner.state() | dict(files.extra))


def _resumed(learner: "PPOTrainer", files: TrainingFiles) -> list[str]:
    """Load the checkpoint; return the rows of the curve up to it."""
    path = files.checkpoint
    if not path.is_file():
        raise UsageError(f"--resume: {path} must be the checkpoint of a training, got no file")
    learner.load_state(checkpoint.load_checkpoint(path))
    return files.curve.read_text(encoding="utf-8").splitlines()[: learner.update_count + 1]
