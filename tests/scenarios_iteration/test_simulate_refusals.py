"""Input that the command refuses, in one line and without a file."""

import re

import pytest
from command_output import assert_refused, error_of
from simulated_files import QUICK
from strategies import ALLOWED_SCHEDULES

from des.worlds import EAST_CENTRAL_WEST
from scenarios.iteration.command import main


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (
            "llama2_7b",
            "other-jobs must be model:placement[:priority], separated by semicolons; "
            "got 'llama2_7b'",
        ),
        ("llama2_7b:0*32:high", "other-jobs must be .* got 'llama2_7b:0*32:high'"),
        ("llama2_7b:0*32;", "other-jobs must be .* got ''"),
        (
            "llama2_7b:0*31",
            "other-jobs: llama2_7b:0*31: .* for each of the 32 layers of llama2_7b, got 31",
        ),
        ("gpt3_175b:0*96", "other-jobs: gpt3_175b:0*96: .* East must hold at most 640.0 GB"),
    ],
)
def test_other_jobs_that_cannot_be_are_refused_in_one_line(others, message, tmp_path, capsys):
    assert main([*QUICK, "--other-jobs", others, "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(re.escape(message).replace(r"\.\*", ".*"), line)
    assert not (tmp_path / "out").exists()


def test_priorities_on_links_that_are_shared_fairly_are_refused(tmp_path, capsys):
    path = tmp_path / "fair.yaml"
    text = EAST_CENTRAL_WEST.read_text(encoding="utf-8")
    path.write_text(text + "transport:\n  sharing: fair\n")
    flags = ["--network", str(path), "--other-jobs", "llama2_7b:0*32:1"]

    assert main([*QUICK, *flags, "--out", str(tmp_path / "out")]) == 2
    assert "priorities of jobs must be equal where" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model", "gpt3_175b"], "plan: domain East must hold at most 640.0 GB, got 1102"),
        (["--model", "gpt5"], "model: must be one of llama2_7b, .*; got 'gpt5'"),
        (["--model", "none.json"], "none.json: cannot be read: No such file or directory"),
        (["--placement", "0*28"], "placement: .* each of the 80 layers .* got 28"),
        (["--placement", "3*80"], "placement: layer 0 .* East 0, Central 1, West 2; got 3"),
        (["--placement", "Mars*80"], r"placement: .* East, Central, West .*; got 'Mars\*80'"),
        (["--schedule", "zero"], f"{ALLOWED_SCHEDULES} 'zero'"),
        (["--parallelism", "2x2"], "parallelism: must be TENSORxDATAxPIPELINE, .* got '2x2'"),
        (["--parallelism", "2x1x1,2x1x1"], "parallelism must be .* each of 3 domains, got 2"),
        (["--parallelism", "4x4x1"], "plan: parallelism of domain East .* which is 16"),
        (
            ["--network", "two_sites_of_nodes", "--parallelism", "16x1x1"],
            "plan: parallelism of domain North: tensor must divide the 8 GPUs of a node, .* got 16",
        ),
        (["--shard-optimiser"], "shard_optimiser needs a parallelism, got none"),
        (["--sharding", "parameters"], "sharding needs a parallelism, got none"),
        (
            ["--shard-optimiser", "--sharding", "gradients"],
            "shard_optimiser must not be given with sharding, got gradients",
        ),
        (["--replicas", "0*80"], "plan: a domain must serve one replica, got domain 0 in two"),
        (["--replicas", "2*80;x"], "placement: each item must be .*; got 'x'"),
        (["--shares", "32;1"], "shares: each item must be a number of microbatches, .* got '32;1'"),
        (["--shares", "31"], "shares must add up to the 32 microbatches of an iteration, got 31"),
        (["--gradient-bucket-mb", "0"], "gradient exchange: bucket_bytes must be positive"),
        (["--activation-compression", "0.5"], "plan: activation_compression must be at least 1"),
        (["--microbatches", "0"], "num_microbatches must be a whole number .*, got 0"),
        (["--microbatch-size", "0"], "microbatch_size must be a whole number .*, got 0"),
        (["--sequence-length", "-1"], "sequence_length must be a whole number .*, got -1"),
        (["--num-layers", "0"], "num_layers must be a whole number .*, got 0"),
        (["--network", "none.yaml"], "none.yaml: topology file cannot be read"),
        (["--corrections", "none.json"], "none.json: corrections file cannot be read"),
        (["--launch", "absent"], "--launch must be a folder of eastwest launch, got absent"),
        (["--launch", ".", "--plan", "a"], "--launch must come without --plan, got --plan a too"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line_and_nothing_is_written(
    flags, message, tmp_path, capsys
):
    out = tmp_path / "out"
    assert_refused(main, [*flags, "--out", str(out)], message, capsys, unwritten=out)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--seed", "-1"], "seed must be at least 0, got -1"),
        (["--seed", "x"], "argument --seed: must be an integer, or none, got 'x'"),
        (["--microbatches", "x"], "argument --microbatches: must be an integer, got 'x'"),
        (["--micro", "3"], "unknown argument '--micro'; did you mean '--microbatches'?"),
    ],
)
def test_wrong_flags_end_with_one_line_and_exit_code_2(flags, message, capsys):
    assert message in error_of(main, flags, capsys)


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path, capsys):
    (tmp_path / "file").touch()

    shown = error_of(main, [*QUICK, "--out", str(tmp_path / "file")], capsys)
    assert shown == f"error: {tmp_path / 'file'}: cannot be written: File exists\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--microbatches", "8"], "microbatches must not be given with tokens-per-step"),
        (["--microbatch-size", "4"], "one of the microbatch sizes 4 must divide .* 5 sequences"),
        (
            ["--sequence-length", "32768"],
            "must be at least one sequence of 32768 tokens, got 20480",
        ),
    ],
)
def test_tokens_a_step_that_contradict_other_flags_are_refused(flags, message, tmp_path, capsys):
    tokens = ["--model", "llama2_7b", "--tokens-per-step", "20Ki"]

    out = tmp_path / "out"
    assert_refused(main, [*tokens, *flags, "--out", str(out)], message, capsys, unwritten=out)


def test_a_job_from_a_file_is_simulated_and_leaves_no_room_for_its_flags(tmp_path, capsys):
    job, out = tmp_path / "a.job.json", tmp_path / "out"
    job.write_text(
        '{"model": "llama2_7b", "microbatches": 4, "microbatch_size": 2, "sequence_length": 512}',
        encoding="utf-8",
    )
    flags = ["--job", str(job)]
    message = "model must not be given with job, which says it; got both"
    assert_refused(
        main, [*flags, "--model", "llama2_7b", "--out", str(out)], message, capsys, unwritten=out
    )

    assert main([*flags, "--tokens-per-step", "5k", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "5000 tokens a step are rounded to 10 sequences of 512, 5120 tokens\n" in shown
    assert "llama2_7b, 32 layers, 5 microbatches" in shown
