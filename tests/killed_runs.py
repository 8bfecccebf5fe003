"""Commands that are killed in the middle of their files, as by a power cut of the process alone.

Their processes are copies of this one, which has loaded all that trainings need.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import NamedTemporaryFile

from forked import forked
from processes import descendants, is_running, wait_until

_TOUCHING = ("open", "os.mkdir", "os.rename", "os.remove")


@contextmanager
def _started(
    module: str, flags: Sequence[str], at_touch: Callable[[str], None] | None = None
) -> Iterator[int]:
    """Run a command in a silent process, which calls ``at_touch`` with paths; give its number.

    What it says on stderr is shown if it ends by itself, and not well.
    """

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if at_touch is not None and event in _TOUCHING:
            at_touch(str(arguments[0]))

    def run() -> int:
        sys.addaudithook(hear)
        return int(import_module(module).main(list(flags)))

    with NamedTemporaryFile("r", suffix=".err") as errors:
        number = forked(run, Path.cwd(), Path(errors.name))
        try:
            yield number
        finally:
            os.kill(number, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        assert code in (0, -signal.SIGKILL), errors.read()


def killed_at(place: int, module: str, flags: list[str], folder: Path) -> bool:
    """Run a command until just before it touches a file in its folder for the ``place``-th time.

    Returns
    -------
    bool
        Whether it was killed; it has ended well before that if not.
    """
    left = place

    def count(path: str) -> None:
        nonlocal left
        if path.startswith(str(folder)):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    with _started(module, flags, count) as number:
        ended = os.waitid(os.P_PID, number, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_code == os.CLD_KILLED


def killed_after_rows(num_rows: int, log: Path, module: str, flags: list[str]) -> bool:
    """Run a command until a log, of it or of a process of its own, has that many rows."""

    def has_rows() -> bool:
        return log.exists() and log.read_text().count("\n") > num_rows

    with _started(module, flags) as number:
        wait_until(lambda: not is_running(number) or has_rows())
        os.kill(number, signal.SIGSTOP)  # nothing new begins while we look
        begun = descendants(number)
    wait_until(lambda: not any(map(is_running, begun)))
    return has_rows()
