"""Processes of tests: started as from a terminal, and waited for by what they do, not by time."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
FAILSAFE_S = 1800.0
"""After which a process is taken to hang, and killed: far more than any takes on a busy machine."""

WAIT_FOR_SIGNAL = "while not threading.Event().wait(0.05): pass"
"""Code that waits for a signal. One that comes just before a thread sleeps does not wake it, and
its handler in Python runs at the next step only: a wait without an end may never hear of it."""

LIMITS_S = (4.0, 16.0, 64.0, 256.0, 1024.0)
"""Time limits to try one after the other, where something must be late and all else in time."""

_PATHS = os.pathsep.join([str(ROOT), str(ROOT / "astra-sim")])
_TICK = threading.Event()
_Found = TypeVar("_Found")

_AS_FROM_A_TERMINAL = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
os.execv(sys.argv[1], sys.argv[1:])
"""
"""A shell ignores SIGINT for what it starts in the background, and so would all that we start."""


@contextmanager
def python(*words: str, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Run Python in a process that hears Ctrl-C, in a group of its own.

    All of the group is killed when the test is done with it, or when it hangs.
    """
    launcher = [sys.executable, "-S", "-c", _AS_FROM_A_TERMINAL, sys.executable, *words]
    environment = dict(os.environ) | {"PYTHONPATH": _PATHS} | options.pop("env", {})
    with subprocess.Popen(launcher, env=environment, start_new_session=True, **options) as process:
        hung = threading.Timer(FAILSAFE_S, _kill_group, [process.pid])
        hung.start()
        try:
            yield process
        finally:
            hung.cancel()
            _kill_group(process.pid)


def words_printed(script: str, *arguments: str, **environment: str) -> list[str]:
    """Words that a script prints in a process of its own, in which texts have other hashes."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "54321", "PYTHONPATH": _PATHS, **environment},
    )
    return done.stdout.split()


def _kill_group(number: int) -> None:
    with suppress(ProcessLookupError):  # all of it has ended
        os.killpg(number, signal.SIGKILL)


def with_time_enough(
    run: Callable[[float], _Found],
    is_so: Callable[[_Found], bool],
    limits_s: Sequence[float] = LIMITS_S,
) -> _Found:
    """Run with longer and longer time limits until one was not too short for a busy machine.

    What a correct program does in time it does with one of them; a wrong one fails with all.
    """
    for limit_s in limits_s:
        found = run(limit_s)
        if is_so(found):
            break
    return found


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen[Any] | None = None) -> bool:
    """Look again and again until something is so, or the process that would do it has ended.

    Returns
    -------
    bool
        Whether it is so.
    """
    for _ in range(int(FAILSAFE_S / 0.005)):
        has_ended = process is not None and process.poll() is not None
        if is_so():
            return True
        if has_ended:
            return False
        _TICK.wait(0.005)
    raise AssertionError(f"after {FAILSAFE_S:g} s it is still not so")


def is_running(number: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        status = Path(f"/proc/{number}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def descendants(number: int) -> set[int]:
    """Numbers of all processes that a process and those it has started have started."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text("utf-8")
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
    found, before = {number}, set[int]()
    while found != before:
        before = set(found)
        found |= {child for child, parent in parents.items() if parent in before}
    return found - {number}


def command_of(number: int) -> str:
    """Words by which the system knows a process; none of one that has ended."""
    try:
        return Path(f"/proc/{number}/cmdline").read_text("utf-8").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def kill_and_wait(process: subprocess.Popen[Any]) -> None:
    """Kill a process, and wait until all that it has started has ended by itself."""
    process.send_signal(signal.SIGSTOP)  # nothing new begins while we look
    started = descendants(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(is_running, started)))
