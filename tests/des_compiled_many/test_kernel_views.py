"""Views of arrays in compiled code."""

from typing import NamedTuple

import numba
import numpy as np
import pytest

from des.compiled.kernels.intrinsics import views_of


class Inner(NamedTuple):
    """Arrays of several kinds."""

    whole: np.ndarray
    flags: np.ndarray
    lanes: np.ndarray


class Outer(NamedTuple):
    """A tuple within a tuple, and a number."""

    inner: Inner
    real: np.ndarray
    factor: float


@numba.njit
def doubled(given):
    """Doubles what is not flagged, and adds up the rest."""
    views = views_of(given)
    inner, total = views.inner, 0.0
    for row in range(views.real.size):
        for column in range(2):
            if inner.flags[row]:
                total += views.real[row] * inner.whole[row, column] * views.factor
            else:
                inner.whole[row, column] = 2 * inner.whole[row, column]
        inner.lanes[2 * row + 1, 2] = total
    return total


@numba.njit
def viewed(array):
    """Reads the first number through a view."""
    return views_of(array)[0]


def test_views_read_and_write_the_arrays_themselves():
    inner = Inner(
        np.array([[1, 2], [3, 4], [5, 6]], dtype=np.int32),
        np.array([True, False, True]),
        np.zeros((3, 2, 4)),
    )

    total = doubled(Outer(inner, np.array([1.0, 10.0, 100.0]), 0.5))

    assert total == 0.5 * (1 + 2) + 0.5 * 100.0 * (5 + 6)
    assert inner.whole.tolist() == [[1, 2], [6, 8], [5, 6]]
    assert inner.lanes[:, 1, 2].tolist() == [1.5, 1.5, total]
    assert not inner.lanes[:, 0].any()


def test_an_array_with_gaps_has_no_view():
    with pytest.raises(TypeError, match="arrays must be contiguous"):
        viewed(np.arange(6.0)[::2])
