"""The cost of a rank among candidates, against sorting."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agents.judge.candidates import nth_cost


@given(
    costs=st.lists(st.sampled_from([0.0, 1.0, 1.5, math.inf]) | st.floats(0.0, 9.0), min_size=1),
    data=st.data(),
)
def test_the_cost_of_a_rank_is_that_of_sorted_costs(costs, data):
    array = np.array(costs)
    count = data.draw(st.integers(1, len(costs)))
    rank = data.draw(st.integers(1, len(costs)))

    found = nth_cost(array, count, rank)

    assert found == (sorted(costs[:count])[rank - 1] if rank <= count else math.inf)
    assert array.tolist() == costs
