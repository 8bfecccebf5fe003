"""Fit of layer times from shapes to measured iterations: few constants, errors on other rows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from calibration.measured.run_sizes import MeasuredRun
from calibration.measured.runs import LayerTimeFigures, PredictedRun, Setup
from des.world.kernel_figures import KernelFigures

START = LayerTimeFigures(
    kernels=KernelFigures(
        matmul_efficiency=0.75,
        memory_efficiency=0.8,
        layer_launch_s=0.4e-3,
        iteration_overhead_s=5e-3,
    ),
    step_latency_s=5e-6,
)
"""First guesses: large products at three quarters of the peak, a dozen launches of 30 us."""

_BROAD = 0.05
"""Relative error from which on a run counts by its size, no more by its square."""

_PULL = 0.02
"""Weight of staying at the first guess, for constants that the runs do not tell."""

_STEP = 1e-3
"""Relative step of the numerical derivatives."""

SampleOfRuns = Sequence[tuple[MeasuredRun, Setup]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFit:
    """Fitted figures, and 95 % intervals of each as factors below and above."""

    figures: LayerTimeFigures
    intervals: tuple[float, ...]


def vector_of(figures: LayerTimeFigures) -> np.ndarray:
    """Logarithms of the five constants."""
    kernels = figures.kernels
    return np.log(
        [
            kernels.matmul_efficiency,
            kernels.memory_efficiency,
            kernels.layer_launch_s,
            kernels.iteration_overhead_s,
            figures.step_latency_s,
        ]
    )


def layer_time_figures(vector: np.ndarray) -> LayerTimeFigures:
    """Invert `vector_of`; efficiencies are at most 1."""
    matmul, memory, launch_s, overhead_s, latency_s = np.exp(vector).tolist()
    return LayerTimeFigures(
        kernels=KernelFigures(
            matmul_efficiency=min(1.0, matmul),
            memory_efficiency=min(1.0, memory),
            layer_launch_s=launch_s,
            iteration_overhead_s=overhead_s,
        ),
        step_latency_s=latency_s,
    )


def fit_kernels(sample: SampleOfRuns, on_step: Callable[[], None] = lambda: None) -> KernelFit:
    """Fit the constants to runs by the logarithms of predicted over measured times.

    Parameters
    ----------
    on_step
        Called after all runs have been predicted once.
    """
    start = vector_of(START)

    def residuals(vector: np.ndarray) -> np.ndarray:
        errors = errors_of_runs(sample, layer_time_figures(vector))
        on_step()
        return np.concatenate([np.log1p(errors), _PULL * (vector - start)])

    solved = least_squares(
        residuals, start, loss="soft_l1", f_scale=_BROAD, diff_step=[_STEP] * len(start)
    )
    variance = 2.0 * solved.cost / max(1, len(sample) - len(start))
    jacobian = np.asarray(solved.jac)
    spread = np.sqrt(variance * np.diag(np.linalg.inv(jacobian.T @ jacobian)))
    return KernelFit(
        figures=layer_time_figures(solved.x), intervals=tuple(np.exp(1.96 * spread).tolist())
    )


def errors_of_runs(sample: SampleOfRuns, figures: LayerTimeFigures) -> np.ndarray:
    """Signed errors of runs, (N,)."""
    return np.array(
        [
            PredictedRun(run=run, setup=setup, figures=figures).relative_error
            for run, setup in sample
        ]
    )


def cross_validated_errors(
    sample: SampleOfRuns, num_folds: int, on_step: Callable[[], None] = lambda: None
) -> np.ndarray:
    """Signed error of every run by constants fitted without its fold, (N,).

    Fold ``i`` is every ``num_folds``-th run from the ``i``-th on.
    """
    errors = np.full(len(sample), math.nan)
    for fold in range(num_folds):
        is_left_out = np.arange(len(sample)) % num_folds == fold
        kept = [one for one, out in zip(sample, is_left_out, strict=True) if not out]
        left_out = [one for one, out in zip(sample, is_left_out, strict=True) if out]
        errors[is_left_out] = errors_of_runs(left_out, fit_kernels(kept, on_step).figures)
    return errors
