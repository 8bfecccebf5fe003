"""Calibration in a background process, which shares nothing with the training."""

import os
import subprocess
import sys
import time
from functools import partial
from multiprocessing import Pipe
from typing import Protocol

from calibration.loop.logged_subject import LoggedSubject
from calibration.loop.rounds import CalibrationRound, Order, calibrate
from calibration.loop.training_state import Subject
from calibration.packet.measure_packets import child_cpu_s
from calibration.reference.binaries import ReferenceRunError
from calibration.reference.serving import GRACE_S, interrupts_held_back
from des.base.checks import require_positive

TIME_LIMIT_S = 1800.0
"""Limit of a calibration, from when it is waited for. [s]"""

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The others are for training."""


class Calibrator(Protocol):
    """Does one calibration after the other."""

    @property
    def cpu_s(self) -> float:
        """CPU time that calibrations have used so far. [s]"""

    def sources(self) -> str:
        """Digest of what the reference is made of; another one calls for a calibration."""

    def submit(self, order: Order) -> None:
        """Begin what is ordered; there is nothing else under way."""

    def collect(self) -> CalibrationRound:
        """Wait for what was ordered."""

    def close(self) -> None:
        """End, also in the middle of an order."""


class BackgroundCalibrator:
    """A process of its own that calibrates a subject; see `calibration.loop.rounds.calibrate`.

    It is started with the first order, as a fresh interpreter: what the main program has imported
    is not imported again. It ends with its parent, even if that is killed.
    """

    def __init__(
        self, subject: Subject | LoggedSubject, *, time_limit_s: float = TIME_LIMIT_S
    ) -> None:
        require_positive("calibration", "time_limit_s", time_limit_s)
        self._time_limit_s = time_limit_s
        self._subject = subject
        self._process: subprocess.Popen[bytes] | None = None
        self._cpu_s = 0.0

    @property
    def cpu_s(self) -> float:
        """CPU time of the process and its programs up to the last collected calibration. [s]"""
        return self._cpu_s

    @property
    def pid(self) -> int | None:
        """Number of the process; None while there is none."""
        return None if self._process is None else self._process.pid

    def sources(self) -> str:
        """Digest of the logs; empty where programs are the reference."""
        return self._subject.sources() if isinstance(self._subject, LoggedSubject) else ""

    def submit(self, order: Order) -> None:
        """Begin what is ordered.

        Raises
        ------
        ReferenceRunError
            If the process has died.
        """
        is_new = self._process is None
        if is_new:
            self._start()
        try:
            if is_new:
                self._connection.send(partial(time_round, self._subject))
            self._connection.send(order)
        except OSError as error:
            raise self._lost() from error

    def collect(self) -> CalibrationRound:
        """Wait for what was ordered.

        Raises
        ------
        ValueError, ReferenceRunError
            As `calibrate`; if the process has died, or is not done within the time limit.
        """
        deadline_s = time.monotonic() + self._time_limit_s
        while True:
            if not self._connection.poll(max(0.0, deadline_s - time.monotonic())):
                self.close()
                raise ReferenceRunError(
                    f"calibration: must end within {self._time_limit_s:g} s of being waited for; "
                    "its process was ended"
                )
            try:
                found = self._connection.recv()
            except (EOFError, OSError) as error:
                raise self._lost() from error
            if isinstance(found, Exception):
                raise found
            if found is not None:  # None says that the process is up
                calibration, self._cpu_s = found
                assert isinstance(calibration, CalibrationRound)
                return calibration

    def close(self) -> None:
        """End the process, also in the middle of an order."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()  # first: the end of the pipe would let it end by itself meanwhile
        self._connection.close()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdin is not None
        process.stdin.close()

    def _start(self) -> None:
        self._connection, theirs = Pipe()
        environment = os.environ | _ONE_THREAD | {"PYTHONPATH": os.pathsep.join(sys.path)}
        with (
            theirs,
            interrupts_held_back(),
        ):  # closed here, so that the death of the process is the end of the pipe
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "calibration.loop.process", str(theirs.fileno())],
                stdin=subprocess.PIPE,  # whose end tells it that we have ended
                pass_fds=[theirs.fileno()],
                env=environment,
            )

    def _lost(self) -> ReferenceRunError:
        assert self._process is not None
        exit_code = self._process.wait()
        self.close()
        return ReferenceRunError(f"calibration: its process died with exit code {exit_code}")


def time_round(subject: Subject | LoggedSubject, order: Order) -> tuple[CalibrationRound, float]:
    """Calibrate; also return the CPU time of this process and its programs so far. [s]

    Includes the child with ns-3, which keeps running.
    """
    if isinstance(subject, LoggedSubject):
        found = subject.calibrate(order)
    else:
        found = calibrate(subject, order)
    used = os.times()
    own_s = used.user + used.system + used.children_user + used.children_system
    return found, own_s + child_cpu_s()
