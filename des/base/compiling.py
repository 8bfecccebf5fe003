"""Lines on stderr while Numba compiles: waiting for it is named, and timed."""

import sys
import time
from pathlib import Path
from typing import Any

from numba.core import event

SHORT_S = 0.2
"""Compiling that takes less is not worth a line of its own. [s]"""


class CompilingLines(event.Listener):
    """Says when a process begins to compile, and how long each function took.

    Only what is not in the cache is compiled. What a function calls is compiled with it and is part
    of its time. Numba compiles one function at a time, so a count is enough to know the outermost.

    Parameters
    ----------
    folder
        Folder of the compiled code; None if it cannot be kept.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._depth = 0
        self._started_s = 0.0
        self._is_announced = False

    def continue_another(self) -> None:
        """Print no announcement: the process for which this one compiles has printed it."""
        self._is_announced = True

    def on_start(self, _: Any) -> None:
        """Announce the first function, and note when each outermost one begins."""
        if self._depth == 0:
            self._started_s = time.perf_counter()
            if not self._is_announced:
                self._is_announced = True
                kept = "not kept" if self._folder is None else f"kept in {self._folder}"
                _say(f"compiling for this machine, {kept}")
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Say how long an outermost function took."""
        self._depth -= 1
        took_s = time.perf_counter() - self._started_s
        if self._depth == 0 and took_s >= SHORT_S:
            _say(f"compiling: {event.data['dispatcher'].__name__} took {took_s:.1f} s")


def _say(line: str) -> None:
    """Write a line where there is a stderr, in one piece, as several processes share it."""
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def say_when_compiling(folder: Path | None) -> CompilingLines:
    """Have this process say on stderr what it compiles; returns who says it."""
    lines = CompilingLines(folder)
    event.register("numba:compile", lines)  # type: ignore[no-untyped-call]
    return lines
