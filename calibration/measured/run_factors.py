"""Correction factors fitted to the steps of logged runs: compute, networks inside sites, WAN."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.measured.logged_runs import LoggedRun
from des.base.lazy import lazy_imports
from des.plan.corrections import Corrections
from des.world.topology import Topology

with lazy_imports(__name__):
    from scipy import optimize, stats

FACTORS = ("compute", "intra", "wan")
"""Names of the factors on times that are fitted."""

LEAST_EFFECT = 0.02
"""Relative change of some step per relative change of a factor, below which it is not fitted."""

LEAST_LOGS = 2
"""Logs of which each can be held out of a fit to the others."""

NOISE, PRIOR = 0.05, 0.5
"""Relative error of a step that no factor explains, and of the factors before any run."""

_STEP = 0.05
_MOST = math.log(5.0)
"""Factors beyond are no corrections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRuns:
    """Factors of logged runs.

    Attributes
    ----------
    factors, half_widths
        Factors on times by name, and the relative half width of their 95 % interval (jackknife);
        NaN where one run alone determines them.
    plain, fitted, held_out
        Signed errors of each run: as simulated, corrected, and corrected by the other runs alone;
        NaN of a run without others.
    """

    factors: dict[str, float]
    half_widths: dict[str, float]
    plain: tuple[float, ...]
    fitted: tuple[float, ...]
    held_out: tuple[float, ...]

    @property
    def corrections(self) -> Corrections:
        """Factors as other commands take them."""
        return _corrections(self.factors)


def _corrections(factors: dict[str, float]) -> Corrections:
    return Corrections(
        compute_time_factor=factors.get("compute", 1.0),
        intra_bandwidth_factor=1.0 / factors.get("intra", 1.0),
        wan_bandwidth_factor=1.0 / factors.get("wan", 1.0),
    )


def fit_runs(runs: Sequence[LoggedRun], topology: Topology) -> FittedRuns:
    """Fit a factor for every two runs, of those that the steps depend on.

    Notes
    -----
    ``log(predicted / measured)`` is fitted in the logarithms of the factors, with a prior of
    `PRIOR` about 1 against steps that are `NOISE` off, beyond which errors count by their size and
    no longer by their square (soft L1). Runs are left out linearly, about the solution.
    """
    logs = np.log([one.run.measured_iteration_s for one in runs])
    plain = _log_times(runs, topology, {})
    effects = {
        name: (_log_times(runs, topology, {name: 1.0 + _STEP}) - plain) / math.log1p(_STEP)
        for name in FACTORS
    }
    names = [name for name in FACTORS if np.max(np.abs(effects[name])) >= LEAST_EFFECT]
    names = names[: max(1, len(runs) // 2)]

    def off(theta: np.ndarray) -> np.ndarray:
        factors = dict(zip(names, np.exp(theta).tolist(), strict=True))
        apart = _log_times(runs, topology, factors) - logs
        return np.concatenate([apart, NOISE / PRIOR * theta])

    found = optimize.least_squares(
        off,
        np.zeros(len(names)),
        bounds=(-_MOST, _MOST),
        diff_step=(_STEP,),
        max_nfev=20,
        loss="soft_l1",
        f_scale=NOISE,
    )
    apart = off(found.x)
    slopes = (
        np.array([off(found.x + step) - apart for step in _STEP * np.eye(len(names))]).T / _STEP
    )
    weights = (1.0 + (apart / NOISE) ** 2) ** -0.25  # roots of those that the loss gives
    rows = weights[:, None] * slopes
    without = [
        found.x
        - np.linalg.lstsq(np.delete(rows, at, 0), np.delete(weights * apart, at), rcond=None)[0]
        for at in range(len(runs) if len(runs) > 1 else 0)
    ]
    held_out = [
        apart[at] + slopes[at] @ (one - found.x) if without else math.nan
        for at, one in enumerate(without or [found.x] * len(runs))
    ]
    return FittedRuns(
        factors=dict(zip(names, np.exp(found.x).tolist(), strict=True)),
        half_widths=dict(zip(names, _half_widths(without, len(names)), strict=True)),
        plain=_errors(plain - logs),
        fitted=_errors(apart[: len(runs)]),
        held_out=_errors(np.array(held_out)),
    )


def _log_times(
    runs: Sequence[LoggedRun], topology: Topology, factors: dict[str, float]
) -> np.ndarray:
    corrections = _corrections(factors)
    return np.log([one.predicted_s(topology, corrections) for one in runs])


def _errors(logs: np.ndarray) -> tuple[float, ...]:
    return tuple(np.expm1(logs).tolist())


def _half_widths(without: Sequence[np.ndarray], size: int) -> list[float]:
    """Half widths of 95 % intervals by the jackknife, in logarithms."""
    count = len(without)
    if count < 2:
        return [math.nan] * size
    estimates = np.array(without)
    deviations = estimates - estimates.mean(axis=0)
    error = np.sqrt((count - 1) / count * np.sum(deviations**2, axis=0))
    widths: list[float] = (float(stats.t.ppf(0.975, count - 1)) * error).tolist()
    return widths
