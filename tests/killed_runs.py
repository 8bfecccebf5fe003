"""Commands that are killed in the middle of their files, as by a power cut of the process alone."""

import signal
import subprocess
from pathlib import Path

from processes import kill_and_wait, python, wait_until

_KILLED_AT = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
module, folder, at, *flags = sys.argv[1:]
left = int(at)
def hear(event, arguments):
    global left
    if event in EVENTS and str(arguments[0]).startswith(folder):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
EVENTS = ("open", "os.mkdir", "os.rename", "os.remove")
sys.addaudithook(hear)
sys.exit(import_module(module).main(flags))
"""


def killed_at(place: int, module: str, flags: list[str], folder: Path) -> bool:
    """Run a command until just before it touches a file in its folder for the ``place``-th time.

    Returns
    -------
    bool
        Whether it was killed; it has ended well before that if not.
    """
    words = ["-c", _KILLED_AT, module, str(folder), str(place), *flags]
    with python(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        _, errors = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), errors
    return process.returncode != 0


def killed_after_rows(num_rows: int, log: Path, module: str, flags: list[str]) -> bool:
    """Run a command until a log, of it or of a process of its own, has that many rows."""

    def has_rows() -> bool:
        return log.exists() and log.read_text().count("\n") > num_rows

    words = ["-m", module, *flags]
    with python(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        was_there = wait_until(has_rows, process)
        kill_and_wait(process)
    return was_there
