"""Correction factors as a vector: each number is 0 where nothing is corrected."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from des.plan.corrections import FACTORS, Corrections

OVERHEAD = FACTORS.index("message_overhead_s")

LARGEST_FACTOR = 4.0
"""Factors are sought between its inverse and itself; what is off by more is another fault."""

OVERHEAD_FRACTION = 1e-3
"""Unit of overheads over the median makespan, so that steps of all coordinates weigh alike."""

_MOST_UNITS = 100.0

STEPS = (1e-2, 1e-3)
"""Steps of numerical derivatives: far enough to see past the next change of the critical path.

A makespan is a maximum over paths. The slope of the present one alone leads astray; the finer step
is for where the coarse one leads no further.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinates:
    """Logarithms of factors, and the overhead in units of some duration."""

    overhead_unit_s: float

    def value(self, factor: int, coordinate: float) -> float:
        """Return the field of `Corrections` that belongs to a coordinate."""
        if factor == OVERHEAD:
            return coordinate * self.overhead_unit_s
        return math.exp(coordinate)

    def corrections(self, point: Sequence[float] | np.ndarray) -> Corrections:
        """Make the factors of a point."""
        values = (self.value(factor, float(each)) for factor, each in enumerate(point))
        return Corrections.from_plain(dict(zip(FACTORS, values, strict=True)))


def factor_bounds() -> tuple[np.ndarray, np.ndarray]:
    """Least and largest coordinates."""
    most = np.full(len(FACTORS), math.log(LARGEST_FACTOR))
    most[OVERHEAD] = _MOST_UNITS
    least = -most
    least[OVERHEAD] = 0.0
    return least, most


def shifted(point: np.ndarray, factor: int, step: float) -> np.ndarray:
    """Return a point for a numerical derivative, which is within the bounds as well."""
    other = point.copy()
    other[factor] += step if point[factor] + step <= factor_bounds()[1][factor] else -step
    return other
