"""Fleets: courses by hand, queues of one server, conservation under random scaling, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from des.serving.fleet_engine import run
from des.serving.fleet_figures import run_figures
from des.serving.fleet_settings import ScalingLimits, Slo
from des.serving.fleet_world import admitted
from tests.fleet_cases import (
    GROWING,
    SECOND,
    Drawn,
    Planned,
    drawn_stream,
    engine,
    fleet_world,
    request,
)

KEPT = Planned(({},))


def test_a_prompt_of_chunks_then_a_token_an_iteration():
    """250 tokens are two chunks of 128; the second gives the first of 4 tokens."""
    world = fleet_world([request(0, 0.5, 250, 4)], {"mixed": 1}, engine=engine(SECOND))
    (row,) = run(world, KEPT).requests

    assert row.ttft_s == 2.0
    assert row.e2e_s == 5.0
    assert row.longest_gap_s == 1.0


def test_an_arrival_cuts_a_run_after_the_iteration_that_runs():
    """The second request comes in the middle of the third iteration of the first."""
    requests = [request(0, 0.0, 10, 6), request(1, 2.5, 10, 2)]
    world = fleet_world(requests, {"mixed": 1}, engine=engine(SECOND))
    first, second = run(world, KEPT).requests

    assert (first.first_token_s, first.end_s) == (1.0, 6.0)
    assert (second.first_token_s, second.end_s) == (4.0, 5.0)


def test_a_request_is_sent_between_pools_at_the_rate_of_transfers():
    """Tokens of 1 MB at 1 GB/s: 100 and 28 are read at 2.0 s; alone, the short one is first."""
    requests = [request(0, 0.0, 9, 1), request(1, 0.5, 100, 2), request(2, 0.5, 28, 2)]
    ends = {}
    for contend in (True, False):
        world = fleet_world(
            requests,
            {"prompt": 1, "token": 1},
            engine=engine(SECOND),
            transfers_contend=contend,
        )
        ends[contend] = [row.end_s for row in run(world, KEPT).requests]

    assert ends[True] == pytest.approx([1.0, 3.1, 4.1])
    assert ends[False] == pytest.approx([1.0, 4.028, 3.028])


def test_a_run_takes_the_sum_of_its_iterations():
    single = sum(GROWING.first_s(7, 500 + 7 * step) for step in range(40))

    assert GROWING.run_s(40, 7, 500) == pytest.approx(single, rel=1e-12)
    for num in (1, 13, 40):
        end_s = GROWING.run_s(num, 7, 500)
        assert GROWING.num_within(end_s, 40, 7, 500) == num
        assert GROWING.num_within(math.nextafter(end_s, 0.0), 40, 7, 500) == num - 1


def test_without_memory_the_last_to_begin_is_read_again():
    """Two requests of 150 tokens grow to 170 each where there is room for 320."""
    requests = [request(0, 0.0, 60, 100), request(1, 0.0, 60, 100)]
    small = engine(SECOND, kv_capacity_tokens=200, max_batch_size=4)
    first, second = run(fleet_world(requests, {"mixed": 1}, engine=small), KEPT).requests

    assert (first.num_restarts, second.num_restarts) == (0, 1)
    assert first.end_s == 100.0
    assert second.end_s is not None
    assert second.end_s > 140.0


def lindley_waits(gaps, services):
    """Waits in a queue of one server, first come first served (Lindley's recursion)."""
    steps = np.concatenate([[0.0], np.cumsum(services[:-1] - gaps[1:])])
    return steps - np.minimum.accumulate(steps)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("is_constant", [True, False])
def test_waits_are_those_of_a_queue_of_one_server(load, is_constant):
    """M/D/1 and M/M/1: the fleet equals Lindley's recursion, whose mean is the closed form."""
    rng = np.random.default_rng(5)
    num = 2000
    gaps = rng.exponential(1.0 / load, num)
    tokens = np.full(num, 1000) if is_constant else np.rint(rng.exponential(1000.0, num)) + 1
    arrivals = np.cumsum(gaps)
    requests = [
        request(number, float(at_s), int(size), 1)
        for number, (at_s, size) in enumerate(zip(arrivals, tokens, strict=True))
    ]
    times = type(SECOND)(
        base_s=1e-12,
        per_prompt_token_s=1e-3,
        per_prompt_context_s=0.0,
        per_request_s=0.0,
        per_context_s=0.0,
    )
    alone = engine(times, max_batch_size=1, chunk_tokens=10**6, kv_capacity_tokens=10**6)
    world = fleet_world(requests, {"mixed": 1}, engine=alone, decision_interval_s=1000.0)
    waits = np.array([row.ttft_s for row in run(world, KEPT).requests]) - tokens * 1e-3

    expected = lindley_waits(np.diff(arrivals, prepend=0.0), tokens * 1e-3)
    assert np.abs(waits - expected).max() < 1e-8
    num = 200_000 if load < 0.9 else 3_000_000
    services = np.ones(num) if is_constant else rng.exponential(1.0, num)
    mean = lindley_waits(rng.exponential(1.0 / load, num), services).mean()
    assert mean == pytest.approx(load / (1 - load) / (2 if is_constant else 1), rel=0.02)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**20),
    layout=st.sampled_from([{"mixed": 2}, {"prompt": 2, "token": 2}]),
    timeout_s=st.sampled_from([0.0, 0.7]),
    check_s=st.sampled_from([0.0, 1.0]),
)
def test_requests_are_conserved_under_random_scaling(seed, layout, timeout_s, check_s):
    requests = drawn_stream(seed)
    limits = ScalingLimits(max_total=8, drain_timeout_s=timeout_s, drain_check_s=check_s)
    history = run(fleet_world(requests, layout, limits=limits), Drawn(seed), seed)

    assert [row.request for row in history.requests] == requests
    for row in history.requests:
        assert row.first_token_s is not None
        assert row.end_s is not None
        assert row.request.arrival_s < row.first_token_s <= row.end_s
    for view, _ in history.decisions:
        total = sum(pool.ordered + pool.draining for pool in view.pools.values())
        assert total <= 8
        assert all(pool.ordered + pool.draining >= 1 for pool in view.pools.values())
    gaps = sum(one.output_tokens - 1 for one in requests)
    paused = sum(row.num_restarts for row in history.requests)
    assert gaps - paused - len(requests) <= sum(history.gap_counts) <= gaps
    assert run(fleet_world(requests, layout, limits=limits), Drawn(seed), seed) == history


