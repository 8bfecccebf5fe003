"""Readers of traces and their traps."""

import numpy as np
import pytest

from des.serving.request_streams import modulated_requests, poisson_requests, stretched, thinned
from des.serving.trace_files import parse_trace, recognised_form, requests_of
from tests.fleet_cases import request

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"


def test_seven_decimals_zones_and_midnight_are_read():
    rows = parse_trace(
        AZURE + "2024-02-28 23:59:59.9999999,3,4\r\n2024-02-29 02:00:00+02:00,5,6\r\n"
        "2024-02-29 00:00:01Z,7,8",
        "azure",
    )

    assert [row.arrival_s for row in rows] == pytest.approx([0.0, 1e-7, 1.0000001], abs=1e-12)
    assert [row.prompt_tokens for row in rows] == [3, 5, 7]


def test_burst_gpt_requests_that_failed_are_left_out_and_keep_their_numbers():
    text = "Timestamp,Session ID,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    rows = parse_trace(text + "5,a,ChatGPT,472,18,490,log\n45,b,GPT-4,1087,0,1087,log\n", "burst")

    assert [row.arrival_s for row in rows] == [0.0, 40.0]
    assert [one.request_id for one in requests_of(rows)] == [0]


def test_mooncake_is_in_milliseconds_and_names_prefix_blocks():
    line = '{"timestamp": %d, "input_length": 600, "output_length": 2, "hash_ids": [0, %d]}\n'
    rows = parse_trace(line % (1000, 1) + line % (1250, 2), "mooncake")

    assert rows[1].arrival_s == 0.25
    assert rows[1].prefix_blocks == (0, 2)


BAILIAN = (
    '{"chat_id": 0, "parent_chat_id": -1, "timestamp": 4.5, "input_length": 40, "turn": 1, '
    '"output_length": 12, "hash_ids": [0, 1, 2]}\n'
    '{"chat_id": 1, "parent_chat_id": 0, "timestamp": 65.75, "input_length": 48, "turn": 2, '
    '"output_length": 3, "hash_ids": [0, 1, 3]}\n'
)


def test_bailian_is_in_seconds_and_names_blocks_of_16_tokens():
    rows = parse_trace(BAILIAN, "bailian")

    assert [row.arrival_s for row in rows] == [0.0, 61.25]
    assert rows[1].prefix_blocks == (0, 1, 3)


@pytest.mark.parametrize("prompt", [0, 1, 512, 513, 6758])
def test_a_prompt_has_as_many_blocks_as_it_begins(prompt):
    line = '{"timestamp": 0, "input_length": %d, "output_length": 5, "hash_ids": %s}\n'
    blocks = list(range(-(-prompt // 512)))

    assert parse_trace(line % (prompt, blocks), "trace")[0].prefix_blocks == tuple(blocks)
    for wrong in ([*blocks, 7], blocks[1:]):
        if wrong != blocks:
            message = f"line 2: hash_ids must be {len(blocks)} .*blocks of 512, got {len(wrong)}"
            with pytest.raises(ValueError, match=message):
                parse_trace(line % (512, [0]) + line % (prompt, wrong), "trace")


def test_columns_of_another_file_are_named():
    text = "when,in,out,who\n2024-01-01 00:00:01,3,4,a\n2024-01-01 00:00:03.5,5,6,b\n"
    columns = {"time": "when", "prompt": "in", "output": "out"}
    rows = parse_trace(text, "mine", columns)

    assert [(row.arrival_s, row.prompt_tokens, row.output_tokens) for row in rows] == [
        (0.0, 3, 4),
        (2.5, 5, 6),
    ]
    named = {"prompt": "in", "output": "out"}
    assert len(parse_trace("time,in,out\n1,2,3\n2.5,3,4\n", "mine", named)) == 2
    with pytest.raises(ValueError, match=r"mine: must have the columns time, inn; got \['when'"):
        parse_trace(text, "mine", {"prompt": "inn", "output": "out"})
    with pytest.raises(ValueError, match="columns: unknown 'promt'; did you mean 'prompt'"):
        parse_trace(text, "mine", {"promt": "in"})
    with pytest.raises(ValueError, match="columns can be given for a CSV file"):
        parse_trace(BAILIAN, "mine", columns)


def test_the_form_is_said_with_what_tells_it():
    vidur = "arrived_at,num_prefill_tokens,num_decode_tokens\n0,1,1\n"
    columns = {"time": "arrived_at", "prompt": "num_prefill_tokens", "output": "num_decode_tokens"}

    assert recognised_form(BAILIAN, "it").startswith("Bailian, by one of chat_id, ")
    assert recognised_form('{"timestamp": 1}', "it").startswith("Mooncake, by ")
    assert recognised_form(AZURE, "it").startswith("Azure, by the columns TIMESTAMP, ")
    assert recognised_form(vidur, "it").startswith("Vidur, by the columns arrived_at, ")
    assert recognised_form(vidur, "it", columns).startswith("the given columns, by ")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a,b\n1,2\n", "columns"),
        ("arrived_at,num_prefill_tokens,x\n1,2,3\n", "which of Vidur's lacks num_decode_tokens"),
        ('{"timestamp": 1.5, "input_length": 1, "output_length": 1}\n', "whole milliseconds in Mo"),
        (AZURE, "at least 1 row"),
        (AZURE + "2024-01-01 00:00:00,-3,4\n", "line 2: ContextTokens"),
        (AZURE + "2024-01-01 00:00:00,3,nan\n", "line 2: GeneratedTokens"),
        (AZURE + "2024-02-30 00:00:00,3,4\n", "date that exists"),
        (AZURE + "yesterday,3,4\n", "line 2: TIMESTAMP"),
        (AZURE + "2024-01-02 00:00:00,3,4\n2024-01-01 00:00:00,3,4\n", "order of arrival"),
        ('{"timestamp": 1}\n', "line 1: must be an object"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\nnan,1,1\n", "arrived_at"),
    ],
)
def test_bad_traces_are_refused(text, named):
    with pytest.raises(ValueError, match=named):
        parse_trace(text, "trace")


def test_laws_have_their_rate_and_streams_their_changes():
    steady = poisson_requests(20.0, 200.0, seed=1)
    bursty = modulated_requests((5.0, 60.0), 10.0, 200.0, seed=1)

    assert len(steady) == pytest.approx(4000, rel=0.05)
    assert per_second_variance(bursty) > 5 * per_second_variance(steady)
    assert poisson_requests(20.0, 200.0, seed=1) == steady
    assert stretched(steady, 2.0)[-1].arrival_s == 2.0 * steady[-1].arrival_s
    assert len(thinned(steady, 0.25, seed=2)) == pytest.approx(1000, rel=0.1)


def per_second_variance(requests):
    """Variance of the arrivals of a second over their mean; 1 of a Poisson law."""
    counts = np.bincount([int(one.arrival_s) for one in requests], minlength=200)
    return counts.var() / counts.mean()


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_rates_must_be_positive(rate):
    with pytest.raises(ValueError, match="rate_per_s"):
        poisson_requests(rate, 10.0, seed=0)


@pytest.mark.parametrize("tokens", [-1, 0, 2.5])
@pytest.mark.parametrize("field", ["prompt", "output"])
def test_requests_without_tokens_are_refused(field, tokens):
    with pytest.raises(ValueError, match=f"{field}_tokens must be a whole number"):
        request(0, 0.0, **{field: tokens})
