"""Tasks in processes of their own, each with a time limit that ends the process if need be."""

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

from calibration.reference.serving import interrupts_held_back, serve
from des.base.checks import require_count, require_positive

Item = TypeVar("Item")
Result = TypeVar("Result")

START_LIMIT_S = 300.0
"""Limit for a process to start and import its modules. [s]"""

_GRACE_S = 5.0
"""Time for a process to kill its child programs on SIGTERM. [s]"""


def map_in_processes(
    task: Callable[[Item], Result], items: Sequence[Item], *, num_workers: int, timeout_s: float
) -> Generator[tuple[int, Result | Exception], None, None]:
    """Do a task for every item, several at a time, in fresh processes.

    Parameters
    ----------
    task
        Function for one item; both go to other processes, so they must be picklable.
    num_workers
        Processes at a time, each of which takes one item after the other.
    timeout_s
        Limit for each item; a process that exceeds it is ended, and another one started.

    Yields
    ------
    tuple
        Position of an item and its result or error, as they come: that of the task itself,
        TimeoutError, or ChildProcessError if the process died. Closing the generator ends all.

    Raises
    ------
    ChildProcessError
        If a process does not come up.
    """
    require_count("pool", "num_workers", num_workers)
    require_positive("pool", "timeout_s", timeout_s)
    waiting = deque(enumerate(items))
    workers: list[_Worker[Item, Result]] = []
    num_left = len(items)
    try:
        while num_left:
            while len(workers) < min(num_workers, num_left):
                workers.append(_Worker(task))
            for worker in _ready(workers):
                heard = worker.hear()
                if worker.is_alive and waiting:
                    worker.give(*waiting.popleft(), timeout_s)
                else:
                    worker.end()
                    workers.remove(worker)
                if heard is not None:
                    num_left -= 1
                    yield heard
    finally:
        for worker in workers:
            worker.end()


class _Worker(Generic[Item, Result]):
    """One process and what it is doing: starting, at first."""

    def __init__(self, task: Callable[[Item], Result]) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.is_alive = True
        self.deadline_s = time.monotonic() + START_LIMIT_S
        self._limit_s = START_LIMIT_S
        self._position: int | None = None
        self._process = context.Process(target=_serve, args=(theirs, task), daemon=True)
        with interrupts_held_back():
            self._process.start()
        theirs.close()  # so that the death of the process is the end of the pipe

    def give(self, position: int, item: Item, timeout_s: float) -> None:
        """Hand over an item; a process that has just died is found out when it is heard."""
        self._position, self._limit_s = position, timeout_s
        self.deadline_s = time.monotonic() + timeout_s
        try:
            self.connection.send(item)
        except BrokenPipeError:
            return

    def hear(self) -> tuple[int, Result | Exception] | None:
        """Position and outcome of the item at work; None if the process says that it is up."""
        if not self.connection.poll():
            return self._lost(TimeoutError(f"it did not end within {self._limit_s:g} s"))
        try:
            outcome: Result | Exception = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            exit_code = self._process.exitcode
            return self._lost(ChildProcessError(f"its process died with exit code {exit_code}"))
        return None if self._position is None else (self._position, outcome)

    def end(self) -> None:
        """End the process, also in the middle of a task."""
        self._process.terminate()
        self._process.join(_GRACE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.connection.close()

    def _lost(self, error: Exception) -> tuple[int, Exception]:
        self.is_alive = False
        if self._position is None:
            raise ChildProcessError(f"a process for tasks did not come up: {error}")
        return self._position, error


def _ready(workers: Sequence[_Worker[Item, Result]]) -> list[_Worker[Item, Result]]:
    """Wait for workers that have something to say, or are late."""
    earliest_s = min(worker.deadline_s for worker in workers)
    connections = [worker.connection for worker in workers]
    heard = wait(connections, max(0.0, earliest_s - time.monotonic()))
    now_s = time.monotonic()
    return [
        worker for worker in workers if worker.connection in heard or worker.deadline_s <= now_s
    ]


def _serve(connection: Connection, task: Callable[[Item], Result]) -> None:
    """Be a worker until the parent ends, which may have been killed."""
    parent = parent_process()
    assert parent is not None
    serve(connection, task, wait_for_starter=lambda: wait([parent.sentinel]))
