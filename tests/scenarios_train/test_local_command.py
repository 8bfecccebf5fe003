"""The command that trains the local agent."""

import json

import pandas as pd
from command_output import PAPER, assert_measurement_is_written

from agents.hi_ppo.local.policy import load_policy
from scenarios.train.east_west.command import main


def test_a_quick_run_writes_all_files_and_repeats_itself(tmp_path, capsys):
    """Also where the gap is above what is allowed, which shows in the exit code alone."""
    one, other = tmp_path / "one", tmp_path / "other"
    flags = ["local", "--quick", "--seed", "3"]
    assert main([*flags, "--out", str(one)]) in {0, 1}
    assert main([*flags, "--largest-gap", "-1", *PAPER, "--out", str(other)]) == 1

    assert_measurement_is_written(other, rows="evaluation", figure="local_gaps")
    for name in ("metrics.csv", "evaluation.csv", "policy.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    load_policy(one / "policy.safetensors")
    (one / "policy.safetensors").unlink()
    assert main([*flags, "--resume", "--out", str(one)]) in {0, 1}
    assert (one / "policy.safetensors").read_bytes() == (other / "policy.safetensors").read_bytes()
    summary = json.loads((one / "summary.json").read_text())
    for figures in summary.values():
        assert figures["gaps"]["exhaustive"]["worst_gap"] == 0.0
        assert 0.0 < figures["response_p50_s"] <= figures["response_p99_s"]
    assert set(summary) == {"one_server", "several_servers"}
    assert len(pd.read_csv(one / "metrics.csv")) == 8
    evaluation = pd.read_csv(one / "evaluation.csv")
    assert (evaluation["gap"] >= -1e-12).all()
    assert "decision over 32 cases" in capsys.readouterr().out


def test_bad_flags_are_one_line(tmp_path, capsys):
    assert main(["local", "--out", str(tmp_path), "--num-evaluated", "0"]) == 2
    assert "num_evaluated must be at least 1, got 0" in capsys.readouterr().err
    assert main(["local", "--out", str(tmp_path), "--seed", "-1"]) == 2
    assert "seed must be a whole number within" in capsys.readouterr().err
