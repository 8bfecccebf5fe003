"""Clusters of pools: courses by hand, exact cuts, conservation, causality, bad input."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from des.serving.iteration_times import IterationTable
from des.serving.pool_engine import run_pools
from des.serving.pool_routers import ROUTER_NAMES
from des.serving.requests import Request
from tests.pool_cases import FLAT, PROMPT_S, TOKEN_S, pools, request


def test_a_request_is_read_sent_and_written():
    """Prompt 0.25 s, 100 bytes at 400 bytes/s, then 8 token iterations of 0.125 s."""
    (served,) = run_pools(pools([request(0, 1.0)])).served

    assert served.ttft_s == PROMPT_S
    assert served.transfer_end_s == 1.0 + PROMPT_S + 0.25
    assert served.e2e_s == PROMPT_S + 0.25 + 8 * TOKEN_S


def test_a_run_of_tokens_is_cut_at_the_end_of_an_iteration():
    """A prompt that comes within the third token iteration starts at that iteration's end."""
    history = run_pools(pools([request(0, 0.0), request(1, 0.55)], router="jsq", num=(1, 0)))
    first, second = history.served

    assert second.prompt_start_s == PROMPT_S + 3 * TOKEN_S
    assert first.token_end_s == second.prompt_end_s + 4 * TOKEN_S  # one token beside the prompt
    assert history.busy_s[0] == history.end_s


def test_a_transfer_without_room_is_tried_again_a_second_later():
    """The second request finds 10 of its 901 bytes free until the first has left."""
    big = [request(0, 0.0, prompt=100, output=8000), request(1, 0.0, prompt=900, output=2)]
    history = run_pools(pools(big, router="kv_round_robin"))
    first, second = history.served

    assert second.transfer_start_s is not None
    assert second.transfer_start_s >= second.prompt_end_s
    assert (second.transfer_start_s - second.prompt_end_s) % 1.0 == 0.0
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

    assert [one.request for one in history.served] == requests
    assert history.num_unfinished == 0
    for one in history.served:
        assert one.request.arrival_s <= one.prompt_start_s < one.prompt_end_s <= one.token_start_s
        least_s = (one.request.output_tokens - 1) * TOKEN_S
        assert one.token_end_s - one.token_start_s >= least_s - 1e-9
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

    assert [2 * one.token_end_s for one in once.served] == [one.token_end_s for one in twice.served]


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


@pytest.mark.parametrize("tokens", [-1, 0, 2.5])
@pytest.mark.parametrize("field", ["prompt", "output"])
def test_requests_without_tokens_are_refused(field, tokens):
    with pytest.raises(ValueError, match=f"{field}_tokens must be a whole number"):
        request(0, 0.0, **{field: tokens})
