"""Errors of predictions over all cases as a function of correction factors, and its derivatives."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from calibration.cases.case import Measurement, PlacementCase
from calibration.fit.coordinates import STEPS, Coordinates, shifted
from calibration.fit.relative_errors import relative_errors
from des.base.parallel_map import ParallelMap
from des.plan.corrections import Corrections

Predictor = Callable[[PlacementCase, Corrections], Measurement]
"""Such as `calibration.fit.prediction.predict`."""


class Residuals:
    """Residuals to minimise: relative errors of makespan, then those of exposed communication.

    Nothing is predicted twice. ``at_work`` may predict several cases at once; the order of the
    results and so every bit of them is the same as with ``map``.
    """

    def __init__(
        self,
        cases: Sequence[PlacementCase],
        reference: Sequence[Measurement],
        coordinates: Coordinates,
        predict: Predictor,
        at_work: ParallelMap,
    ) -> None:
        self._cases, self._reference = cases, reference
        self._coordinates, self._predict, self._at_work = coordinates, predict, at_work
        self._known: list[dict[Corrections, Measurement]] = [{} for _ in cases]

    def predictions(self, corrections: Sequence[Corrections]) -> list[Measurement]:
        """Predict each case with corrections of its own."""
        self._learn([(each,) for each in corrections])
        return [known[each] for known, each in zip(self._known, corrections, strict=True)]

    def at(self, point: np.ndarray) -> np.ndarray:
        """Errors of all makespans, then of all exposed communication, shaped (2 N,)."""
        corrections = self._coordinates.corrections(point)
        predicted = self.predictions([corrections] * len(self._cases))
        return errors_of(predicted, self._reference).ravel()

    def jacobian(
        self, point: np.ndarray, factors: Iterable[int], step: float = STEPS[0]
    ) -> np.ndarray:
        """Derivatives of the errors by some coordinates, shaped (2 N, factors)."""
        others = [shifted(point, factor, step) for factor in factors]
        wanted = tuple(self._coordinates.corrections(each) for each in (point, *others))
        self._learn([wanted] * len(self._cases))
        here = self.at(point)
        columns = [(self.at(each) - here) / float(np.sum(each - point)) for each in others]
        return np.stack(columns, axis=1)

    def _learn(self, wanted: Sequence[Sequence[Corrections]]) -> None:
        """Predict what is not known yet; all predictions of a case go to one worker."""
        unknown = [
            tuple(each for each in dict.fromkeys(corrections) if each not in known)
            for known, corrections in zip(self._known, wanted, strict=True)
        ]
        needed = [index for index, corrections in enumerate(unknown) if corrections]
        tasks = [(self._cases[index], unknown[index]) for index in needed]
        found = self._at_work(partial(_predict_all, self._predict), tasks)
        for index, measurements in zip(needed, found, strict=True):
            self._known[index].update(zip(unknown[index], measurements, strict=True))


def errors_of(predicted: Sequence[Measurement], reference: Sequence[Measurement]) -> np.ndarray:
    """Relative errors of makespan and of exposed communication, shaped (2, N)."""
    errors = [relative_errors(*pair) for pair in zip(predicted, reference, strict=True)]
    return np.array([[each.makespan for each in errors], [each.exposed for each in errors]])


def _predict_all(
    predict: Predictor, task: tuple[PlacementCase, Sequence[Corrections]]
) -> list[Measurement]:
    case, corrections = task
    return [predict(case, each) for each in corrections]
