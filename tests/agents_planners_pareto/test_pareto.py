"""Fronts and their indicators, by hand and by their laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agents.planners.pareto.indicators import (
    coverage,
    front_metrics,
    hypervolume,
    igd_plus,
    non_dominated,
    simplex_lattice,
)

CORNERS = np.array([[0.0, 10.0], [5.0, 5.0], [10.0, 0.0]])

clouds = st.integers(1, 12).flatmap(
    lambda num: arrays(np.float64, (num, 3), elements=st.integers(0, 5).map(float))
)


def dominates(one, other):
    return bool(np.all(one <= other) and np.any(one < other))


@given(points=clouds)
def test_what_is_left_is_what_no_other_dominates(points):
    kept = non_dominated(points)

    for row, point in enumerate(points):
        is_first = not any(np.array_equal(point, earlier) for earlier in points[:row])
        is_best = not any(dominates(other, point) for other in points)
        assert (row in kept) == (is_best and is_first)


def test_a_point_covers_what_it_misses_by_a_hundredth_of_the_range():
    """Ranges are 10, so 0.1 each: (5.1, 5.1) covers the middle alone, (5.11, 5) nothing."""
    assert coverage(np.array([[5.1, 5.1]]), CORNERS) == pytest.approx(1 / 3)
    assert coverage(np.array([[5.11, 5.0]]), CORNERS) == 0.0
    assert coverage(np.array([[0.0, 0.0]]), CORNERS) == 1.0


def test_the_range_is_that_of_the_reference():
    """A far point of the set does not widen what may be missed."""
    assert coverage(np.array([[5.2, 5.0], [1e6, 1e6]]), CORNERS) == 0.0


def test_an_objective_without_range_allows_nothing():
    reference = np.array([[1.0, 7.0], [2.0, 7.0]])

    assert coverage(np.array([[1.0, 7.001]]), reference) == 0.0
    assert coverage(np.array([[1.0, 7.0]]), reference) == 1.0


def test_the_hypervolume_of_three_steps_by_hand():
    """Scaled corners (0, 1), (1/2, 1/2), (1, 0) up to 1.1: 0.5 x 0.1 + 0.5 x 0.6 + 0.1 x 1.1."""
    assert hypervolume(CORNERS, CORNERS) == pytest.approx(0.05 + 0.3 + 0.11)


def test_a_point_beyond_the_corner_adds_nothing():
    assert hypervolume(np.array([[11.01, 0.0]]), CORNERS) == 0.0
    assert hypervolume(np.array([[0.0, 11.01], [5.0, 5.0]]), CORNERS) == pytest.approx(0.36)


def test_igd_plus_counts_only_what_is_worse():
    """(5, 5) is 0.5 right of the first, 0 off the second, 0.5 above the third: a third in all."""
    assert igd_plus(np.array([[5.0, 5.0]]), CORNERS) == pytest.approx(1 / 3)
    assert igd_plus(np.array([[-3.0, -8.0]]), CORNERS) == 0.0


def test_no_points_cover_nothing_and_are_infinitely_far():
    metrics = front_metrics(np.empty((0, 2)), CORNERS)

    assert (metrics.coverage, metrics.hypervolume_ratio, metrics.igd_plus) == (0.0, 0.0, np.inf)
    assert (metrics.num_points, metrics.num_reference) == (0, 3)


@given(points=clouds)
def test_a_front_covers_itself_and_its_ratio_is_one(points):
    front = points[non_dominated(points)]
    metrics = front_metrics(points, front)

    assert metrics.coverage == 1.0
    assert metrics.hypervolume_ratio == pytest.approx(1.0)
    assert metrics.igd_plus == 0.0


@given(points=clouds, factor=st.floats(0.1, 10.0), shift=st.floats(1.0, 5.0))
def test_other_units_change_nothing(points, factor, shift):
    """Where each objective has a range: all is measured on the scales of the reference."""
    front = np.concatenate([points, [[-1.0, 6.0, 6.0], [6.0, -1.0, 6.0], [6.0, 6.0, -1.0]]])
    front = front[non_dominated(front)]
    some = front[::2] + 0.5
    before, after = (
        front_metrics(one * k + d, front * k + d)
        for one, k, d in [(some, 1.0, 0.0), (some, factor, shift)]
    )

    assert after.coverage == before.coverage
    assert after.hypervolume_ratio == pytest.approx(before.hypervolume_ratio)
    assert after.igd_plus == pytest.approx(before.igd_plus)


def test_lattices_of_weights_add_up_to_one_and_differ():
    for num in (1, 3, 6, 10, 15, 21, 28, 36):
        weights = simplex_lattice(num)
        assert weights.shape == (num, 3)
        assert weights.sum(axis=1) == pytest.approx(1.0)
        assert len(np.unique(weights, axis=0)) == num


def test_a_lattice_that_does_not_exist_is_refused_with_its_neighbours():
    with pytest.raises(ValueError, match="such as 28 or 36; got 30"):
        simplex_lattice(30)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.array([[1.0, np.nan]]), "points must be finite"),
        (np.array([[1.0, 2.0, 3.0]]), "2 objectives of the reference, got 3"),
    ],
)
def test_points_that_cannot_be_compared_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        front_metrics(points, CORNERS)


def test_an_empty_reference_is_refused():
    with pytest.raises(ValueError, match="at least one point"):
        coverage(CORNERS, np.empty((0, 2)))
