"""Predictions of `des` for many cases, in this process or in several."""

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING

from calibration.cases.case import Measurement, PlacementCase
from calibration.commands.console import progress_bar
from calibration.reference.parent import end_with_parent
from des.base.lazy import lazy
from des.plan.corrections import NO_CORRECTIONS, Corrections

if TYPE_CHECKING:
    from calibration.fit import prediction
else:
    prediction = lazy("calibration.fit.prediction")


def predict_all(
    cases: Sequence[PlacementCase], corrections: Corrections = NO_CORRECTIONS
) -> list[Measurement]:
    """Predict cases one after the other, which takes milliseconds each."""
    with progress_bar("des") as progress:
        return [prediction.predict(case, corrections) for case in progress.track(cases)]


@contextmanager
def processes(num_workers: int) -> Iterator[Executor | None]:
    """Return an executor with several processes; None for one, which is this process."""
    if num_workers == 1:
        yield None
        return
    with ProcessPoolExecutor(
        num_workers, mp_context=get_context("spawn"), initializer=_follow_parent
    ) as executor:
        try:
            yield executor
        except BaseException:
            executor.shutdown(cancel_futures=True)
            raise


def _follow_parent() -> None:
    """Ctrl-C and its own end are the parent's to know; we end with it in either case."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
