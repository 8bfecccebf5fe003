"""Map over this process or worker processes, with results in order."""

import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Protocol, TypeVar

from calibration.reference.parent import end_with_parent

_T = TypeVar("_T")
_U = TypeVar("_U")


class ParallelMap(Protocol):
    """Applies a function to all of some items, in order, in this process or in others."""

    def __call__(self, function: Callable[[_T], _U], items: Iterable[_T], /) -> Iterator[_U]:
        """Return an iterator over the results."""


@contextmanager
def workplace(workers: int) -> Iterator[ParallelMap]:
    """Map over this process or several worker processes; results come in order."""
    if workers == 1:
        yield map
        return
    with ProcessPoolExecutor(
        max_workers=workers, mp_context=get_context("spawn"), initializer=_begin
    ) as pool:
        yield pool.map


def _begin() -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the one that began this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
