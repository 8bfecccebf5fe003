"""Logs of training as the reference of a calibration: steps that real runs have taken."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.fit.errors import Errors, sum_errors
from calibration.fit.fit import NEGLIGIBLE_ERROR
from calibration.loop.rounds import CalibrationRound, Order
from calibration.measured.logged_runs import LoggedRun, read_logs
from calibration.measured.run_factors import LEAST_LOGS, fit_runs
from calibration.measurements.formats import measured_files
from des.plan.corrections import Corrections
from des.world.topology import Topology


@dataclass(frozen=True, kw_only=True)
class LoggedSubject:
    """A world that is trained on, and a folder of logs of runs on it.

    Raises
    ------
    ValueError
        If the folder has no log that can be simulated on the world, or a file of it is wrong.
    """

    topology: Topology
    logs: Path

    def __post_init__(self) -> None:
        for one in read_logs((self.logs,)):
            one.plan(self.topology)

    @property
    def reference(self) -> str:
        """Name of the reference."""
        return f"logs of training in {self.logs}"

    def sources(self) -> str:
        """Digest of the files as they are: names, sizes and times."""
        stats = [(str(path), path.stat()) for path in measured_files((self.logs,))]
        text = repr([(name, one.st_size, one.st_mtime_ns) for name, one in stats])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def calibrate(self, order: Order) -> CalibrationRound:
        """Fit factors to all logs, or test those in force, as `calibration.loop.rounds.calibrate`.

        Each log is held out of the fit that it judges. Logs that are wrong are left out by name, as
        one may be under way or of a run that crashed.
        """
        runs, left_out = self._runs()
        names = [one.name for one in runs]
        in_force = _errors(runs, self.topology, order.in_force)
        corrections, errors, reason = order.in_force, in_force, "the factors were tested"
        if order.kind == "fit":
            reason = f"a fit needs {LEAST_LOGS} logs, got {len(runs)}"
            if len(runs) >= LEAST_LOGS:
                fitted = fit_runs(runs, self.topology)
                held_out = np.array(fitted.held_out)
                gains = np.abs(in_force) - np.abs(held_out)
                gain, spread = np.mean(gains), np.std(gains, ddof=1) / len(gains) ** 0.5
                is_better = gain > max(float(spread), NEGLIGIBLE_ERROR)
                reason = f"gain {gain:.2%} ± {spread:.2%} over those in force"
                if is_better:
                    corrections, errors = fitted.corrections, held_out
        return CalibrationRound(
            num_cases=len(runs),
            before=_figure(names, in_force),
            after=_figure(names, errors),
            corrections=corrections,
            reason="; ".join((reason, *left_out)),
            region=None,
        )

    def _runs(self) -> tuple[list[LoggedRun], list[str]]:
        """Runs of the logs, and why others are left out."""
        runs: list[LoggedRun] = []
        left_out = []
        for path in measured_files((self.logs,)):
            try:
                found = read_logs((path,))
                for one in found:
                    one.plan(self.topology)
            except ValueError as error:
                left_out.append(f"left out: {error}")
            else:
                runs += found
        if not runs:
            raise ValueError(f"{self.logs}: must hold a log of training; {'; '.join(left_out)}")
        return runs, left_out


def _errors(runs: list[LoggedRun], topology: Topology, corrections: Corrections) -> np.ndarray:
    """Signed relative errors of steps under some factors."""
    predicted_s = np.array([one.predicted_s(topology, corrections) for one in runs])
    found: np.ndarray = predicted_s / [one.run.measured_iteration_s for one in runs] - 1.0
    return found


def _figure(names: list[str], errors: np.ndarray) -> Errors:
    return sum_errors(names, errors.tolist(), kendall_tau=None)
