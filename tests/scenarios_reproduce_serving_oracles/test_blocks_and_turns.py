"""Replicas with blocks, and instances that work in turns: hand cases, conservation, settings."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.reproduce.serving_oracles.block_batches import (
    BLOCK_BATCHINGS,
    BlockSettings,
    BlockWorld,
)
from scenarios.reproduce.serving_oracles.block_engine import run_blocks
from scenarios.reproduce.serving_oracles.courses import ContextTimes
from scenarios.reproduce.serving_oracles.turn_engine import (
    DecodeTimes,
    TurnSettings,
    TurnWorld,
    run_turns,
)
from tests.fleet_cases import request

SECOND = ContextTimes(base_s=1.0, per_token_s=0.0, per_token_context_s=0.0)


def blocks(requests, batching="vllm", num_replicas=1, **changes):
    """Replicas whose iterations take a second on each stage."""
    found = {"batching": batching, "num_blocks": 60, "max_request_tokens": 320} | changes
    return BlockWorld(
        requests=tuple(requests),
        num_replicas=num_replicas,
        router="least_outstanding",
        settings=BlockSettings(**found),
        times=SECOND,
    )


def test_a_request_takes_an_iteration_a_token_on_each_stage():
    """The prompt gives the first of 4 tokens; 2 stages of a second each."""
    (one,) = run_blocks(blocks([request(0, 0.0, 20, 4)], pipeline_stages=2)).requests

    assert one.first_token_s == 2.0
    assert one.end_s == 8.0


def test_a_request_that_finds_no_block_restarts_with_what_it_has():
    """Two requests of 2 blocks need 3 each, and there are 5."""
    requests = [request(0, 0.0, 32, 10), request(1, 0.0, 32, 10)]
    history = run_blocks(blocks(requests, num_blocks=5, watermark_fraction=0.0))
    first, second = history.requests

    assert (first.num_restarts, second.num_restarts) == (0, 1)
    assert second.end_s is not None
    assert second.first_token_s == 2.0


@settings(max_examples=20)
@given(
    rows=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 200), st.integers(1, 60))),
    batching=st.sampled_from(BLOCK_BATCHINGS),
    stages=st.integers(1, 3),
)
def test_every_request_is_finished_and_every_token_is_processed(rows, batching, stages):
    requests = [request(n, row[0] / 8, *row[1:]) for n, row in enumerate(sorted(rows))]
    if not requests:
        return
    history = run_blocks(blocks(requests, batching, 2, pipeline_stages=stages))

    assert len(history.requests) == len(requests)
    for one in history.requests:
        assert one.end_s is not None
        assert one.first_token_s is not None
        assert one.request.arrival_s < one.first_token_s <= one.end_s
    if not sum(one.num_restarts for one in history.requests):
        tokens = sum(one.prompt_tokens + one.output_tokens - 1 for one in requests)
        assert history.executed_tokens == tokens


def test_run_to_completion_keeps_early_blocks_only_as_the_reference_program_does():
    """There is memory for two; of the second batch one ends early, so one is left later."""
    rows = ((0.0, 2), (0.5, 2), (0.5, 9), (30.0, 2), (30.5, 2), (30.5, 2))
    requests = [request(number, start, 10, output) for number, (start, output) in enumerate(rows)]
    sizes = {"num_blocks": 40, "max_batch_size": 2}
    sound = run_blocks(blocks(requests, "faster_transformer", **sizes))
    kept = run_blocks(blocks(requests, "faster_transformer", keeps_early_blocks=True, **sizes))

    assert [one.start_s for one in sound.requests[3:]] == [30.0, 32.0, 32.0]
    assert [one.start_s for one in kept.requests[3:]] == [30.0, 32.0, 34.0]


TURNS = {
    "is_chunked": False,
    "prefill_max_requests": 4,
    "prefill_max_tokens": 512,
    "decode_max_requests": 8,
    "decode_max_context_tokens": 10_000,
    "prefill": SECOND,
    "decode_small": DecodeTimes(constant_s=0.5, per_context_token_s=0.0, per_request_s=0.0),
    "decode_large": DecodeTimes(constant_s=0.5, per_context_token_s=0.0, per_request_s=0.0),
    "decode_large_from_requests": 100,
}


def turns(requests, layout="split", **changes):
    """One prefill and one decode instance, or two that do both."""
    return TurnWorld(
        requests=tuple(requests),
        layout=layout,
        num_instances=2,
        num_prefill=1 if layout == "split" else 2,
        settings=TurnSettings(**(TURNS | changes)),
    )


def test_prompts_of_one_instant_share_a_turn():
    history = run_turns(turns([request(0, 0.0, 100, 4), request(1, 0.0, 100, 4)]))

    assert [one.first_token_s for one in history.requests] == [1.0, 1.0]
    assert [one.end_s for one in history.requests] == [3.0, 3.0]
    assert (history.prompt_turns, history.token_turns) == ((1, 0), (0, 4))


@pytest.mark.parametrize(("faulty", "num_turns"), [(False, 2), (True, 3)])
def test_chunks_subtract_twice_only_as_the_reference_program_does(faulty, num_turns):
    """Prompts of 300, 300 and 100 tokens in turns of at most 512."""
    requests = [request(number, 0.0, size, 1) for number, size in enumerate((300, 300, 100))]
    history = run_turns(turns(requests, is_chunked=True, subtracts_twice=faulty))

    assert history.prompt_turns[0] == num_turns
    assert all(one.end_s is not None for one in history.requests)
