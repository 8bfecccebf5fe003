"""Layer times solved from whole measured iterations, where these determine them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.measured.layer_tables import TimedPoint
from calibration.measured.runs import FITTED_FIGURES, MeasuredRun, PredictedRun, RunTable, Setup
from des.costs.layer_times import layer_seconds, speed_of
from des.costs.profiled_times import measured_layer
from des.world.layer_profiles import LayerProfile, ProfilePoint

LEAST_RUNS = 2
"""Runs of a point below which no run tells whether its time is the layers'."""

_LEAST_SHARE = 0.5
"""Share of its iterations that layers must have in order to be determined by them."""

_ROUNDS = 3
"""Times that the iteration is taken for linear in the time of a layer, about the last solution."""

_STEP = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedPoint:
    """Times of a layer at a place that fit the iterations measured there best.

    Attributes
    ----------
    scale
        Solved over those from shapes, the same for all passes.
    errors, left_out_errors, shaped_errors
        Signed errors of each run: by the solved times, by times solved without it, and by shapes.
    """

    timed: TimedPoint
    scale: float
    errors: tuple[float, ...]
    left_out_errors: tuple[float, ...]
    shaped_errors: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedTable:
    """Solved points of a table, and why others are left out."""

    name: str
    points: tuple[SolvedPoint, ...]
    left_out: tuple[str, ...]

    def lines(self) -> list[str]:
        """Errors in words, and what is left out."""
        fitted, apart, shaped = (
            np.concatenate([getattr(one, field) for one in self.points])
            for field in ("errors", "left_out_errors", "shaped_errors")
        )
        return [
            f"{self.name}: {len(self.points)} points solved from {len(fitted)} iterations; mean "
            f"absolute error {_percent(np.abs(fitted))} % of these, {_percent(np.abs(apart))} % of "
            f"each left out of the fit (mean {_percent(apart)} %), {_percent(np.abs(shaped))} % by "
            "shapes",
            *(f"{self.name}: left out: {reason}" for reason in self.left_out),
        ]


def _percent(errors: np.ndarray) -> str:
    return f"{100.0 * float(np.mean(errors)):.2f}"


def solve_table(table: RunTable) -> SolvedTable:
    """Solve the time of a layer at every place of a table that its runs determine.

    Notes
    -----
    Passes keep the proportions that shapes give them, as an iteration does not tell them apart; the
    head, messages, the optimiser's step and overheads are as fitted. What remains is one unknown a
    place, found by least squares of the relative errors of its runs.

    Raises
    ------
    ValueError
        If no place is determined.
    """
    of_place: dict[tuple[int, ...], list[MeasuredRun]] = {}
    for run in table.runs:
        key = run.hidden_size, run.num_heads, run.sequence_length, run.tensor, run.microbatch_size
        of_place.setdefault(key, []).append(run)
    points, left_out = [], []
    for (hidden, heads, sequence, tensor, size), runs in of_place.items():
        name = f"hidden_size {hidden}, num_heads {heads}, tensor {tensor}, microbatch_size {size}"
        name += f", sequence {sequence}"
        if len(runs) < LEAST_RUNS:
            left_out.append(f"{name}: must have at least {LEAST_RUNS} runs, got {len(runs)}")
            continue
        found = _solve(runs, table.setup)
        if isinstance(found, SolvedPoint):
            points.append(found)
        else:
            left_out.append(f"{name}: {found}")
    if not points:
        raise ValueError(f"{table.name}: no layer is determined by its runs: {left_out[0]}")
    return SolvedTable(name=table.name, points=tuple(points), left_out=tuple(left_out))


def _solve(runs: Sequence[MeasuredRun], setup: Setup) -> SolvedPoint | str:
    """Solve one place; a text says why its runs do not determine it."""
    shaped = _shaped_point(runs[0], setup)
    measured_s = np.array([run.measured_iteration_s for run in runs])
    scale = 1.0
    for _ in range(_ROUNDS):
        here_s = _predicted_s(runs, setup, shaped, scale)
        there_s = _predicted_s(runs, setup, shaped, scale * (1.0 + _STEP))
        slope = (there_s - here_s) / (scale * _STEP)
        rest = here_s - slope * scale
        scale = _fitted(slope / measured_s, rest / measured_s)
        share = float(np.min(slope * scale / measured_s))
        if share < _LEAST_SHARE:
            return (
                f"layers must take at least {_LEAST_SHARE:g} of every iteration to be determined, "
                f"got {share:.2g}"
            )
    found_s = _predicted_s(runs, setup, shaped, scale)
    without = [
        _fitted(np.delete(slope / measured_s, index), np.delete(rest / measured_s, index))
        for index in range(len(runs))
    ]
    return SolvedPoint(
        timed=TimedPoint(
            gpu=setup.gpu,
            exchanges="excluded",
            point=_scaled(shaped, scale),
            num_rows=len(runs),
            spreads=None,
        ),
        scale=scale,
        errors=tuple((found_s / measured_s - 1.0).tolist()),
        left_out_errors=tuple(((slope * without + rest) / measured_s - 1.0).tolist()),
        shaped_errors=tuple((_shaped_s(runs, setup) / measured_s - 1.0).tolist()),
    )


def _fitted(slope: np.ndarray, rest: np.ndarray) -> float:
    """Least squares of ``slope x + rest = 1``."""
    return float(slope @ (1.0 - rest) / (slope @ slope))


def _shaped_point(run: MeasuredRun, setup: Setup) -> ProfilePoint:
    """Point with the times that shapes give to a layer of a run."""
    found = PredictedRun(run=run, setup=setup, figures=FITTED_FIGURES)
    shape, gpu = found.workload.shape, speed_of(found.topology.domains[0])
    assert shape is not None
    assert gpu is not None
    passes = layer_seconds(shape, gpu, tensor=run.tensor, data=run.data, exchange_s=0.0)
    return ProfilePoint(
        layer=measured_layer(shape.architecture, 0),
        tensor=run.tensor,
        microbatch_size=run.microbatch_size,
        sequence=run.sequence_length,
        forward_s=passes.forward,
        input_gradient_s=passes.input_gradient,
        weight_gradient_s=passes.weight_gradient,
    )


def _scaled(point: ProfilePoint, scale: float) -> ProfilePoint:
    return replace(
        point,
        forward_s=scale * point.forward_s,
        input_gradient_s=scale * point.input_gradient_s,
        weight_gradient_s=scale * point.weight_gradient_s,
    )


def _predicted_s(
    runs: Sequence[MeasuredRun], setup: Setup, shaped: ProfilePoint, scale: float
) -> np.ndarray:
    """Iteration times with layers of scaled times, and the head from shapes, (N,). [s]"""
    profile = LayerProfile(
        name="solved", gpu=setup.gpu, points=(_scaled(shaped, scale),), extrapolates=True
    )
    return np.array(
        [
            PredictedRun(run=run, setup=setup, figures=FITTED_FIGURES, profile=profile).predicted_s
            for run in runs
        ]
    )


def _shaped_s(runs: Sequence[MeasuredRun], setup: Setup) -> np.ndarray:
    """Iteration times with layers from shapes, (N,). [s]"""
    return np.array(
        [PredictedRun(run=run, setup=setup, figures=FITTED_FIGURES).predicted_s for run in runs]
    )
