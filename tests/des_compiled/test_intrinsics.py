"""Vectors of compiled code: in every lane what happens to a single number."""

import math

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from des.compiled.kernels import intrinsics
from des.compiled.kernels.intrinsics import LANES

SPECIAL = (0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan, 5e-324)


@numba.njit
def _vectors_of_two(numbers, results, lane):
    rows, found = intrinsics.vector_rows(numbers), intrinsics.vector_rows(results)
    left, right = intrinsics.load(rows, 0), intrinsics.load(rows, 1)
    intrinsics.store(found, 0, left + right)
    intrinsics.store(found, 1, left - right)
    intrinsics.store(found, 2, left * right)
    intrinsics.store(found, 3, intrinsics.larger(left, right))
    intrinsics.store(found, 4, intrinsics.splat(rows[0, lane]))
    found[5, lane] = rows[0, lane]
    return intrinsics.below(left, right)


@given(
    numbers=st.lists(
        st.sampled_from(SPECIAL) | st.floats(), min_size=2 * LANES, max_size=2 * LANES
    ),
    lane=st.integers(0, LANES - 1),
)
def test_vectors_do_what_numbers_do(numbers, lane):
    """To the last bit, and as Python compares what is not a number."""
    given_numbers = np.array(numbers).reshape(2, LANES)
    left, right = given_numbers
    found = np.zeros((6, LANES))
    below = _vectors_of_two(given_numbers, found, lane)

    with np.errstate(all="ignore"):
        expected = [left + right, left - right, left * right]
    expected.append(np.where(left > right, left, right))
    expected.append(np.full(LANES, left[lane]))
    np.testing.assert_array_equal(found[:5], expected)
    assert found[5, lane].tobytes() == left[lane].tobytes()
    assert [below >> each & 1 for each in range(LANES)] == (left < right).tolist()
