"""Layer times solved from whole measured iterations, where these determine them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from calibration.measured.layer_tables import TimedPoint
from calibration.measured.run_sizes import MeasuredRun
from calibration.measured.runs import FITTED_FIGURES, PredictedRun, RunTable, Setup
from des.costs.layer_products import Spread
from des.costs.layer_times import layer_seconds, speed_of
from des.costs.profiled_times import name_layer
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
    points, left_out = [], []
    for place, runs in _by_place(table.runs).items():
        if len(runs) < LEAST_RUNS:
            left_out.append(f"{place}: must have at least {LEAST_RUNS} runs, got {len(runs)}")
            continue
        found = _solve(runs, table.setup)
        if isinstance(found, SolvedPoint):
            points.append(found)
        else:
            left_out.append(f"{place}: {found}")
    if not points:
        raise ValueError(f"{table.name}: no layer is determined by its runs: {left_out[0]}")
    return SolvedTable(name=table.name, points=tuple(points), left_out=tuple(left_out))


def predict_by_others(
    runs: Sequence[MeasuredRun], known: Sequence[MeasuredRun], setup: Setup
) -> list[float | None]:
    """Iteration times of runs by layers solved from the known runs of their places. [s]

    A run that is known itself is left out of its own prediction. None where no other run is known
    at the place, or layers are not determined there.
    """
    found: dict[MeasuredRun, float] = {}
    known_at = _by_place(known)
    for place, here in _by_place(runs).items():
        mates = known_at.get(place, [])
        if not mates:
            continue
        line = _line_of(mates, setup)
        if line.least_share < _LEAST_SHARE:
            continue
        for run in here:
            others = [one != run for one in mates]
            if any(others):
                scale = _fit(line.slope[others], line.rest[others])
                found[run] = _line_at(line.scale, [run], setup).of(scale)[0]
    return [found.get(run) for run in runs]


class _Place(NamedTuple):
    """Sizes of a layer, and how it was run."""

    hidden_size: int
    num_heads: int
    tensor: int
    microbatch_size: int
    sequence_length: int
    num_key_value_heads: int | None
    ffn_size: int | None
    gated_ffn: bool
    num_experts: int | None
    experts_per_token: int | None
    expert_ffn_size: int | None

    def __str__(self) -> str:
        return ", ".join(f"{name} {size}" for name, size in self._asdict().items() if size)


def _by_place(runs: Iterable[MeasuredRun]) -> dict[_Place, list[MeasuredRun]]:
    found: dict[_Place, list[MeasuredRun]] = {}
    for run in runs:
        place = _Place(*(getattr(run, name) for name in _Place._fields))
        found.setdefault(place, []).append(run)
    return found


class _Line(NamedTuple):
    """Iteration times of runs over measured ones, linear in the scale of layers about one scale."""

    scale: float
    slope: np.ndarray
    rest: np.ndarray
    measured_s: np.ndarray

    @property
    def least_share(self) -> float:
        """Least share of an iteration that layers take."""
        return float(np.min(self.slope * self.scale))

    def of(self, scale: float) -> list[float]:
        """Iteration times with layers of another scale. [s]"""
        times_s: list[float] = ((self.slope * scale + self.rest) * self.measured_s).tolist()
        return times_s


def _line_at(scale: float, runs: Sequence[MeasuredRun], setup: Setup) -> _Line:
    measured_s = np.array([run.measured_iteration_s for run in runs])
    shaped = _make_shape_point(runs[0], setup)
    here = _predicted_s(runs, setup, shaped, scale) / measured_s
    there = _predicted_s(runs, setup, shaped, scale * (1.0 + _STEP)) / measured_s
    slope = (there - here) / (scale * _STEP)
    return _Line(scale=scale, slope=slope, rest=here - slope * scale, measured_s=measured_s)


def _line_of(runs: Sequence[MeasuredRun], setup: Setup) -> _Line:
    """Line about the scale that fits all runs of a place."""
    scale = 1.0
    for _ in range(_ROUNDS):
        line = _line_at(scale, runs, setup)
        scale = _fit(line.slope, line.rest)
        if scale <= 0.0:
            break
    return line._replace(scale=scale)


def _solve(runs: Sequence[MeasuredRun], setup: Setup) -> SolvedPoint | str:
    """Solve one place; a text says why its runs do not determine it."""
    line = _line_of(runs, setup)
    if line.least_share < _LEAST_SHARE:
        return (
            f"layers must take at least {_LEAST_SHARE:g} of every iteration to be determined, "
            f"got {line.least_share:.2g}"
        )
    shaped = _make_shape_point(runs[0], setup)
    found_s = _predicted_s(runs, setup, shaped, line.scale)
    without = [
        _fit(np.delete(line.slope, index), np.delete(line.rest, index))
        for index in range(len(runs))
    ]
    return SolvedPoint(
        timed=TimedPoint(
            gpu=setup.gpu,
            exchanges="excluded",
            point=_scale(shaped, line.scale),
            num_rows=len(runs),
            spreads=None,
        ),
        scale=line.scale,
        errors=tuple((found_s / line.measured_s - 1.0).tolist()),
        left_out_errors=tuple((line.slope * without + line.rest - 1.0).tolist()),
        shaped_errors=tuple((_shaped_s(runs, setup) / line.measured_s - 1.0).tolist()),
    )


def _fit(slope: np.ndarray, rest: np.ndarray) -> float:
    """Least squares of ``slope x + rest = 1``."""
    return float(slope @ (1.0 - rest) / (slope @ slope))


def _make_shape_point(run: MeasuredRun, setup: Setup) -> ProfilePoint:
    """Point with the times that shapes give to a layer of a run."""
    found = PredictedRun(run=run, setup=setup, figures=FITTED_FIGURES)
    shape, gpu = found.workload.shape, speed_of(found.topology.domains[0])
    assert shape is not None
    assert gpu is not None
    passes = layer_seconds(
        shape,
        gpu,
        tensor=run.tensor,
        data=run.data,
        exchange_s=0.0,
        spread=Spread(sequence_parallel=setup.sequence_parallel),
    )
    return ProfilePoint(
        layer=name_layer(shape.architecture, 0),
        tensor=run.tensor,
        microbatch_size=run.microbatch_size,
        sequence=run.sequence_length,
        forward_s=passes.forward,
        input_gradient_s=passes.input_gradient,
        weight_gradient_s=passes.weight_gradient,
    )


def _scale(point: ProfilePoint, scale: float) -> ProfilePoint:
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
        name="solved", gpu=setup.gpu, points=(_scale(shaped, scale),), extrapolates=True
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
