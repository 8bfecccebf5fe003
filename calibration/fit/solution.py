"""The best factors for all cases: those that the data identify, at the least loss."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.fit.coordinates import LARGEST_FACTOR, OVERHEAD, STEPS, factor_bounds
from calibration.fit.identification import OUTLIER_ERROR, NotIdentified, half_widths, not_identified
from calibration.fit.residuals import Residuals
from des.base.lazy import lazy_imports
from des.plan.corrections import FACTORS

with lazy_imports(__name__):
    from scipy import optimize

_LARGEST_HALF_WIDTH = 0.25
"""Largest half-width of a logarithm: a factor known less exactly is not identified."""

_MOST_STEPS = 20

_DAMPING = OUTLIER_ERROR
"""Error for each unit of a step: what the data hardly tell does not run away."""

_PARTS_OF_STEP = (1.0, 0.5, 0.25, 0.125)
_NO_STEP = 1e-5
_NO_GAIN = 3e-3
"""Part of the loss that is not worth another step."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """The least loss, and the linear model of the errors there.

    ``residuals`` are shaped (2 N,), ``jacobian`` (2 N, factors fitted), ``point`` holds all
    coordinates, 0 for factors that are not fitted.
    """

    factors: tuple[int, ...]
    point: np.ndarray
    residuals: np.ndarray
    jacobian: np.ndarray
    is_settled: bool

    def loss_at(self, point: np.ndarray) -> float:
        """Loss by the linear model."""
        step = (point - self.point)[list(self.factors)]
        return loss(self.residuals + self.jacobian @ step)

    def best_point(self, cases: np.ndarray | None = None, *, damping: float = 0.0) -> np.ndarray:
        """Best coordinates by the linear model, for some cases or all; bounds are kept."""
        factors, num_cases = list(self.factors), len(self.residuals) // 2
        chosen = np.arange(num_cases) if cases is None else cases
        rows = np.concatenate([chosen, chosen + num_cases])
        residuals: np.ndarray = self.residuals[rows]
        jacobian: np.ndarray = self.jacobian[rows]
        centre, (least, most) = self.point[factors], factor_bounds()

        def errors(coordinates: np.ndarray) -> np.ndarray:
            step = coordinates - centre
            return np.concatenate([residuals + jacobian @ step, damping * step])

        def derivatives(_: np.ndarray) -> np.ndarray:
            return np.concatenate([jacobian, damping * np.eye(len(factors))])

        best = optimize.least_squares(
            errors,
            centre,
            derivatives,
            bounds=(least[factors], most[factors]),
            method="dogbox",  # may start and end on a bound: an overhead of 0 is one
            loss="soft_l1",
            f_scale=OUTLIER_ERROR,
        )
        point = self.point.copy()
        point[factors] = best.x
        return point


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Best:
    """The solution for the factors that the data identify, None where there are none.

    ``half_widths`` are those of the confidence intervals of their coordinates.
    """

    solution: Solution | None
    half_widths: np.ndarray
    not_identified: tuple[NotIdentified, ...]


def best_factors(residuals: Residuals) -> Best:
    """Fit all factors that the data identify; those that they do not are left out one by one.

    Intervals allow for what is left out as too uncertain: it might be anything.
    """
    point = np.zeros(len(FACTORS))
    factors, uncertain = list(range(len(FACTORS))), list[int]()
    left_out = not_identified(residuals.jacobian(point, factors), factors)
    while factors := [each for each in factors if FACTORS[each] not in dict(left_out)]:
        solution = _solve(residuals, factors, point)
        new = not_identified(solution.jacobian, factors)
        if not new:
            new = _least_certain(solution)
            uncertain += [FACTORS.index(each.factor) for each in new]
        if not new:
            widths = _half_widths(residuals, solution, uncertain)
            return Best(solution=solution, half_widths=widths, not_identified=tuple(left_out))
        left_out += new
        point = solution.point.copy()
        point[[FACTORS.index(each.factor) for each in new]] = 0.0
    return Best(solution=None, half_widths=np.zeros(0), not_identified=tuple(left_out))


def _half_widths(residuals: Residuals, solution: Solution, uncertain: Sequence[int]) -> np.ndarray:
    """Half-widths for the factors of a solution, as if the uncertain ones were fitted as well."""
    columns = [*solution.factors, *uncertain]
    jacobian = residuals.jacobian(solution.point, columns)
    hidden = {each.factor for each in not_identified(jacobian, columns)}
    seen = [column for column, factor in enumerate(columns) if FACTORS[factor] not in hidden]
    widths: np.ndarray = half_widths(jacobian[:, seen], solution.residuals)
    return widths[: len(solution.factors)]


def loss(residuals: np.ndarray) -> float:
    """Soft L1: about half the sum of squares of small errors, the sum of large ones."""
    spread = 1.0 + (residuals / OUTLIER_ERROR) ** 2
    return float(OUTLIER_ERROR**2 * np.sum(np.sqrt(spread) - 1.0))


def _solve(residuals: Residuals, factors: Sequence[int], start: np.ndarray) -> Solution:
    """Go to the best point of the linear model, or part of the way, until there is no better one.

    Predictions cost all the time, so each linear model is solved to the end, robust loss included.
    """
    fineness = 0
    here = _linear_model(residuals, factors, start, STEPS[fineness])
    for _ in range(_MOST_STEPS):
        now, aim = loss(here.residuals), here.best_point(damping=_DAMPING)
        step = aim - here.point
        if here.loss_at(aim) > (1.0 - _NO_GAIN) * now or np.abs(step).max() < _NO_STEP:
            break
        ways = (here.point + part * step for part in _PARTS_OF_STEP)
        better = next((each for each in ways if loss(residuals.at(each)) < now), None)
        if better is None or loss(residuals.at(better)) > (1.0 - _NO_GAIN) * now:
            fineness += 1
            if fineness == len(STEPS):
                break
        next_point = here.point if better is None else better
        here = _linear_model(residuals, factors, next_point, STEPS[fineness])
    else:
        return here
    return replace(here, is_settled=True)


def _linear_model(
    residuals: Residuals, factors: Sequence[int], point: np.ndarray, step: float
) -> Solution:
    return Solution(
        factors=tuple(factors),
        point=point,
        residuals=residuals.at(point),
        jacobian=residuals.jacobian(point, factors, step),
        is_settled=False,
    )


def _least_certain(solution: Solution) -> list[NotIdentified]:
    """Return the factor that can least be corrected by and why; nothing where all can be."""
    found = half_widths(solution.jacobian, solution.residuals)
    widths = dict(zip(solution.factors, found, strict=True))
    overhead_width = max(widths.pop(OVERHEAD, 0.0), _NO_STEP)
    if OVERHEAD in solution.factors and solution.point[OVERHEAD] <= overhead_width:
        return [NotIdentified(FACTORS[OVERHEAD], "cannot be told from 0")]
    least, most = factor_bounds()
    for factor in sorted(widths, key=widths.__getitem__, reverse=True):
        if not least[factor] < solution.point[factor] < most[factor]:
            reason = f"has no best value between {1.0 / LARGEST_FACTOR:g} and {LARGEST_FACTOR:g}"
            return [NotIdentified(FACTORS[factor], reason)]
        if widths[factor] > _LARGEST_HALF_WIDTH:
            times = float(np.exp(_LARGEST_HALF_WIDTH))
            reason = f"cannot be known as well as to a factor of {times:.2f}"
            return [NotIdentified(FACTORS[factor], reason)]
    return []
