"""Clusters of pools: courses by hand, exact cuts, conservation, causality, bad input."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from des.serving.requests import Request
from scenarios.reproduce.serving_oracles.courses import IterationTable, course_totals
from scenarios.reproduce.serving_oracles.pool_batches import BatchLimits
from scenarios.reproduce.serving_oracles.pool_engine import PoolMember, PoolWorld, run_pools
from scenarios.reproduce.serving_oracles.pool_routers import ROUTER_NAMES, RouterSettings
from tests.fleet_cases import request

PROMPT_S, TOKEN_S = 0.25, 0.125
FLAT = IterationTable(
    name="flat",
    batch_tokens=(1, 4096),
    prompt_s=(PROMPT_S, PROMPT_S),
    token_s=(TOKEN_S, TOKEN_S),
    mixed_factor=1.0,
)
"""An iteration takes the same time whatever its size: exact in binary."""


def pools(requests, *, router="mixed_pool", batching="splitwise", num=(1, 1), **changes):
    """A cluster with a prompt pool and a token pool of those numbers of instances."""
    names = ["prompt"] * num[0] + ["token"] * num[1]
    settings = {
        "requests": tuple(requests),
        "members": tuple(
            PoolMember(name=place, hardware="flat", pool=pool, memory_bytes=10_000)
            for place, pool in enumerate(names)
        ),
        "tables": {"flat": FLAT},
        "kv_bytes_per_token": 1,
        "weights_bytes": 1000,
        "batching": batching,
        "limits": BatchLimits(max_batch_size=32, max_batch_tokens=512, max_preemptions=4),
        "router": router,
        "router_settings": RouterSettings(threshold_tokens=1000),
        "kv_transfer_bytes_per_s": 400.0,
    }
    return PoolWorld(**(settings | changes))


def test_a_request_is_read_sent_and_written():
    """Prompt 0.25 s, 100 bytes at 400 bytes/s, then 8 token iterations of 0.125 s."""
    (served,) = run_pools(pools([request(0, 1.0)])).requests
    _, ttft_s, e2e_s = served.latencies_s()

    assert ttft_s == PROMPT_S
    assert served.transfer_end_s == 1.0 + PROMPT_S + 0.25
    assert e2e_s == PROMPT_S + 0.25 + 8 * TOKEN_S


def test_a_run_of_tokens_is_cut_at_the_end_of_an_iteration():
    """A prompt that comes within the third token iteration starts at that iteration's end."""
    history = run_pools(pools([request(0, 0.0), request(1, 0.55)], router="jsq", num=(1, 0)))
    first, second = history.requests

    assert second.start_s == PROMPT_S + 3 * TOKEN_S
    assert first.end_s == second.first_token_s + 4 * TOKEN_S  # one token beside the prompt
    assert history.busy_s[0] == course_totals(history.requests)["end_s"]


def test_a_transfer_without_room_is_tried_again_a_second_later():
    """The second request finds 10 of its 901 bytes free until the first has left."""
    big = [request(0, 0.0, prompt=100, output=8000), request(1, 0.0, prompt=900, output=2)]
    history = run_pools(pools(big, router="kv_round_robin"))
    first, second = history.requests

    assert second.transfer_start_s is not None
    assert second.transfer_start_s >= second.first_token_s
    assert (second.transfer_start_s - second.first_token_s) % 1.0 == 0.0
    assert first.transfer_end_s is not None


REQUESTS = st.lists(
    st.tuples(st.integers(0, 64), st.integers(1, 700), st.integers(2, 60)),
    min_size=1,
    max_size=15,
)


def drawn_requests(rows):
    """Requests of drawn rows: arrivals in 64ths of a second."""
    return [
        request(number, arrival / 16, prompt, output)
        for number, (arrival, prompt, output) in enumerate(sorted(rows))
    ]


@settings(max_examples=20)
@given(
    rows=REQUESTS,
    router=st.sampled_from(ROUTER_NAMES),
    batching=st.sampled_from(["splitwise", "orca"]),
)
def test_requests_are_conserved_and_nothing_happens_before_its_cause(rows, router, batching):
    requests = drawn_requests(rows)
    history = run_pools(pools(requests, router=router, batching=batching, num=(2, 2)))

    assert [one.request for one in history.requests] == requests
    assert all(one.end_s is not None for one in history.requests)
    for one in history.requests:
        assert one.request.arrival_s <= one.start_s < one.first_token_s <= one.token_start_s
        least_s = (one.request.output_tokens - 1) * TOKEN_S
        assert one.end_s - one.token_start_s >= least_s - 1e-9
        if one.prompt_place == one.token_place:
            assert one.transfer_start_s is None
        else:
            assert one.transfer_end_s is not None
            assert one.transfer_end_s <= one.token_start_s


def test_answers_do_not_depend_on_the_unit_of_time():
    requests = [request(number, 0.25 * number, 90 + number, 5 + number) for number in range(12)]
    doubled = [
        Request(
            request_id=one.request_id,
            arrival_s=2 * one.arrival_s,
            prompt_tokens=one.prompt_tokens,
            output_tokens=one.output_tokens,
        )
        for one in requests
    ]
    slow = IterationTable(
        name="flat",
        batch_tokens=FLAT.batch_tokens,
        prompt_s=tuple(2 * each for each in FLAT.prompt_s),
        token_s=tuple(2 * each for each in FLAT.token_s),
    )
    once = run_pools(pools(requests, retry_s=1.0))
    twice = run_pools(
        pools(doubled, tables={"flat": slow}, kv_transfer_bytes_per_s=200.0, retry_s=2.0)
    )

    assert [2 * one.end_s for one in once.requests] == [one.end_s for one in twice.requests]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"router": "nearest"}, "router"),
        ({"router": "kv_jsq", "num": (2, 0)}, "pools prompt and token"),
        ({"batching": "none"}, "batching"),
        ({"kv_transfer_bytes_per_s": None}, "kv_transfer_bytes_per_s"),
        ({"kv_transfer_bytes_per_s": math.nan}, "kv_transfer_bytes_per_s"),
        ({"requests": [request(0, 1.0), request(1, 0.5)]}, "order of arrival_s"),
        ({"requests": [request(0, 1.0, prompt=20_000)]}, "largest request"),
        ({"tables": {}}, "iteration table"),
    ],
)
def test_bad_worlds_are_refused(changes, named):
    arguments = {"requests": [request(0, 0.0)]} | changes
    with pytest.raises(ValueError, match=named):
        run_pools(pools(**arguments))
