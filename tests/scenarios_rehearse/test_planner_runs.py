"""Rehearsals of planners: predictions come first and stay, equal plans run once, verdicts."""

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest
from command_output import assert_refused

from scenarios.rehearse import command
from scenarios.rehearse.planner_runs import PlannerStudy, measure_frame
from scenarios.rehearse.planner_table import gains_percent, planner_table
from scenarios.rehearse.rehearsal import RehearsalFlags

SETTINGS = {"planners": ["dtfm", "decide"], "worlds": 2, "seed": 0}
PREDICTED = [
    {"world": world, "planner": planner, "error": "", "schedule": "1f1b", "num_ranks": 2}
    | {"launch": launch, "scale": 0.1, "predicted_s": predicted_s}
    for world, planner, launch, predicted_s in (
        ("one", "dtfm", "aa", 2.0),
        ("one", "decide", "bb", 1.0),
        ("two", "dtfm", "cc", 3.0),
        ("two", "decide", "cc", 3.0),
    )
]
TIMES_S = {"one-aa": [2.1, 2.0, 2.2], "one-bb": [1.05], "two-cc": [3.0, 3.3, 3.1]}


def study(**changes):
    """Two planners on two worlds."""
    settings = {"planners": ("dtfm", "decide"), "num_worlds": 2, "seed": 0, "seconds": 1.0}
    return PlannerStudy(flags=RehearsalFlags(), **(settings | changes))


def begun(folder: Path) -> Path:
    """Folder of a study all of whose plans have been measured."""
    (folder / "runs").mkdir()
    document = {"settings": SETTINGS, "predictions": PREDICTED}
    (folder / "predictions.json").write_text(json.dumps(document), "utf-8")
    for name, times_s in TIMES_S.items():
        (folder / "runs" / f"{name}.json").write_text(json.dumps({"times_s": times_s}), "utf-8")
    return folder


def test_what_was_measured_is_kept_and_the_hash_is_that_of_all_predictions(tmp_path, capsys):
    """No plan is run again: there is no launch to run."""
    frame = measure_frame(study(), begun(tmp_path), SETTINGS)

    sha = hashlib.sha256((tmp_path / "predictions.json").read_bytes()).hexdigest()
    assert capsys.readouterr().out == f"predictions of 4 plans: sha256 {sha}\n"
    assert frame["measured_s"].tolist() == [2.1, 1.05, 3.1, 3.1]
    assert frame["most_s"].tolist() == [2.2, 1.05, 3.3, 3.3]


def test_fewer_worlds_are_the_first_ones_and_other_flags_are_refused(tmp_path):
    begun(tmp_path)

    part = measure_frame(study(num_worlds=1), tmp_path, SETTINGS | {"worlds": 1})
    assert part["world"].tolist() == ["one", "one"]
    with pytest.raises(ValueError, match="seed must be 0 as in its"):
        measure_frame(study(), tmp_path, SETTINGS | {"seed": 1})
    with pytest.raises(ValueError, match="worlds must be 2 as in its"):
        measure_frame(study(num_worlds=3), tmp_path, SETTINGS | {"worlds": 3})


def rows(**measured_s):
    """Rows of one world, predicted at 1, 2, 3 s and so on."""
    return pd.DataFrame(
        {"world": "one", "planner": planner, "error": "", "schedule": "1f1b", "num_ranks": 2}
        | {"launch": planner, "predicted_s": 1.0 + place, "measured_s": own_s}
        for place, (planner, own_s) in enumerate(measured_s.items())
    )


def test_verdicts_by_hand():
    """Errors of 10, -50 and +10 %; the second plan is quickest, and the first 10 % slower."""
    found = planner_table(rows(decide=1.1, dtfm=1.0, atlas=3.3))
    verdicts = {bound.name.split(",")[0].split(" [%]")[0]: bound for bound in found.bounds}

    assert verdicts["mean absolute error"].measured == "23.3"
    assert verdicts["mean regret"].measured == "10.0"
    assert verdicts["rank correlation (Spearman) of the plans of a world"].measured == "0.50"
    assert not verdicts["gain"].met
    assert gains_percent(rows(decide=1.0, dtfm=1.2, atlas=1.1)).tolist() == pytest.approx([10.0])


def test_planners_without_a_plan_are_said_and_not_judged():
    frame = rows(decide=1.0, dtfm=2.0)
    frame.loc[1, ["error", "measured_s"]] = ["no plan fits", None]

    assert "one: dtfm has no plan: no plan fits" in planner_table(frame).notes


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "FOLDER or planners must be given, got neither"),
        (["--worlds", "3"], "FOLDER or planners must be given"),
        (["--planners", "decide"], "out must be given with planners, got none"),
        (["--planners", "decide", "--scale", "1"], "scale must be left out with planners, got it"),
        (["launch", "--seed", "1"], "seed must be left out without planners, got it"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(flags, message, capsys, tmp_path):
    assert_refused(command.main, flags, message, capsys, unwritten=tmp_path / "out")


def test_unknown_planners_and_repeated_ones_are_refused():
    with pytest.raises(ValueError, match="unknown planner 'decided'"):
        study(planners=("decided",))
    with pytest.raises(ValueError, match="planners must be given once each"):
        study(planners=("decide", "decide"))
