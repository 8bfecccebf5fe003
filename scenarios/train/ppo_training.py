"""Trainings of a policy by `agents.ppo.trainer` with a CSV curve and a checkpoint."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from agents.ppo.checkpoint import load_checkpoint, save_checkpoint
from agents.ppo.trainer import PPOTrainer, UpdateReport
from des.base.command import UsageError
from des.base.console import FittedConsole
from des.base.lazy import lazy_imports
from scenarios.frame.outputs import (
    OutputFlags,
    repeated_settings,
    result_file,
    write_files,
)
from scenarios.frame.update_log import UpdateLog
from scenarios.train.update_loop import Training, run_updates

with lazy_imports(__name__):
    import pandas as pd

    from scenarios.frame.report import Report

_COLUMNS = ("step", "mean_reward", "entropy", "explained_variance")


def train_to_the_end(
    learner: PPOTrainer,
    path: Path,
    curve: Path,
    *,
    resume: bool,
    extra: Mapping[str, object] = MappingProxyType({}),
) -> bool:
    """Train to the end or until Ctrl-C; returns whether the training is complete.

    ``path`` is that of the checkpoint, which ``extra`` has further entries of.

    Raises
    ------
    UsageError
        If there is no checkpoint to resume.
    """
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
        save=lambda: save_checkpoint(path, learner.state() | dict(extra)),
    )
    with UpdateLog(curve, _COLUMNS, num_updates=learner.update_count) as log:
        return run_updates(training, log, FittedConsole(stderr=True), note=log.note).is_complete


def show_and_write(
    config: OutputFlags,
    out: Path,
    lines: Sequence[str],
    frames: Mapping[str, pd.DataFrame],
    report: Report | None = None,
) -> list[Path]:
    """Show the lines of a comparison; write its rows, settings and report, and return the paths."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    choice = config.choice()
    files = choice.row_files(frames) | result_file(repeated_settings(config), lines=lines)
    return write_files(out, files if report is None else files | choice.report_files(report))


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
