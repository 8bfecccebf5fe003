"""Errors of predictions over all cases as a function of correction factors, and its derivatives."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import repeat

import numpy as np

from calibration.cases.case import Measurement, PlacementCase
from calibration.fit.coordinates import STEPS, Coordinates, shifted
from calibration.fit.relative_errors import relative_errors
from des.plan.corrections import Corrections

Predictor = Callable[[PlacementCase, Corrections], Measurement]
"""Such as `calibration.fit.prediction.predict`."""

_CASES_PER_TASK = 8


class Residuals:
    """Residuals to minimise: relative errors of makespan, then those of exposed communication.

    Nothing is predicted twice. An executor predicts several cases at once; the order of the results
    and so every bit of them is the same without one.
    """

    def __init__(
        self,
        cases: Sequence[PlacementCase],
        reference: Sequence[Measurement],
        coordinates: Coordinates,
        predict: Predictor,
        executor: Executor | None,
    ) -> None:
        self._cases, self._reference = cases, reference
        self._coordinates, self._predict, self._executor = coordinates, predict, executor
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
        tasks = (
            repeat(self._predict, len(needed)),
            [self._cases[index] for index in needed],
            [unknown[index] for index in needed],
        )
        found: Iterator[list[Measurement]]
        if self._executor is None:
            found = map(_predict_all, *tasks)
        else:
            found = self._executor.map(_predict_all, *tasks, chunksize=_CASES_PER_TASK)
        for index, measurements in zip(needed, found, strict=True):
            self._known[index].update(zip(unknown[index], measurements, strict=True))


def errors_of(predicted: Sequence[Measurement], reference: Sequence[Measurement]) -> np.ndarray:
    """Relative errors of makespan and of exposed communication, shaped (2, N)."""
    errors = [relative_errors(*pair) for pair in zip(predicted, reference, strict=True)]
    return np.array([[each.makespan for each in errors], [each.exposed for each in errors]])


def _predict_all(
    predict: Predictor, case: PlacementCase, corrections: Sequence[Corrections]
) -> list[Measurement]:
    return [predict(case, each) for each in corrections]
