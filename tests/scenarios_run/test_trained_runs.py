"""Runs of plans that a trainer runs: given, planned, ruled and searched; refusals."""

import json

import pandas as pd
import pytest
from command_output import assert_refused

from des.plan.plan_texts import PERFECT_DEVICES
from scenarios.run.command import main

QUICK = ["--model", "llama2_7b", "--num-layers", "8", "--microbatches", "8"]
QUICK += ["--epochs", "2", "--epoch-s", "20", "--dynamics", "ou", "--figures", ""]


def run(folder, capsys, *flags):
    """Document of a run, and its epochs."""
    assert main([*QUICK, *flags, "--out", str(folder), "--json"]) == 0
    shown = capsys.readouterr()
    return json.loads(shown.out), shown.err, pd.read_csv(folder / "epochs.csv")


@pytest.mark.parametrize("planner", ["uniform", "search_once", "greedy", "search_bound"])
def test_what_decides_a_run_decides_plans_of_the_trainer(planner, tmp_path, capsys):
    said, shown, _ = run(tmp_path, capsys, "--trainer", "megatron", "--planner", planner)

    assert said["config"]["trainer"] == "megatron"
    assert "devices" not in said
    assert PERFECT_DEVICES not in shown


def test_a_placement_by_hand_takes_longer_on_real_gpus_than_on_perfect_devices(tmp_path, capsys):
    hand = ["--placement", "East*3,Central*3,West*2", "--dynamics", "steady"]

    bound, _, _ = run(tmp_path / "bound", capsys, *hand)
    ideal, shown, _ = run(tmp_path / "ideal", capsys, *hand, "--trainer", "ideal")

    assert bound["mean_iteration_s"] > ideal["mean_iteration_s"]
    assert ideal["devices"] == PERFECT_DEVICES
    assert PERFECT_DEVICES in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--trainer", "ideal", "--planner", "search_bound"],
            "planner search_bound needs a trainer",
        ),
        (["--trainer", "other"], "trainer: must be one of megatron"),
        (["--plan", "plan.json", "--model", "llama2_7b"], "must not be given with plan"),
    ],
)
def test_what_cannot_be_run_is_refused(flags, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.json").write_text("{}", "utf-8")
    out = tmp_path / "out"
    assert_refused(main, [*flags, "--out", str(out)], message, capsys, unwritten=out)
