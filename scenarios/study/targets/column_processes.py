"""Columns of the table of targets in processes of their own, but for what measures wall times."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agents.ppo.devices import use_torch_threads
from calibration.reference.pool import map_in_processes
from des.base.speaking import SPEAKER
from scenarios.study.targets.columns import origins_of, scheduler_columns
from scenarios.study.targets.config import Config, targets_of
from scenarios.study.targets.measurement_size import SchedulerColumn
from scenarios.study.targets.results_store import Key, Origin
from scenarios.study.targets.table import measure_groups

ALONE = "response"
"""Group of response times, which other processes would make longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTask:
    """A column of a run, all groups of which but `ALONE` are measured in one process."""

    config: Config
    column: str
    run_folder: Path


def measure_columns(config: Config, names: Sequence[str], run_folder: Path) -> None:
    """Measure columns in ``config.workers`` processes; `measure_groups` reads what they keep.

    Figures are those of one process: references that columns share are found in each process.

    Raises
    ------
    ValueError, OSError
        If a file is corrupt or of another run, or cannot be read or written; ChildProcessError if a
        process died.
    RuntimeError
        If a column fails otherwise, naming it.
    """
    tasks = [ColumnTask(config=config, column=name, run_folder=run_folder) for name in names]
    outcomes = map_in_processes(
        measure_column, tasks, num_workers=config.workers, timeout_s=None, at_once=True
    )
    with closing(outcomes), SPEAKER.doing("columns in processes"):
        for num_done, (position, outcome) in enumerate(outcomes, start=1):
            column = tasks[position].column
            if isinstance(outcome, ChildProcessError):
                raise ChildProcessError(f"column {column}: {outcome}") from outcome
            if isinstance(outcome, ValueError | OSError):
                raise outcome
            if isinstance(outcome, Exception):
                raise RuntimeError(f"column {column}: {outcome}") from outcome
            SPEAKER.reached(f"{num_done} of {len(tasks)} columns measured")


def measure_column(task: ColumnTask) -> None:
    """Measure a column in this process, and keep each group in the run folder."""
    use_torch_threads(1)
    columns, origins = _columns_of(task.config)
    keys = [(task.column, group) for group in targets_of(task.config) if group != ALONE]
    measure_groups(columns, origins, task.run_folder, keys)


@lru_cache(maxsize=1)
def _columns_of(config: Config) -> tuple[list[SchedulerColumn], dict[Key, Origin]]:
    """All columns of a run, whose references are shared by those that this process measures."""
    columns = scheduler_columns(config)
    return columns, origins_of(config, columns)
