"""Readers of traces and their traps."""

import numpy as np
import pytest

from des.serving.request_streams import modulated_requests, poisson_requests, stretched, thinned
from des.serving.trace_files import parse_trace, requests_of
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
    line = '{"timestamp": %d, "input_length": 9, "output_length": 2, "hash_ids": [0, %d]}\n'
    rows = parse_trace(line % (1000, 1) + line % (1250, 2), "mooncake")

    assert rows[1].arrival_s == 0.25
    assert rows[1].prefix_blocks == (0, 2)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a,b\n1,2\n", "columns"),
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
