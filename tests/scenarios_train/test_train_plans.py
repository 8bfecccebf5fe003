"""The command that trains the plan policy: files, resumed runs, refusals."""

import pytest

from agents.hi_ppo.plans.plan_checkpoint import load_plan_policy
from scenarios.train.east_west.command import main

SMALL = ["--updates", "2", "--samples", "2"]


def test_a_run_leaves_a_policy_that_resuming_does_not_change(tmp_path, capsys):
    out = tmp_path / "plans"
    assert main(["plans", "--out", str(out), *SMALL]) == 0
    assert "plans drawn cost" in capsys.readouterr().out
    before = (out / "plans.pt").read_bytes()
    load_plan_policy(out / "plans.pt")
    assert (out / "plans.csv").read_text().count("\n") == 3
    assert main(["plans", "--out", str(out), *SMALL, "--resume"]) == 0
    assert (out / "plans.pt").read_bytes() == before


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--updates", "0"], "updates must be a whole number"),
        (["--samples", "1"], "samples_per_network must be at least 2, got 1"),
        (["--imitation", "-1"], "imitation must be at least 0"),
    ],
)
def test_bad_flags_are_one_line_and_exit_code_2(tmp_path, capsys, flags, message):
    assert main(["plans", "--out", str(tmp_path / "plans"), *flags]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "plans").exists()
