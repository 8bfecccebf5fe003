"""Fleets in compiled code: equal to the SimPy engine to the last bit, views included."""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from des.compiled.fleet import run_compiled, simulate_fixed
from des.serving.fleet_engine import run
from des.serving.fleet_settings import ScalingLimits, StartDelay
from tests.fleet_cases import GROWING, Drawn, Planned, drawn_stream, engine, fleet_world, request

LAYOUTS = ({"mixed": 2}, {"prompt": 2, "token": 2})


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**20),
    layout=st.sampled_from(LAYOUTS),
    rate_per_s=st.sampled_from([2.0, 10.0, 60.0]),
    capacity=st.sampled_from([800, 2000]),
)
@example(seed=7, layout={"mixed": 1}, rate_per_s=60.0, capacity=800)
def test_courses_without_changes_are_equal_to_the_last_bit(seed, layout, rate_per_s, capacity):
    small = engine(GROWING, kv_capacity_tokens=capacity, max_batch_size=12)
    world = fleet_world(drawn_stream(seed, 80, rate_per_s), layout, engine=small)
    rows = run(world, Planned(({},))).requests
    times = simulate_fixed(world)

    assert times.first_token_s.tolist() == [row.first_token_s for row in rows]
    assert times.end_s.tolist() == [row.end_s for row in rows]
    assert times.longest_gap_s.tolist() == [row.longest_gap_s for row in rows]
    assert times.num_restarts.tolist() == [row.num_restarts for row in rows]
    good = np.mean([row.is_good(world.slo) for row in rows])
    assert times.attainment(world.slo) == pytest.approx(good)


def test_a_batch_of_more_than_256_requests_takes_the_same_time_longer():
    """Three hundred short requests decode together for 5 tokens, half a second longer each."""
    times = dataclasses.replace(GROWING, above_256_s=0.5)
    requests = [request(number, 0.0, 1, 6) for number in range(300)]
    ends = []
    for each in (GROWING, times):
        large = engine(each, kv_capacity_tokens=9000, max_batch_size=400, chunk_tokens=512)
        world = fleet_world(requests, {"mixed": 1}, engine=large)
        found = simulate_fixed(world).end_s.tolist()
        assert found == [row.end_s for row in run(world, Planned(({},))).requests]
        ends.append(max(found))

    assert ends[1] - ends[0] == pytest.approx(5 * 0.5)


STARTS = (
    StartDelay(load_s=2.5),
    StartDelay(load_s=0.0, num_warm=1, num_sleeping=1, wake_s=0.7),
    StartDelay(load_s=2.0, variation=0.6, num_sleeping=2),
)


@st.composite
def scaling_worlds(draw):
    """Fleets with small memories and all rules that both engines have."""
    seed = draw(st.integers(0, 2**20))
    limits = ScalingLimits(
        max_total=8,
        drain_timeout_s=draw(st.sampled_from([0.0, 0.7])),
        drain_check_s=draw(st.sampled_from([0.0, 1.0])),
        drains_soonest=draw(st.booleans()),
        cooldown_s=draw(st.sampled_from([0.0, 1.5])),
    )
    return fleet_world(
        drawn_stream(seed, 80, draw(st.sampled_from([4.0, 12.0, 40.0]))),
        draw(st.sampled_from(LAYOUTS)),
        engine=engine(GROWING, kv_capacity_tokens=1200, max_batch_size=12),
        limits=limits,
        start=draw(st.sampled_from(STARTS)),
        transfers_contend=draw(st.booleans()),
        transfer_latency_s=draw(st.sampled_from([0.0, 0.01])),
        horizon_s=draw(st.sampled_from([None, 6.5])),
    )


@settings(max_examples=25)
@given(world=scaling_worlds(), seed=st.integers(0, 2**20))
def test_histories_of_fleets_that_scale_are_equal_to_the_last_bit(world, seed):
    """Requests, instances, views, decisions, gaps, log: all of the history."""
    assert run_compiled(world, Drawn(seed), seed) == run(world, Drawn(seed), seed)


def test_a_long_run_of_changes_uses_places_again():
    """More instances over time than places."""
    up_and_down = Planned(tuple({"mixed": 1 + 4 * (number % 2)} for number in range(400)))
    world = fleet_world(
        drawn_stream(3, 150, 4.0), {"mixed": 1}, start=StartDelay(load_s=0.2),
        limits=ScalingLimits(max_total=6, drain_timeout_s=0.3),
    )  # fmt: skip
    history = run_compiled(world, up_and_down)
    assert len(history.instances) > 12
    assert history == run(world, up_and_down)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"router": "jsq"}, "router must be 'least_work'"),
        ({"engine": engine(prefix_block_tokens=16)}, "prefix_block_tokens"),
        ({"engine": engine(swap_bytes_per_s=1e9)}, "swap_bytes_per_s"),
        ({"limits": ScalingLimits(max_total=8, drain_moves_out=True)}, "drain_moves_out"),
        ({"horizon_s": 3.0}, "horizon_s must be None"),
    ],
)
def test_rules_of_the_simpy_engine_alone_are_refused(changes, named):
    with pytest.raises(ValueError, match=named):
        simulate_fixed(fleet_world([request(0, 0.0)], {"mixed": 1}, **changes))
