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
    intrinsics.store(found, 3, left / right)
    intrinsics.store(found, 4, intrinsics.larger(left, right))
    intrinsics.store(found, 5, intrinsics.splat(intrinsics.lane_of(left, lane)))
    below, equal = intrinsics.below(left, right), intrinsics.equal(left, right)
    intrinsics.store(found, 6, intrinsics.choose(below, left, right))
    found[7, lane] = rows[0, lane]
    return below, equal


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
    found = np.zeros((8, LANES))
    below, equal = _vectors_of_two(given_numbers, found, lane)

    with np.errstate(all="ignore"):
        expected = [left + right, left - right, left * right, left / right]
    expected.append(np.where(left > right, left, right))
    expected.append(np.full(LANES, left[lane]))
    expected.append(np.where(left < right, left, right))
    np.testing.assert_array_equal(found[:7], expected)
    assert found[7, lane].tobytes() == left[lane].tobytes()
    assert [below >> each & 1 for each in range(LANES)] == (left < right).tolist()
    assert [equal >> each & 1 for each in range(LANES)] == (left == right).tolist()


@numba.njit
def _first_lane(mask):
    return intrinsics.first_lane(mask)


def test_the_first_lane_of_a_mask_is_its_lowest_bit():
    assert [_first_lane(mask) for mask in (1, 2, 12, 1 << 15)] == [0, 1, 2, 15]
