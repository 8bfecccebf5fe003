"""The loop of a training by updates: progress, a row of the log an update, checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from des.base.lazy import lazy
from scenarios.frame.update_log import UpdateLog

if TYPE_CHECKING:
    from rich import progress as rich_progress
    from rich.console import Console

    from agents.ppo import checkpoint
else:
    checkpoint = lazy("agents.ppo.checkpoint")
    rich_progress = lazy("rich.progress")

UPDATES_PER_CHECKPOINT = 10
_LINES_WITHOUT_TERMINAL = 10


class CostReport(Protocol):
    """Report of an update, a dataclass whose fields are the columns of the log."""

    @property
    def update(self) -> int:
        """Updates made."""

    @property
    def mean_cost(self) -> float:
        """Mean cost of what was drawn."""

    @property
    def found_cost(self) -> float:
        """Mean cost of the best found from it."""


Report_co = TypeVar("Report_co", bound=CostReport, covariant=True)


class UpdateTrainer(Protocol[Report_co]):
    """Training that goes update by update."""

    update: int

    @property
    def config(self) -> Any:
        """Settings, of which ``num_updates`` is read."""

    def run(self) -> Iterator[Report_co]:
        """Train to the end, update by update."""

    def state(self) -> Mapping[str, object]:
        """Snapshot for a checkpoint."""


def open_log(path: Path, report: type[Any], *, num_updates: int, console: Console) -> UpdateLog:
    """Open the log of a training of that many updates, and say so if it had more."""
    log = UpdateLog(path, [field.name for field in fields(report)], num_updates=num_updates)
    if log.note:
        console.print(log.note, soft_wrap=True, markup=False)
    return log


def run_updates(
    trainer: UpdateTrainer[Report_co],
    *,
    name: str,
    log_path: Path,
    checkpoint_path: Path,
    report_type: type[Report_co],
    console: Console,
) -> Report_co:
    """Train to the end; returns the last report."""
    total = trainer.config.num_updates
    progress = rich_progress.Progress(
        rich_progress.BarColumn(bar_width=12),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn("{task.fields[figures]}  ETA"),
        rich_progress.TimeRemainingColumn(compact=True),
        console=console,
        disable=not console.is_terminal,
    )
    log = open_log(log_path, report_type, num_updates=trainer.update, console=console)
    with log, progress:
        task = progress.add_task(name, total=total, completed=trainer.update, figures="")
        for report in trainer.run():
            log.append(asdict(report))  # type: ignore[call-overload]
            figures = f"cost {report.mean_cost:.3f}, best found {report.found_cost:.3f}"
            progress.update(task, completed=report.update, figures=figures)
            if not console.is_terminal and _is_tenth(report.update, total):
                console.print(f"update {report.update} of {total}: {figures}", soft_wrap=True)
            if report.update % UPDATES_PER_CHECKPOINT == 0 or report.update == total:
                log.sync()
                checkpoint.save_checkpoint(checkpoint_path, trainer.state())
    return report


def _is_tenth(update: int, total: int) -> bool:
    parts = _LINES_WITHOUT_TERMINAL
    return update * parts // total > (update - 1) * parts // total