def test_unfinished_requests_are_counted_and_not_good():
    world = fleet_world(
        [request(0, 0.0, 10, 3), request(1, 0.0, 10, 300), request(2, 50.0, 10, 3)],
        {"mixed": 1},
        engine=engine(SECOND),
        slo=Slo(ttft_s=9.0, gap_s=9.0),
        horizon_s=20.0,
    )
    figures = run_figures(run(world, KEPT))

    assert (figures["num_came"], figures["num_finished"], figures["num_unfinished"]) == (2, 1, 1)
    assert figures["attainment"] == 0.5
    assert figures["gpu_h"] == pytest.approx(20.0 * 2 / 3600)


def test_requests_too_long_are_rejected_counted_and_not_good():
    """A prompt of 1,984 tokens with its answer just does not fit: 2,000 less a batch of 16."""
    given = [request(0, 0.0, 10, 3), request(1, 1.0, 1982, 3), request(2, 99.0, 1982, 3)]
    served, rejected = admitted(given, engine())
    world = fleet_world(served, {"mixed": 1}, rejected=rejected, horizon_s=20.0)
    figures = run_figures(run(world, KEPT))

    assert [each.request_id for each in rejected] == [given[1].request_id, given[2].request_id]
    assert (figures["num_requests"], figures["num_rejected"]) == (3, 1)
    assert (figures["num_came"], figures["attainment"]) == (2, 0.5)
    assert admitted([request(0, 0.0, 1981, 3)], engine())[1] == ()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Slo(ttft_s=0.0, gap_s=0.1), "ttft_s"),
        (lambda: Slo(ttft_s=1.0, gap_s=math.nan), "gap_s"),
        (lambda: fleet_world([request(0, 0.0)], {"prompt": 1}), "prompt and token, or mixed"),
        (lambda: fleet_world([request(0, 0.0)], {"mixed": 9}), "max_total"),
        (lambda: fleet_world([request(0, 0.0, 5000)], {"mixed": 1}), "request 0"),
        (lambda: fleet_world([], {"mixed": 1}), "at least 1 request"),
        (lambda: engine(chunk_tokens=16), "chunk_tokens"),
        (lambda: run(fleet_world([request(0, 3.0)], {"mixed": 1}), KEPT, -1), "seed"),
    ],
)
def test_bad_worlds_are_refused(make, named):
    with pytest.raises(ValueError, match=named):
        make()


@pytest.mark.parametrize("counts", [{"prompt": 1}, {"mixed": -1}, {"mixed": math.nan}])
def test_bad_decisions_are_refused(counts):
    world = fleet_world([request(0, 3.0)], {"mixed": 1})
    with pytest.raises(ValueError, match="decision: "):
        run(world, Planned((counts,)))
