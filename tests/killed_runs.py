"""Commands that are killed in the middle of their files, as by a power cut of the process alone.

Their processes are copies of one that has loaded all that trainings need, which takes seconds.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from processes import descendants, is_running, wait_until

_SERVER = get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        "torch._dynamo",
        "scipy.stats",
        "agents.flat.batched_env",
        "agents.ppo.trainer",
        "scenarios.east_west_train",
        "scenarios.frame.metrics_log",
        "scenarios.study.targets.after_training",
        "scenarios.train.east_west.hi_ppo_run",
        "scenarios.train.outcome",
        "scenarios.train.rollouts",
        "scenarios.train.training_calibration",
        "scenarios.train.training_loop",
    ]
)
_TOUCHING = ("open", "os.mkdir", "os.rename", "os.remove")


@contextmanager
def _started(
    module: str, flags: Sequence[str], watched: str, place: int
) -> Iterator[ForkServerProcess]:
    process = _SERVER.Process(target=_run, args=(module, list(flags), watched, place))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _run(module: str, flags: list[str], watched: str, place: int) -> None:
    """Run a command silently, up to the ``place``-th time that it touches what is watched."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    left = place

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in _TOUCHING and str(arguments[0]).startswith(watched):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    if place:
        sys.addaudithook(hear)
    sys.exit(import_module(module).main(flags))


def killed_at(place: int, module: str, flags: list[str], folder: Path) -> bool:
    """Run a command until just before it touches a file in its folder for the ``place``-th time.

    Returns
    -------
    bool
        Whether it was killed; it has ended well before that if not.
    """
    with _started(module, flags, str(folder), place) as process:
        process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def killed_after_rows(num_rows: int, log: Path, module: str, flags: list[str]) -> bool:
    """Run a command until a log, of it or of a process of its own, has that many rows."""

    def has_rows() -> bool:
        return log.exists() and log.read_text().count("\n") > num_rows

    with _started(module, flags, "", 0) as process:
        wait_until(lambda: process.exitcode is not None or has_rows())
        with suppress(ProcessLookupError):  # it has ended
            os.kill(process.pid or 0, signal.SIGSTOP)  # nothing new begins while we look
        started = descendants(process.pid or 0)
        process.kill()
        process.join()
        wait_until(lambda: not any(map(is_running, started)))
        return has_rows()
