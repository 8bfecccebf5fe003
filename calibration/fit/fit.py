"""Fitting: the correction factors by which `des` is closest to a reference, if any help."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibration.cases.case import Measurement, PlacementCase
from calibration.fit.coordinates import OVERHEAD_FRACTION, Coordinates
from calibration.fit.identification import NotIdentified
from calibration.fit.residuals import Predictor, Residuals, errors_of
from calibration.fit.solution import Best, Solution, best_factors
from des.base.checks import require_seed
from des.base.parallel_map import ParallelMap
from des.plan.corrections import FACTORS, NO_CORRECTIONS, Corrections

NUM_FOLDS = 5

NEGLIGIBLE_ERROR = 1e-6
"""Mean error too small to correct: references round times to nanoseconds."""


class FactorInterval(NamedTuple):
    """A factor that was fitted, with the ends of its 95 % confidence interval."""

    factor: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Result of a fit of the correction factors, and whether it is of use.

    Parameters
    ----------
    corrections
        Factors to simulate with: the fitted ones if they are kept, else none.
    fitted
        The factors that were found.
    intervals
        One of each factor that was fitted, see `calibration.fit.identification.half_widths`.
    not_identified
        The other factors, which are 1 (the overhead 0), each with the reason.
    error_before, error_after
        Mean over the cases of the mean absolute relative error of makespan and exposed
        communication; after: of factors that were fitted without the case.
    gain_standard_error
        Of the difference of the two, over the cases.
    kept, reason
        Whether the error falls by more than that, and what there is to say about it.
    before, held_out
        Predictions of all cases that belong to the two errors.
    """

    corrections: Corrections
    fitted: Corrections
    intervals: tuple[FactorInterval, ...]
    not_identified: tuple[NotIdentified, ...]
    error_before: float
    error_after: float
    gain_standard_error: float
    kept: bool
    reason: str
    before: tuple[Measurement, ...]
    held_out: tuple[Measurement, ...]


def fit(
    cases: Sequence[PlacementCase],
    reference: Sequence[Measurement],
    *,
    predict: Predictor,
    at_work: ParallelMap = map,
    seed: int = 0,
) -> Fit:
    """Fit correction factors to what a reference measured.

    Parameters
    ----------
    cases, reference
        Cases, and their measurements.
    predict
        Predictor that the factors are to correct, such as `calibration.fit.prediction.predict`.
        With a pool of processes it must be a function of a module.
    at_work
        Map that predicts several cases at once, as `calibration.reference.pool.worker_processes`
        gives; the result is the same as with ``map``.
    seed
        Deals the cases out to the folds of the cross-validation.

    Raises
    ------
    ValueError
        If cases and measurements do not match, or there are too few for the factors.

    Notes
    -----
    Makes relative errors of makespan and of exposed communication small, under soft L1 loss, by
    Gauss-Newton steps within bounds. Which factors are fitted is decided on all cases. A fold's
    factors are the best ones by the linear model of its other cases at the best factors of all,
    which takes no predictions; the error of the cases left out is that of true predictions with
    these factors. Folds share cases, which the standard error of the gain leaves out.
    """
    require_seed("fit", "seed", seed)
    if len(cases) != len(reference):
        raise ValueError(
            f"fit: reference must hold one measurement for each of {len(cases)} cases, "
            f"got {len(reference)}"
        )
    require_enough(len(cases))
    median_s = float(np.median([each.makespan_s for each in reference]))
    coordinates = Coordinates(overhead_unit_s=OVERHEAD_FRACTION * median_s)
    residuals = Residuals(cases, reference, coordinates, predict, at_work)
    before = residuals.predictions([NO_CORRECTIONS] * len(cases))
    error = float(np.mean(case_errors(before, reference)))
    if error <= NEGLIGIBLE_ERROR:
        return _unfitted(before, error, f"an error of {error:.2g} needs no correction")
    best = best_factors(residuals)
    if best.solution is None:
        return _unfitted(before, error, "no factor is identified", best.not_identified)
    fold_corrections = _fold_corrections(best.solution, coordinates, len(cases), seed)
    held_out = residuals.predictions(fold_corrections)
    return _judge(
        best,
        best.solution,
        coordinates,
        reference=reference,
        before=before,
        held_out=held_out,
    )


