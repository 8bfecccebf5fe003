"""Tasks in processes of their own, each with a time limit that ends the process if need be."""

import math
import pickle
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from threading import RLock
from typing import Any, Generic, TypeVar

from calibration.reference.serving import GRACE_S, interrupts_held_back, serve
from des.base.checks import require_count, require_positive
from des.base.parallel_map import ParallelMap
from des.base.parent_process import be_killed_with

Item = TypeVar("Item")
Result = TypeVar("Result")

START_LIMIT_S = 300.0
"""Limit for a process to start and import its modules. [s]"""


def map_in_processes(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    num_workers: int,
    timeout_s: float | None,
    at_once: bool = False,
) -> Generator[tuple[int, Result | Exception], None, None]:
    """Do a task for every item, several at a time, in fresh processes.

    Parameters
    ----------
    task
        Function for one item; both go to other processes, so they must be picklable.
    num_workers
        Processes at a time, each of which takes one item after the other.
    timeout_s
        Limit for each item, None for none; a process that exceeds it is ended, and another one
        started.
    at_once
        Whether processes are killed when the mapping or the thread that asks ends, as far as the
        system can; else they end the programs that they run before.

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
    if timeout_s is not None:
        require_positive("pool", "timeout_s", timeout_s)
    waiting = deque(enumerate(items))
    workers: list[_Worker[Item, Result]] = []
    num_left = len(items)
    try:
        while num_left:
            while len(workers) < min(num_workers, num_left):
                workers.append(_Worker(task, at_once=at_once))
            for worker in _ready(workers):
                heard = worker.hear()
                if worker.is_alive and waiting:
                    worker.give(*waiting.popleft(), math.inf if timeout_s is None else timeout_s)
                else:
                    _end([worker])
                    workers.remove(worker)
                if heard is not None:
                    num_left -= 1
                    yield heard
    finally:
        _end(workers)


@contextmanager
def worker_processes(num_workers: int) -> Iterator[ParallelMap]:
    """Map over processes that stay until the end; with one worker, over this process.

    Nothing but pipes is between them and us, so nothing is left in the system however they end,
    and they end with us. A process that dies is a ChildProcessError.
    """
    require_count("pool", "num_workers", num_workers)
    if num_workers == 1:
        yield map
        return
    workers: list[_Worker[Any, Any]] = []
    try:
        yield partial(_map, RLock(), workers, num_workers)
    finally:
        _end(workers)


def _map(
    turn: RLock,
    workers: "list[_Worker[Any, Any]]",
    num_workers: int,
    function: Callable[[Item], Result],
    items: Iterable[Item],
) -> Iterator[Result]:
    """Map when no other thread does."""
    with turn:
        yield from _map_now(workers, num_workers, function, items)


def _map_now(
    workers: "list[_Worker[Any, Any]]",
    num_workers: int,
    function: Callable[[Item], Result],
    items: Iterable[Item],
) -> Iterator[Result]:
    waiting = deque((place, (function, item)) for place, item in enumerate(items))
    num_items, found = len(waiting), dict[int, Any]()
    try:
        for place in range(num_items):
            while place not in found:
                for worker in workers:
                    if worker.is_idle and waiting:
                        worker.give(*waiting.popleft(), math.inf)
                while len(workers) < min(num_workers, num_items):
                    workers.append(_Worker(_apply, at_once=True))
                for worker in _ready([one for one in workers if not one.is_idle]):
                    heard = worker.hear()
                    if heard is not None:
                        found.update([heard])
            result = found.pop(place)
            if isinstance(result, Exception):
                raise result
            yield result
    finally:
        busy = [worker for worker in workers if not worker.is_idle]
        _end(busy)
        workers[:] = [worker for worker in workers if worker.is_idle]


def _apply(call: tuple[Callable[[Item], Result], Item]) -> Result:
    function, item = call
    return function(item)


class _Worker(Generic[Item, Result]):
    """One process and what it is doing: starting, at first.

    One that has no programs of its own to end may be killed with us, ``at_once``.
    """

    def __init__(self, task: Callable[[Item], Result], *, at_once: bool = False) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.is_alive, self.is_idle, self._at_once = True, False, at_once
        self.deadline_s = time.monotonic() + START_LIMIT_S
        self._limit_s = START_LIMIT_S
        self._position: int | None = None
        packed = pickle.dumps(task)  # here, so that a task that cannot be packed starts nothing
        self._process = context.Process(target=_serve, args=(theirs, at_once), daemon=True)
        with interrupts_held_back():
            self._process.start()
        theirs.close()  # so that the death of the process is the end of the pipe
        with suppress(BrokenPipeError):  # found out when it is heard
            self.connection.send_bytes(packed)

    def give(self, position: int, item: Item, timeout_s: float) -> None:
        """Hand over an item; a process that has just died is found out when it is heard."""
        self._position, self._limit_s, self.is_idle = position, timeout_s, False
        self.deadline_s = time.monotonic() + timeout_s
        with suppress(BrokenPipeError):
            self.connection.send(item)

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
        self.is_idle = True
        return None if self._position is None else (self._position, outcome)

    def interrupt(self) -> None:
        """Tell the process to end, also in the middle of a task; kill one that has no programs."""
        if self._at_once:
            self._process.kill()  # it would hear nothing during a long compiled call
        else:
            self._process.terminate()

    def end(self) -> None:
        """Wait for a process that was told to end; one that does not is killed."""
        self._process.join(GRACE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.connection.close()

    def _lost(self, error: Exception) -> tuple[int, Exception]:
        self.is_alive = False
        if self._position is None:
            raise ChildProcessError(f"a process for tasks did not come up: {error}")
        return self._position, error


def _end(workers: "Sequence[_Worker[Any, Any]]") -> None:
    """End processes together, also in the middle of tasks."""
    for worker in workers:
        worker.interrupt()
    for worker in workers:
        worker.end()


def _ready(workers: Sequence[_Worker[Item, Result]]) -> list[_Worker[Item, Result]]:
    """Wait for workers that have something to say, or are late."""
    earliest_s = min(worker.deadline_s for worker in workers)
    connections = [worker.connection for worker in workers]
    left_s = None if earliest_s == math.inf else max(0.0, earliest_s - time.monotonic())
    heard = wait(connections, left_s)
    now_s = time.monotonic()
    return [
        worker for worker in workers if worker.connection in heard or worker.deadline_s <= now_s
    ]


def _serve(connection: Connection, at_once: bool) -> None:
    """Be a worker until the parent ends, which may have been killed."""
    parent = parent_process()
    assert parent is not None
    assert parent.pid is not None
    if at_once:
        be_killed_with(parent.pid)
    serve(connection, lambda: wait([parent.sentinel]))
