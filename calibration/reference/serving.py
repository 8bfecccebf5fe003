"""The side of a process that does tasks for another one, which may end or be killed at any time."""

import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, NoReturn

GRACE_S = 5.0
"""Time for a process to kill its child programs on SIGTERM. [s]"""

_FOR_THE_STARTER = {signal.SIGINT, signal.SIGHUP}
"""Signals that a terminal sends to all; the process that started the others ends them."""

TERMINATED_EXIT = 143
"""Exit code of a process ended by a signal: 128 and the number of SIGTERM."""


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let a process that is started here not hear a terminal before it can ignore it; we do later.

    A process inherits which signals are held back, and `serve` lets them through.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_THE_STARTER)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(connection: Connection, wait_for_starter: Callable[[], object]) -> None:
    """Receive a task, say that we are up, then serve requests until the client is gone.

    The task is unpickled, which imports its modules, only after our end is tied to the parent's.

    Parameters
    ----------
    connection
        The task for one item comes from it, then the items; results go to it, or the errors of the
        task, with their tracebacks.
    wait_for_starter
        Returns when the parent has ended: then this process ends at once, and with it the programs
        that the task runs.
    """
    for number in _FOR_THE_STARTER:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FOR_THE_STARTER)
    signal.signal(signal.SIGTERM, _leave)  # unwinds, so that programs of the task end as well
    threading.Thread(target=_end_after, args=(wait_for_starter,), daemon=True).start()
    task: Callable[[Any], Any]
    try:
        task = connection.recv()
    except EOFError:
        return
    connection.send(None)
    while True:
        try:
            item = connection.recv()
        except (EOFError, OSError):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # we end already
            return
        try:
            outcome = task(item)
        except Exception as error:  # noqa: BLE001 - the client will see it
            outcome = _sendable(error)
        with suppress(OSError):  # the client is gone, which the next request will tell
            connection.send(outcome)


def _end_after(wait_for_starter: Callable[[], object]) -> None:
    wait_for_starter()
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # we end already
    sys.exit(TERMINATED_EXIT)


def _sendable(error: Exception) -> Exception:
    """Return the error with its traceback as a note, or one that says the same if it must be."""
    trace = "".join(traceback.format_exception(error))
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - there are errors that cannot be made of their own parts
        copy = RuntimeError(f"{type(error).__name__}: {error}")
    assert isinstance(copy, Exception)
    copy.add_note(trace)
    return copy
