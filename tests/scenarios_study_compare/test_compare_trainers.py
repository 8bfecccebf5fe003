"""Comparisons of plans that a trainer runs, on worlds that move; what they say; refusals."""

import json

import pandas as pd
from command_output import assert_refused

from des.plan.plan_texts import PERFECT_DEVICES
from scenarios.study.compare.command import main

MOVING = ["--suite", "hard", "--num-worlds", "1", "--num-draws", "1", "--num-epochs", "3"]
MOVING += ["--planners", "greedy,static,search_bound,search_once", "--figures", ""]


def test_rules_and_schedulers_choose_among_plans_of_the_trainer(tmp_path, capsys):
    assert main([*MOVING, "--out", str(tmp_path / "a"), "--json"]) == 0

    shown = capsys.readouterr()
    rows = pd.read_csv(tmp_path / "a" / "dynamic.csv").set_index("method")
    assert json.loads(shown.out)["devices"].startswith(
        "plans are bound to GPUs as trainer megatron runs them"
    )
    assert PERFECT_DEVICES not in shown.err
    assert set(rows.index) == {"greedy", "static", "search_bound", "search_once"}
    assert (rows["time_s"] > 0.0).all()
    assert (rows.loc[["greedy", "static"], "time_s"] >= rows["best_s"].iloc[0]).all()


def test_the_search_of_a_trainer_needs_one(tmp_path, capsys):
    out = tmp_path / "out"
    message = "search_bound needs a trainer that binds GPUs, got ideal"
    ideal = ["--trainer", "ideal", "--out", str(out)]

    assert_refused(main, [*MOVING, *ideal], message, capsys, unwritten=out)
    flags = ["--trainer", "other", "--out", str(out)]
    assert_refused(main, flags, "trainer must be one of megatron", capsys, unwritten=out)
