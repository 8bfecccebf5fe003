"""Copies of this process that run something of their own: they begin in milliseconds."""

import ctypes
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path

from processes import descendants, is_running

_PR_SET_CHILD_SUBREAPER = 36


def forked(work: Callable[[], int], folder: Path, errors: Path) -> int:
    """Let a copy of this process do work in a folder; nothing of it comes back to the caller.

    It is in a session of its own, reads nothing, and writes to ``errors`` alone; what work returns
    is its exit code, and an exception a traceback and 1.

    Returns
    -------
    int
        Number of the process, which is to be waited for.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    number = os.fork()
    if number == 0:
        _work_and_leave(work, folder, errors)
    return number


def _work_and_leave(work: Callable[[], int], folder: Path, errors: Path) -> None:
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        for stream, path in enumerate((os.devnull, os.devnull, str(errors))):
            opened = os.open(path, (os.O_WRONLY if stream else os.O_RDONLY) | os.O_CREAT)
            os.dup2(opened, stream)
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
        code = work()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 what no command may raise is shown
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def printed_by(work: Callable[[], object], folder: Path) -> str:
    """Return what work prints in a copy of this process that runs in a folder."""
    printed = folder / "printed.txt"

    def work_and_print() -> int:
        with printed.open("w", encoding="utf-8") as file, redirect_stdout(file):
            work()
        return 0

    _, status = os.waitpid(forked(work_and_print, folder, folder / "errors.txt"), 0)
    assert status == 0, (folder / "errors.txt").read_text("utf-8")
    return printed.read_text("utf-8")


def adopt_orphans() -> None:
    """Become the parent of all that processes of this one leave behind, in whatever session."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def running_descendants() -> set[int]:
    """Processes that this one or its processes have started and that still run."""
    return {number for number in descendants(os.getpid()) if is_running(number)}
