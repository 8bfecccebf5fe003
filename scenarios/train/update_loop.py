"""The loop of every training: rows of the log, progress, checkpoints, a clean stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from rich.console import Console

from des.base.interruption import heard_handlers, set_handlers
from des.base.lazy import lazy_imports
from scenarios.frame.update_log import UpdateLog

with lazy_imports(__name__):
    from rich import progress as rich_progress
    from rich.console import Console

    from agents.ppo import checkpoint
    from scenarios.frame.metrics_log import MetricsLog


@contextmanager
def interrupts(console: Console) -> Iterator[Event]:
    """Turn the first Ctrl-C, SIGTERM or SIGHUP into a request that the loop respects.

    A second one interrupts at once.
    """
    interrupted, before = Event(), heard_handlers()

    def note(signal_number: int, frame: FrameType | None) -> None:
        interrupted.set()
        set_handlers(before)
        with suppress(OSError):  # the terminal may be closed
            console.print("Stopping after this update; Ctrl-C again stops at once.", soft_wrap=True)

    set_handlers(dict.fromkeys(before, note))
    try:
        yield interrupted
    finally:
        set_handlers(before)


UPDATES_PER_CHECKPOINT = 10
Report = TypeVar("Report")
Report_co = TypeVar("Report_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class Training(Generic[Report]):
    """A training by updates, with all that its loop needs.

    Attributes
    ----------
    name
        What is trained, in lines of progress.
    num_updates
        Updates of the whole training.
    update
        Gives the updates made.
    step
        Makes an update and returns its report.
    row
        Row of the log, of a report and the seconds that the update took.
    tell
        Figures of a report, for people.
    save
        Writes the checkpoint.
    after
        Does what is due after an update, before its checkpoint.
    num_lines
        Lines of progress of the whole training, where no bar can move.
    """

    name: str
    num_updates: int
    update: Callable[[], int]
    step: Callable[[], Report]
    row: Callable[[Report, float], Mapping[str, Any]]
    tell: Callable[[Report], str]
    save: Callable[[], None]
    after: Callable[[], None] | None = None
    num_lines: int = 10


class TrainingEnd(NamedTuple, Generic[Report]):
    """Whether a training is complete and was not stopped, and its last report in this process."""

    is_complete: bool
    last: Report | None


def run_updates(
    training: Training[Report], log: UpdateLog | MetricsLog, console: Console, *, note: str = ""
) -> TrainingEnd[Report]:
    """Train to the end, or until Ctrl-C; then log and checkpoint agree.

    ``note`` says what was cut from the log, as its updates are made again.
    """
    total, last = training.num_updates, None
    if note:
        console.print(note, soft_wrap=True, markup=False)
    with _progress_bar(console) as progress, interrupts(console) as interrupted:
        task = progress.add_task(
            training.name, total=total, completed=training.update(), figures=""
        )
        while training.update() < total and not interrupted.is_set():
            begin_s = time.perf_counter()
            last = training.step()
            log.append(training.row(last, time.perf_counter() - begin_s))
            update, figures = training.update(), training.tell(last)
            progress.update(task, completed=update, figures=figures)
            if not console.is_terminal and _is_told(update, total, training.num_lines):
                line = f"{training.name}: update {update} of {total}: {figures}"
                console.print(line, soft_wrap=True)
            if training.after is not None:
                training.after()
            if update % UPDATES_PER_CHECKPOINT == 0 or update == total or interrupted.is_set():
                log.sync()
                training.save()
        return TrainingEnd(training.update() == total and not interrupted.is_set(), last)


class UpdateTrainer(Protocol[Report_co]):
    """Trainer whose reports, dataclasses, are the rows of the log."""

    update: int

    @property
    def config(self) -> Any:
        """Settings, of which ``num_updates`` is read."""

    def step(self) -> Report_co:
        """Make one update."""

    def state(self) -> Mapping[str, object]:
        """Snapshot for a checkpoint."""

    def load_state(self, state: Mapping[str, Any], *, source: Path) -> None:
        """Continue from a snapshot, of the file ``source``."""


def rows_cut(log: MetricsLog, *, step: int, update: int) -> str:
    """Cut what a log has after a checkpoint, and say so; empty if there is nothing."""
    num_cut = log.resume_from(step)
    if not num_cut:
        return ""
    return (
        f"{log.csv_path}: {num_cut} rows after the checkpoint, which is of update {update}, are "
        "cut; their updates are made again"
    )


def opened_log(path: Path, report: type[Any], *, num_updates: int) -> UpdateLog:
    """Open a log at a number of updates; its columns are the fields of reports."""
    return UpdateLog(path, [field.name for field in fields(report)], num_updates=num_updates)


def train_updates(
    trainer: UpdateTrainer[Report],
    path: Path,
    log_path: Path,
    report: type[Report],
    *,
    name: str,
    tell: Callable[[Report], str],
    console: Console,
) -> TrainingEnd[Report]:
    """Run a trainer whose reports are the rows of the log, from the checkpoint if there is one."""
    if path.exists():
        with console.status("drawing what the updates before the checkpoint have learnt from"):
            trainer.load_state(checkpoint.load_checkpoint(path), source=path)
    training = Training(
        name=name,
        num_updates=trainer.config.num_updates,
        update=lambda: trainer.update,
        step=trainer.step,
        row=lambda made, _: asdict(made),  # type: ignore[call-overload]
        tell=tell,
        save=lambda: checkpoint.save_checkpoint(path, trainer.state()),
    )
    with opened_log(log_path, report, num_updates=trainer.update) as log:
        return run_updates(training, log, console, note=log.note)


def _progress_bar(console: Console) -> rich_progress.Progress:
    """Bar of a training or of its preparation, where the console is a terminal."""
    return rich_progress.Progress(
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(bar_width=12),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn("{task.fields[figures]}  ETA"),
        rich_progress.TimeRemainingColumn(compact=True),
        console=console,
        disable=not console.is_terminal,
    )


def _is_told(update: int, total: int, num_lines: int) -> bool:
    return update * num_lines // total > (update - 1) * num_lines // total
