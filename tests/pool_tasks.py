"""Tasks for processes: they answer, fail, die or hang as they are told."""

import os
import signal
import sys
import threading
from pathlib import Path

from processes import wait_until

from calibration.reference.binaries import run_reference_program


class StrangeError(Exception):
    """An error that cannot be made again from its message."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def do_as_told(told: str) -> str | None:
    """Answer, raise, die by a signal that cannot be caught, or hang, also deaf to SIGTERM."""
    if told == "raise":
        raise ValueError("told to")
    if told == "raise strangely":
        raise StrangeError(1, 2)
    if told == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if told == "hang deaf":  # as in a long compiled call
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Event().wait()
    if told == "hang":
        threading.Event().wait()
    return None if told == "nothing" else told.upper()


def note_and_do(item: tuple[Path, str]) -> str | None:
    """Leave the number of the process in a folder, then do as told."""
    folder, told = item
    (folder / str(os.getpid())).touch()
    return do_as_told(told)


def note_and_do_with_another(item: tuple[Path, str]) -> str | None:
    """Leave the number of the process in a folder, and do as told once another has left its own."""
    folder, told = item
    (folder / str(os.getpid())).touch()
    wait_until(lambda: len(list(folder.iterdir())) == 2)
    return do_as_told(told)


def tell_and_hang(folder: Path) -> None:
    """Say that we are at work, then wait for a program that never ends."""
    words = [sys.executable, "-c", "import threading; threading.Event().wait()"]
    sys.stdout.write("at work\n")
    sys.stdout.flush()
    run_reference_program(words, folder, timeout_s=600.0)


def note_and_hang(folder: Path, number: int) -> None:
    """Leave a file with our number, then hang for ever."""
    (folder / str(number)).touch()
    threading.Event().wait()