def require_enough(num_cases: int) -> None:
    """Refuse to fit to fewer cases than there are factors, a fold of them held out."""
    left = num_cases - math.ceil(num_cases / NUM_FOLDS)
    if left <= len(FACTORS):
        raise ValueError(
            f"fit: cases must leave more than the {len(FACTORS)} factors when one of {NUM_FOLDS} "
            f"folds is held out, got {num_cases} cases, which leave {left}"
        )


def case_errors(predicted: Sequence[Measurement], reference: Sequence[Measurement]) -> np.ndarray:
    """Error of each case: mean of the absolute ones of makespan and exposed communication."""
    errors: np.ndarray = np.abs(errors_of(predicted, reference)).mean(axis=0)
    return errors


def _fold_corrections(
    solution: Solution, coordinates: Coordinates, num_cases: int, seed: int
) -> list[Corrections]:
    """Corrections for each case, fitted without it."""
    order = np.random.default_rng(seed).permutation(num_cases)
    found = [NO_CORRECTIONS] * num_cases
    for fold in range(NUM_FOLDS):
        held_out = order[fold::NUM_FOLDS]
        point = solution.best_point(np.delete(np.arange(num_cases), held_out))
        for index in held_out:
            found[index] = coordinates.corrections(point)
    return found


def _unfitted(
    before: Sequence[Measurement],
    error: float,
    reason: str,
    not_identified: Sequence[NotIdentified] = (),
) -> Fit:
    """Identity corrections, as nothing was fitted."""
    return Fit(
        corrections=NO_CORRECTIONS,
        fitted=NO_CORRECTIONS,
        intervals=(),
        not_identified=tuple(not_identified),
        error_before=error,
        error_after=error,
        gain_standard_error=0.0,
        kept=False,
        reason=reason,
        before=tuple(before),
        held_out=tuple(before),
    )


def _judge(
    best: Best,
    solution: Solution,
    coordinates: Coordinates,
    *,
    reference: Sequence[Measurement],
    before: Sequence[Measurement],
    held_out: Sequence[Measurement],
) -> Fit:
    """Keep the factors if they help cases that they were not fitted to."""
    errors_before, errors_after = (case_errors(each, reference) for each in (before, held_out))
    gains = errors_before - errors_after
    gain = float(np.mean(gains))
    standard_error = float(np.std(gains, ddof=1) / math.sqrt(len(gains)))
    kept = solution.is_settled and gain > standard_error
    reason = (
        f"the held-out error {'falls' if gain > 0.0 else 'rises'} by {abs(gain):.2%} "
        f"(standard error {standard_error:.2%}), "
        f"from {np.mean(errors_before):.2%} to {np.mean(errors_after):.2%}"
    )
    if not solution.is_settled:
        reason = "no best factors were found in the steps allowed"
    fitted = coordinates.corrections(solution.point)
    return Fit(
        corrections=fitted if kept else NO_CORRECTIONS,
        fitted=fitted,
        intervals=_intervals(solution, best.half_widths, coordinates),
        not_identified=best.not_identified,
        error_before=float(np.mean(errors_before)),
        error_after=float(np.mean(errors_after)),
        gain_standard_error=standard_error,
        kept=kept,
        reason=reason,
        before=tuple(before),
        held_out=tuple(held_out),
    )


def _intervals(
    solution: Solution, half_widths: np.ndarray, coordinates: Coordinates
) -> tuple[FactorInterval, ...]:
    intervals = []
    for factor, half_width in zip(solution.factors, half_widths, strict=True):
        best = float(solution.point[factor])
        ends = (best, best - half_width, best + half_width)
        values = (coordinates.value(factor, float(each)) for each in ends)
        intervals.append(FactorInterval(FACTORS[factor], *values))
    return tuple(intervals)
