"""A fixed mixed pool in compiled code: equal to the SimPy engine to the last bit."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from des.compiled.fleet import simulate_fixed_pool
from des.serving.fleet_engine import run
from tests.fleet_cases import GROWING, Planned, drawn_stream, engine, fleet_world
from tests.pool_cases import request


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**20),
    num=st.integers(1, 4),
    rate_per_s=st.sampled_from([2.0, 10.0, 60.0]),
    capacity=st.sampled_from([800, 2000]),
)
@example(seed=7, num=1, rate_per_s=60.0, capacity=800)
def test_courses_are_equal_to_the_last_bit(seed, num, rate_per_s, capacity):
    small = engine(GROWING, kv_capacity_tokens=capacity, max_batch_size=12)
    world = fleet_world(drawn_stream(seed, 80, rate_per_s), {"mixed": num}, engine=small)
    rows = run(world, Planned(({},))).requests
    times = simulate_fixed_pool(world)

    assert times.first_token_s.tolist() == [row.first_token_s for row in rows]
    assert times.end_s.tolist() == [row.end_s for row in rows]
    assert times.longest_gap_s.tolist() == [row.longest_gap_s for row in rows]
    assert times.num_restarts.tolist() == [row.num_restarts for row in rows]
    good = np.mean([row.is_good(world.slo) for row in rows])
    assert times.attainment(world.slo) == pytest.approx(good)


def test_two_pools_are_refused():
    world = fleet_world([request(0, 0.0)], {"prompt": 1, "token": 1})
    with pytest.raises(ValueError, match="one pool, mixed"):
        simulate_fixed_pool(world)
