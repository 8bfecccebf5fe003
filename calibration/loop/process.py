"""The process that calibrates in the background: ``python -m calibration.loop.process FD``."""

import os
import sys
from multiprocessing.connection import Connection

from calibration.reference.serving import serve


def main() -> None:
    """Take the task from the connection, then its orders; return rounds until it closes."""
    serve(Connection(int(sys.argv[1])), _wait_for_end_of_input)


def _wait_for_end_of_input() -> None:
    """Wait until the parent ends: it holds the other end and writes nothing."""
    os.read(sys.stdin.fileno(), 1)


if __name__ == "__main__":
    main()
