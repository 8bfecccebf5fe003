"""Time limit of an answer: work in threads of its own, of which few run at once."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

ResultT = TypeVar("ResultT")
_AT_ONCE = 2
"""Works that run at once; they compute, so more would only take longer."""


class TimeLimit:
    """Most time for an answer, that of its turn included; what took longer runs to its end alone.

    Attributes
    ----------
    limit_s
        Time after which an answer is given up. [s]
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._turns = threading.Semaphore(_AT_ONCE)

    def result(self, work: Callable[[], ResultT]) -> ResultT:
        """Return what work gives, or raise what it raises.

        Raises
        ------
        ValueError
            If that takes too long.
        """
        begun_s = time.monotonic()
        found: Future[ResultT] = Future()
        if self._turns.acquire(timeout=self.limit_s):
            threading.Thread(target=self._run, args=(work, found), daemon=True).start()
            try:
                return found.result(max(0.0, self.limit_s - (time.monotonic() - begun_s)))
            except TimeoutError:
                pass  # said below
        raise ValueError(f"explorer: an answer must take at most {self.limit_s:g} s, got none yet")

    def _run(self, work: Callable[[], ResultT], found: "Future[ResultT]") -> None:
        try:
            found.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            found.set_exception(error)
        finally:
            self._turns.release()
