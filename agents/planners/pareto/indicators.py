"""Fronts of several objectives and their distances: plain functions of arrays.

Points are rows, objectives columns, and less is better in all of them; who wants more of a figure
gives it negated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from pymoo.indicators import hv  # type: ignore[import-untyped]
    from pymoo.indicators import igd_plus as distances

Points = npt.NDArray[np.float64]
"""Shaped (points, objectives)."""

EPS_FRACTION = 0.01
"""Share of an objective's range over the reference by which a covering point may be worse."""

REFERENCE_POINT = 1.1
"""Corner of the hypervolume, in all objectives, where the reference reaches from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMetrics:
    """Distance of a set of points from a reference front, by several measures.

    Attributes
    ----------
    coverage
        Share of the reference that the set covers, see `coverage`.
    hypervolume_ratio
        Hypervolume of the set over that of the reference. Above 1 where the set exceeds it.
    igd_plus
        Mean distance from the reference to what the set leaves of it, see `igd_plus`; 0 at best.
    num_points, num_reference
        Points of the set that none of it dominates, and of the reference.
    """

    coverage: float
    hypervolume_ratio: float
    igd_plus: float
    num_points: int
    num_reference: int


def non_dominated(points: Points) -> npt.NDArray[np.int64]:
    """Positions of the points that no other dominates, in their order; of equal ones the first.

    One dominates another that is no less in any objective and greater in one.

    Raises
    ------
    ValueError
        If the points are not finite rows of one length.

    Examples
    --------
    >>> non_dominated(np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0], [1.0, 3.0]]))
    array([0, 1])
    """
    points = _check("points", points)
    left = np.lexsort(points.T[::-1])  # a point that dominates or equals another comes before it
    kept: list[int] = []
    while len(left):
        kept.append(int(left[0]))
        left = left[np.any(points[left] < points[left[0]], axis=1)]
    return np.array(sorted(kept), dtype=np.int64)


def coverage(points: Points, reference: Points, eps_fraction: float = EPS_FRACTION) -> float:
    """Share of the reference that is weakly eps-dominated by one of the points.

    A point covers another if it is greater by at most ``eps_fraction`` of the range of an objective
    over the reference, in each of them. An objective without a range allows nothing.

    Raises
    ------
    ValueError
        If there is no reference, or the points are of other objectives.

    Examples
    --------
    >>> reference = np.array([[0.0, 10.0], [10.0, 0.0]])
    >>> coverage(np.array([[0.1, 10.0]]), reference), coverage(np.array([[0.2, 0.0]]), reference)
    (0.5, 0.5)
    """
    points, reference = _both(points, reference)
    eps = eps_fraction * (reference.max(axis=0) - reference.min(axis=0))
    reached = points[np.newaxis] <= reference[:, np.newaxis] + eps
    return float(reached.all(axis=2).any(axis=1).mean())


def hypervolume(points: Points, reference: Points) -> float:
    """Volume that the points dominate, up to `REFERENCE_POINT` where the reference ends at 1.

    Each objective is shifted and scaled so that the reference reaches from 0 to 1; one in which all
    of the reference is equal is scaled by that figure. Points outside the corner add nothing.

    Raises
    ------
    ValueError
        If there is no reference, or the points are of other objectives.

    Examples
    --------
    >>> reference = np.array([[0.0, 4.0], [2.0, 0.0]])
    >>> round(hypervolume(reference, reference), 6)  # 1.1 x 0.1 and 0.1 x 1.1, less 0.1 x 0.1
    0.21
    >>> round(hypervolume(np.array([[0.0, 0.0]]), reference), 6)
    1.21
    """
    points, reference = _both(points, reference)
    if not len(points):
        return 0.0
    corner = np.full(points.shape[1], REFERENCE_POINT)
    return float(hv.HV(ref_point=corner)(_scale(points, reference)))


def igd_plus(points: Points, reference: Points) -> float:
    """Mean over the reference of the distance to the nearest of the points, on the same scales.

    What a point is better by does not count [1]_, so points that cover all of the reference get 0;
    no points get ``inf``.

    Raises
    ------
    ValueError
        If there is no reference, or the points are of other objectives.

    References
    ----------
    .. [1] H. Ishibuchi et al., "Modified distance calculation in generational distance and inverted
       generational distance", EMO 2015.
    """
    points, reference = _both(points, reference)
    if not len(points):
        return math.inf
    return float(distances.IGDPlus(_scale(reference, reference))(_scale(points, reference)))


def front_metrics(points: Points, reference: Points) -> FrontMetrics:
    """Compare points with a reference front.

    Raises
    ------
    ValueError
        If there is no reference, or the points are of other objectives.
    """
    points, reference = _both(points, reference)
    return FrontMetrics(
        coverage=coverage(points, reference),
        hypervolume_ratio=hypervolume(points, reference) / hypervolume(reference, reference),
        igd_plus=igd_plus(points, reference),
        num_points=len(non_dominated(points)),
        num_reference=len(reference),
    )


def simplex_lattice(num_points: int, num_weights: int = 3) -> Points:
    """Weights spread evenly: all that are multiples of 1/H and add up to 1, the first one falling.

    Parameters
    ----------
    num_points
        Number of weights; there is such a lattice of 1, 3, 6, 10, 15, 21, 28, 36, 45, ... three
        weights.

    Raises
    ------
    ValueError
        If no lattice has that many; the message names the next ones.

    Examples
    --------
    >>> simplex_lattice(6)
    array([[1. , 0. , 0. ],
           [0.5, 0.5, 0. ],
           [0.5, 0. , 0.5],
           [0. , 1. , 0. ],
           [0. , 0.5, 0.5],
           [0. , 0. , 1. ]])
    """
    parts = 0
    while (count := math.comb(parts + num_weights - 1, num_weights - 1)) < num_points:
        parts += 1
    if count != num_points:
        below = math.comb(parts + num_weights - 2, num_weights - 1) if parts else count
        raise ValueError(
            f"simplex lattice: num_points must be one that {num_weights} weights have, such as "
            f"{below} or {count}; got {num_points!r}"
        )
    if parts == 0:
        return np.full((1, num_weights), 1.0 / num_weights)
    return np.array(_compositions(parts, num_weights), dtype=np.float64) / parts


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(total,)]
    return [
        (first, *rest)
        for first in range(total, -1, -1)
        for rest in _compositions(total - first, parts - 1)
    ]


def _scale(points: Points, reference: Points) -> Points:
    low = reference.min(axis=0)
    width = reference.max(axis=0) - low
    width = np.where(width > 0.0, width, np.abs(low))
    scaled: Points = (points - low) / np.where(width > 0.0, width, 1.0)
    return scaled


def _both(points: Points, reference: Points) -> tuple[Points, Points]:
    reference = _check("reference", reference)
    if not len(reference):
        raise ValueError("front: reference must hold at least one point, got none")
    num_objectives = reference.shape[1]
    if not len(points):
        return np.empty((0, num_objectives)), reference
    points = _check("points", points)
    if points.shape[1] != num_objectives:
        raise ValueError(
            f"front: points must have the {num_objectives} objectives of the reference, "
            f"got {points.shape[1]}"
        )
    return points, reference


def _check(name: str, points: Points | Sequence[Sequence[float]]) -> Points:
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ValueError(
            f"front: {name} must be finite rows of objectives, got an array shaped {array.shape}"
        )
    return array
