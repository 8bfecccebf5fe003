"""Run the trials of a sweep, several at once; one that fails does not end the others."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import active_children

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from calibration.reference.pool import map_in_processes
from scenarios.train.sweep_grid import TrainingPoint, Trial, train_point_unseen

MOST_AT_ONCE = 1024
"""Trainings on one machine at a time."""

Submit = Callable[[TrainingPoint], "Future[str | None]"]
"""Starts a training; the future holds why it failed, or None."""


@contextmanager
def process_submitter() -> Iterator[Submit]:
    """Give a function that trains in a process of each point alone, whose death stops no other.

    Where a sweep is interrupted, its trainings are told, and end after an update with a checkpoint.
    """
    with ThreadPoolExecutor(max_workers=MOST_AT_ONCE) as threads:
        try:
            yield lambda point: threads.submit(_train_elsewhere, point)
        except BaseException:
            for process in active_children():
                process.terminate()
            raise


def _train_elsewhere(point: TrainingPoint) -> str | None:
    """Wait for a training in a process of its own."""
    outcomes = map_in_processes(
        train_point_unseen, [point], num_workers=1, timeout_s=None, at_once=True
    )
    ((_, outcome),) = outcomes
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def run_trials(
    trials: Sequence[Trial], submit: Submit, *, at_once: int, console: Console
) -> dict[str, str]:
    """Run all trials that are not finished.

    Returns
    -------
    dict
        Reasons of the failed trials, by their names.
    """
    waiting = deque(trial for trial in trials if not trial.point.finished)
    running: dict[Future[str | None], Trial] = {}
    errors: dict[str, str] = {}
    with _progress(console) as progress:
        bar = progress.add_task("", total=len(trials), completed=len(trials) - len(waiting))
        while waiting or running:
            while waiting and len(running) < at_once:
                trial = waiting.popleft()
                running[submit(trial.point)] = trial
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                trial = running.pop(future)
                reason = _why_failed(future, trial.point)
                if reason is not None:
                    errors[trial.name] = reason
                progress.advance(bar)
                progress.console.print(
                    f"{'done' if reason is None else 'FAILED'}: {trial.name}",
                    soft_wrap=True,
                    markup=False,
                )
    return errors


def _why_failed(future: "Future[str | None]", point: TrainingPoint) -> str | None:
    try:
        reason = future.result()
    except Exception as error:  # noqa: BLE001 - its process or machine died: reported
        return " ".join(f"{type(error).__name__}: {error}".split())
    if reason is None and not point.finished:
        return f"{point.folder.report_html} is missing; do all machines share this folder?"
    return reason


def _progress(console: Console) -> Progress:
    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trainings"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
