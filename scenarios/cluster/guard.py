"""Guard of a node: kills the ranks that the node has started when it ends, however it ends.

It is run as a file of its own with nothing but the standard library. Lines on its input name
process groups: ``+12`` has begun, ``-12`` has ended. At the end of the input it kills those that
are left, and removes the folder that it is given.
"""

import os
import shutil
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress


def watch(lines: Iterable[str], folder: str) -> None:
    """Follow the lines to their end, then kill and clear away."""
    groups: set[int] = set()
    for line in lines:
        sign, number = line[0], int(line[1:])
        (groups.add if sign == "+" else groups.discard)(number)
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    watch(sys.stdin, sys.argv[1])
