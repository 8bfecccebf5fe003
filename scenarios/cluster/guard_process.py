"""The guard of a node, seen from the node: a process that outlives it."""

import subprocess
import sys
from pathlib import Path

from scenarios.cluster import guard


class GuardError(ValueError):
    """The guard is gone, and with it the promise that ranks end with their node."""


class Guard:
    """A guard of process groups, for as long as this process lives."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(folder)],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def add(self, group: int) -> None:
        """Kill a group when this process ends."""
        self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        """Forget a group, which has ended."""
        self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError as error:
            raise GuardError(
                "the guard has ended: nothing would end ranks with this node"
            ) from error

    def close(self) -> None:
        """Let the guard end."""
        self._process.communicate()
