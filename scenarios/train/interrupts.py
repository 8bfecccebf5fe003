"""Ctrl-C and its like as a wish that a training respects between two updates."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from rich.console import Console

from des.base.interruption import heard_handlers, set_handlers


class Interrupted:
    """Whether the user has requested a stop."""

    def __init__(self) -> None:
        self.is_set = False


@contextmanager
def interrupts(console: Console) -> Iterator[Interrupted]:
    """Turn the first Ctrl-C, SIGTERM or SIGHUP into a wish that the loop respects.

    A second one interrupts at once.
    """
    interrupted, before = Interrupted(), heard_handlers()

    def note(signal_number: int, frame: FrameType | None) -> None:
        interrupted.is_set = True
        set_handlers(before)
        with suppress(OSError):  # the terminal may be closed
            console.print("Stopping after this update; Ctrl-C again stops at once.", soft_wrap=True)

    set_handlers(dict.fromkeys(before, note))
    try:
        yield interrupted
    finally:
        set_handlers(before)
