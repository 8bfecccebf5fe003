"""Places to map over: this process, worker processes, or tasks of Ray."""

import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from agents.ppo.parallel_map import ParallelMap
from calibration.reference.parent import end_with_parent
from calibration.reference.serving import interrupts_held_back
from scenarios.frame.ray_extra import ray_module

_T = TypeVar("_T")
_U = TypeVar("_U")


@contextmanager
def workplace(workers: int, ray: str | None = None) -> Iterator[ParallelMap]:
    """Map over this process or several worker processes; results come in order.

    With ``ray``, see `scenarios.frame.ray_session.ray_session`, over tasks of a Ray instead, of
    ``workers`` CPUs if it is started here.
    """
    if ray is not None:
        place = ray_module("scenarios.train.ray_workplace").ray_workplace
        with place(ray, num_cpus=workers) as at_work:
            yield at_work
        return
    if workers == 1:
        yield map
        return
    with ProcessPoolExecutor(
        max_workers=workers, mp_context=get_context("spawn"), initializer=_begin
    ) as pool:

        def at_work(function: Callable[[_T], _U], items: Iterable[_T], /) -> Iterator[_U]:
            with interrupts_held_back():  # processes start here, and inherit that
                return pool.map(function, items)

        yield at_work


def _begin() -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the one that began this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with_parent()
