"""Ctrl-C as a wish that a training respects between two updates."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console


class Interrupted:
    """Whether the user has requested a stop."""

    def __init__(self) -> None:
        self.is_set = False


@contextmanager
def interrupts(console: Console) -> Iterator[Interrupted]:
    """Turn the first Ctrl-C into a wish that the loop respects; a second one interrupts at once."""
    interrupted = Interrupted()

    def note(signal_number: int, frame: FrameType | None) -> None:
        interrupted.is_set = True
        console.print("Stopping after this update; Ctrl-C again stops at once.", soft_wrap=True)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
