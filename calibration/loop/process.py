"""The process that calibrates in the background: ``python -m calibration.loop.process FD``."""

import os
import sys
from functools import partial
from multiprocessing.connection import Connection

from calibration.loop.rounds import CalibrationRound, Order, calibrate
from calibration.loop.training_state import Subject
from calibration.reference.serving import serve


def main() -> None:
    """Take the subject from the connection, then orders; return rounds until it closes."""
    connection = Connection(int(sys.argv[1]))
    try:
        subject = connection.recv()
    except EOFError:  # the parent is gone already
        return
    serve(connection, partial(_calibrate, subject), wait_for_starter=_wait_for_end_of_input)


def _wait_for_end_of_input() -> None:
    """Wait until the parent ends: it holds the other end and writes nothing."""
    os.read(sys.stdin.fileno(), 1)


def _calibrate(subject: Subject, order: Order) -> tuple[CalibrationRound, float]:
    """Calibrate; also return the CPU time of this process and its programs so far. [s]"""
    found = calibrate(subject, order)
    used = os.times()
    return found, used.user + used.system + used.children_user + used.children_system


if __name__ == "__main__":
    main()
