"""Run the trials of a sweep, several at once; one that fails does not end the others."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from calibration.reference.parent import end_with_parent
from scenarios.train.sweep_grid import Trial
from scenarios.train.training_points import TrainingPoint, train_point_unseen

Submit = Callable[[TrainingPoint], "Future[str | None]"]
"""Starts a training; the future holds why it failed, or None."""


def submit_to_process(point: TrainingPoint) -> "Future[str | None]":
    """Train in a process of this point alone, whose death stops no other point."""
    pool = ProcessPoolExecutor(
        max_workers=1, mp_context=get_context("spawn"), initializer=end_with_parent
    )
    future = pool.submit(train_point_unseen, point)
    pool.shutdown(wait=False)
    return future


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
