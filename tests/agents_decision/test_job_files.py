"""Jobs from files, and from tokens a step."""

import json
import re

import pytest
from examples import SAMPLE
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.decision.job_files import read_job
from agents.decision.training_job import TrainingJob
from des.base.quantities import parse_tokens

JOB = {
    "model": "llama2_7b",
    "num_layers": None,
    "microbatches": 6,
    "microbatch_size": 4,
    "sequence_length": 4096,
    "tokens_per_step": 98304,
    "note": "by hand",
}


def _written(folder, **changes):
    path = folder / "a.job.json"
    path.write_text(json.dumps(JOB | changes), encoding="utf-8")
    return path


def test_a_job_file_says_the_sequences_of_a_step_and_the_size_of_a_microbatch(tmp_path):
    expected = TrainingJob(model="llama2_7b", num_sequences=24, sequence_length=4096)

    assert read_job(_written(tmp_path)) == (expected, 4)
    assert read_job(_written(tmp_path, tokens_per_step="96Ki")) == (expected, 4)


def test_a_job_file_says_the_format_of_passes(tmp_path):
    job, _ = read_job(_written(tmp_path, precision="mxfp8"))
    assert job.workload(1).precision == job.precision == "mxfp8"

    with pytest.raises(ValueError, match="precision must be one of bf16, fp8, mxfp8, nvfp4; got"):
        read_job(_written(tmp_path, precision="fp16"))


def test_a_flag_gives_a_job_without_a_precision_one(tmp_path):
    plain, low = (read_job(_written(tmp_path, precision=name))[0] for name in ("bf16", "fp8"))

    assert plain.in_precision("fp8") == low.in_precision("bf16") == low.in_precision("fp8") == low
    with pytest.raises(ValueError, match="precision must be that of the job, fp8; got mxfp8"):
        low.in_precision("mxfp8")


def test_a_model_next_to_the_file_is_found(tmp_path):
    (tmp_path / "own.yaml").write_text(
        "{num_layers: 2, hidden_size: 64, num_heads: 4, num_key_value_heads: 2, ffn_size: 256,\n"
        " vocabulary_size: 1000, gated_ffn: true, tied_embeddings: true}\n",
        encoding="utf-8",
    )
    job, _ = read_job(_written(tmp_path, model="own.yaml"))

    assert job.layer_count == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens_per_step": 98305}, "tokens_per_step: must be .* = 98304, got 98305"),
        ({"tokens_per_step": "lots"}, "tokens_per_step: must be a whole number .* got 'lots'"),
        ({"microbatch": 4}, "microbatch: unknown key; did you mean 'microbatches'?"),
        ({"microbatches": 0}, "microbatches: must be at least 1, got 0"),
        ({"microbatch_size": 2.5}, "microbatch_size: .* integer.*, got 2.5"),
        ({"num_layers": 0}, "num_layers must be a whole number from 1 .* got 0"),
        ({"model": "gpt5"}, "model: must be one of .*; got 'gpt5'"),
    ],
)
def test_a_wrong_job_file_is_refused_naming_file_field_allowed_and_got(tmp_path, changes, message):
    path = _written(tmp_path, **changes)
    pattern = re.escape(f"{path}: ") + ".*" + message.replace("?", r"\?")

    with pytest.raises(ValueError, match=pattern):
        read_job(path)


@given(number=st.integers(1, 10**6), suffix=st.sampled_from([("k", 10**3), ("M", 10**6)]))
@settings(max_examples=SAMPLE)
def test_suffixes_of_tokens_are_powers(number, suffix):
    text, worth = suffix
    binary = {"k": "Ki", "M": "Mi"}[text]

    assert parse_tokens(f"{number}{text}") == number * worth
    assert parse_tokens(f"{number}{binary}") == number * {"Ki": 2**10, "Mi": 2**20}[binary]


@pytest.mark.parametrize("text", ["4G", "", "-1", "0", "1.5", "0.0001k", "1..2M", "4 M", "nan"])
def test_what_is_no_whole_number_of_tokens_is_refused(text):
    with pytest.raises(ValueError, match="must be a whole number of tokens .* got " + repr(text)):
        parse_tokens(text)


@given(tokens=st.integers(4096, 10**9))
@settings(max_examples=SAMPLE)
def test_tokens_are_rounded_to_the_nearest_whole_sequences(tokens):
    job = TrainingJob.of_tokens("llama2_7b", tokens)

    assert job.tokens_per_step % 4096 == 0
    assert abs(job.tokens_per_step - tokens) <= 2048
    assert bool(job.rounding(tokens)) == (job.tokens_per_step != tokens)


@pytest.mark.parametrize(
    ("tokens", "sizes", "message"),
    [
        (4095, (1,), "tokens_per_step must be at least one sequence of 4096 tokens, got 4095"),
        (20480, (2, 4), "microbatch sizes 2, 4 must divide .* 20480, got 5 sequences"),
    ],
)
def test_tokens_that_make_no_step_are_refused(tokens, sizes, message):
    with pytest.raises(ValueError, match=message):
        TrainingJob.of_tokens("llama2_7b", tokens, sizes=sizes)
