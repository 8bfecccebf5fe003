"""Ctrl-C, SIGTERM and SIGHUP: one interruption of a command, however many signals come."""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A user, a batch system or a machine that shuts down, and a terminal that is closed."""

INTERRUPTED = 130
"""Exit code of a command that one of them ends: 128 and the number of SIGINT, as shells have it."""

GRACE_S = 5.0
"""Time to end in order, in which further signals change nothing. [s]"""

AGAIN_S = 0.02
"""Time until a signal that a library has swallowed is sent again. [s]"""


class _Interruption:
    """Handler of signals of one command, with the handlers from before it.

    The first signal raises KeyboardInterrupt; others are not heard while that unwinds. One that
    comes after `GRACE_S` kills the process: its files are whole at any moment, and processes that
    it has started end with it.

    A callback from C swallows the exception, as those of LLVM do while numba compiles; then the
    signal is sent again, until it interrupts other code.
    """

    def __init__(self) -> None:
        self.earlier = heard_handlers()
        self.earlier_hook = sys.unraisablehook
        self.is_over = False
        self.is_heard = False
        self._number = int(signal.SIGINT)
        self._first_s: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._first_s is None:
            self._first_s, self._number, self.is_heard = time.monotonic(), number, True
            if self.is_over:
                return
            raise KeyboardInterrupt
        if time.monotonic() - self._first_s < GRACE_S:
            return
        set_handlers(self.earlier)
        if not self.is_over:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def hear_of_unraisable(self, lost: "sys.UnraisableHookArgs") -> None:
        """Send a signal again whose exception was swallowed; pass other exceptions on."""
        if not self.is_heard or lost.exc_type is not KeyboardInterrupt:
            self.earlier_hook(lost)
            return
        self._first_s = None
        again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), self._number))
        again.daemon = True
        again.start()


def is_interrupted() -> bool:
    """Return whether a signal has reached the running command, even if a library swallowed it."""
    handlers = heard_handlers().values()
    return any(isinstance(each, _Interruption) and each.is_heard for each in handlers)


def heard_handlers() -> dict[signal.Signals, Any]:
    """Return the handlers of those signals that are not ignored, as SIGHUP is under ``nohup``."""
    found = {number: signal.getsignal(number) for number in SIGNALS}
    return {number: each for number, each in found.items() if each not in (signal.SIG_IGN, None)}


def set_handlers(handlers: dict[signal.Signals, Any]) -> None:
    """Set handlers that `heard_handlers` returned."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _end_deaf() -> None:
    """Ignore signals in the last steps of the interpreter, which gives up handlers in Python."""
    for number, handler in heard_handlers().items():
        if isinstance(handler, _Interruption) and handler.is_heard:
            signal.signal(number, signal.SIG_IGN)


atexit.register(_end_deaf)  # early, so that it is among the last to be called


@contextmanager
def interruptible() -> Iterator[None]:
    """Let signals interrupt a command, the first one only.

    Inside of another command, or in a thread, this does nothing. A command that was interrupted
    stays deaf for `GRACE_S`, so that a signal in the last steps of the interpreter does no harm.
    """
    handler = _Interruption()
    if threading.current_thread() is not threading.main_thread() or any(
        isinstance(each, _Interruption) and not each.is_over for each in handler.earlier.values()
    ):
        yield
        return
    set_handlers(dict.fromkeys(handler.earlier, handler))
    sys.unraisablehook = handler.hear_of_unraisable
    try:
        yield
    finally:
        handler.is_over = True
        sys.unraisablehook = handler.earlier_hook
        if not handler.is_heard:
            set_handlers(handler.earlier)
