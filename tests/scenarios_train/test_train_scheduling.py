"""The command that trains PPO of Stable-Baselines3 on the scheduling task."""

import pytest
from command_output import PAPER, assert_measurement_is_written, error_of

from scenarios.frame.files import read_csv
from scenarios.train.east_west.command import main
from scenarios.train.train_scheduling import POLICIES_CSV

SHORT = ["--epochs=12", "--seeds=0", "--actions=known", "--steps=64", "--num-envs=2", "--draws=2"]


def test_policies_are_judged_on_the_same_draws(tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["scheduling", *SHORT, "--held-out", "2", "--out", str(out), *PAPER]) == 0
    assert_measurement_is_written(out, rows="policies", figure="policies")

    rows = read_csv(out / POLICIES_CSV).set_index("policy")
    assert list(rows.index) == [
        "never move",
        "best fixed",
        "random",
        "known plans, h1",
        "known plans, h4",
        "known plans, h16",
        "search, h8",
        "PPO, known, seed 0",
        "PPO, known, mean",
    ]
    assert rows.loc["never move"].drop("sent_tb").tolist() == [0.0] * 6
    assert rows.loc["best fixed", "time_percent"] <= 0.0
    assert rows.loc["known plans, h4", "time_percent"] < 0.0 < rows.loc["random", "time_percent"]
    assert rows.loc["PPO, known, mean", "training_cpu_s"] > 0.0
    assert "known plans, h4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--steps", "0"], "steps must be a whole number"),
        (["--actions", "some"], "actions"),
        (["--seeds", "-1"], "seeds"),
    ],
)
def test_flags_out_of_range_are_refused(flags, message, tmp_path, capsys):
    assert message in error_of(main, ["scheduling", *flags, "--out", str(tmp_path / "run")], capsys)
    assert not (tmp_path / "run").exists()


def test_without_the_extra_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("des.base.extras.find_spec", lambda name: None)
    assert main(["scheduling", "--out", str(tmp_path / "run")]) == 2
    assert "needs the extra [sb3]: pip install 'eastwest[sb3]'" in capsys.readouterr().err
