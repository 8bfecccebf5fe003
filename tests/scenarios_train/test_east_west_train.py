"""The main command end to end, in its quick form: one run, and what is refused beside it."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from command_output import error_of
from quick_training import SMALL
from training_runs import REPEATED_FILES, assert_same_results, copy_of_run

from agents.planners.table import reference_planners
from agents.ppo.checkpoint import load_checkpoint, save_checkpoint
from scenarios.frame.metrics_log import read_metrics
from scenarios.train.east_west.command import main


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that went through; read-only."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    assert main([*SMALL, "--out", str(folder)]) == 0
    return folder


def test_a_run_leaves_everything_that_it_promises(finished):
    names = {path.name for path in finished.iterdir()}
    assert names == {
        *REPEATED_FILES,
        *("metrics.csv", "evaluation.csv", "report.html", "tensorboard"),
        *(f"{name}.png" for name in ("comparison", "map", "gantt", "links", "memory")),
    }
    judged = pd.read_csv(finished / "evaluation.csv")
    assert set(judged["planner"]) == {"policy", *reference_planners()}
    assert judged.groupby("planner").size().eq(2).all()
    assert len(read_metrics(finished / "metrics.csv")) == 2
    assert json.loads((finished / "trace.json").read_text())["traceEvents"]
    assert list((finished / "tensorboard").iterdir())
    page = (finished / "report.html").read_text("utf-8")
    drawn = ["map", "gantt", "learning_curve", "comparison", "links", "memory"]
    assert sorted(re.findall(r'data-figure="(\w+)"', page)) == sorted(drawn)


def test_no_planner_beats_exact_and_exact_fits_memory(finished):
    """A planner that is faster than exact does not fit into memory."""
    judged = pd.read_csv(finished / "evaluation.csv")
    times_s = judged.pivot(index="draw", columns="planner", values="iteration_time_s")
    fits = judged.pivot(index="draw", columns="planner", values="fits_memory")

    assert fits["exact"].all()
    for planner in ("policy", "uniform", "proportional", "random"):
        beaten = times_s[planner] < times_s["exact"]
        assert not (beaten & fits[planner]).any()


def test_its_record_repeats_a_run_byte_for_byte_with_any_number_of_workers(finished, tmp_path):
    again = tmp_path / "again"
    record = str(finished / "config.json")

    assert main(["--config", record, "--workers", "2", "--out", str(again)]) == 0

    assert_same_results(finished, again)


def test_a_finished_run_can_be_judged_again(finished, tmp_path):
    """Resuming it trains nothing and writes the same evaluation."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in finished.iterdir():
        if path.is_file() and path.name not in ("evaluation.csv", "report.html", "trace.json"):
            (copy / path.name).write_bytes(path.read_bytes())

    assert main(["--resume", "--out", str(copy)]) == 0

    assert_same_results(finished, copy)


def test_a_run_folder_in_use_is_left_alone(finished, capsys):
    before = (finished / "checkpoint.safetensors").read_bytes()

    assert main([*SMALL, "--out", str(finished)]) == 2

    assert "already holds files; continue that run with --resume" in capsys.readouterr().err
    assert (finished / "checkpoint.safetensors").read_bytes() == before


def test_a_flag_that_contradicts_the_resumed_run_is_refused(finished, tmp_path, capsys):
    copy = copy_of_run(finished, tmp_path / "copy")

    assert main(["--resume", "--out", str(copy), "--seed", "7"]) == 2

    assert "with --resume, seed must be 0 as in" in capsys.readouterr().err


def test_changes_are_free_unless_told_and_the_table_is_silent_about_them(finished):
    config = json.loads((finished / "config.json").read_text())["config"]

    assert (config["replacement"], config["discount"]) == ("none", 0.0)
    judged = pd.read_csv(finished / "evaluation.csv")
    assert (judged[["migration_s", "moved_bytes"]] == 0).all(axis=None)
    assert "change [s]" not in (finished / "report.html").read_text()


@pytest.mark.parametrize(
    "kind",
    [
        *("corrupt", "foreign", "no task", "other run", "other network", "damaged", "not finite"),
        "other factors",
    ],
)
def test_a_wrong_checkpoint_is_refused_and_kept(kind, finished, tmp_path, capsys):
    copy = copy_of_run(finished, tmp_path / "copy")
    checkpoint = copy / "checkpoint.safetensors"
    state = load_checkpoint(checkpoint)
    if kind == "corrupt":
        checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    elif kind == "foreign":
        checkpoint.write_bytes(b"PK not a checkpoint")
    elif kind == "no task":
        save_checkpoint(checkpoint, {"policy": {}})
    elif kind == "other network":
        network = (copy / "network.yaml").read_text()
        (copy / "network.yaml").write_text(network.replace("5Gbps", "6Gbps"))
    elif kind == "damaged":
        state["rollouts"]["workers"][0]["environment"] = {"seats": []}
        save_checkpoint(checkpoint, state)
    elif kind == "other factors":
        state["rollouts"]["workers"][0]["environment"]["corrections"]["wan_bandwidth_factor"] = 2.0
        save_checkpoint(checkpoint, state)
    elif kind == "not finite":
        state["rollouts"]["workers"][0]["observations"] *= float("nan")
        save_checkpoint(checkpoint, state)
    else:
        record = json.loads((copy / "config.json").read_text())
        record["config"]["seed"] = 5
        (copy / "config.json").write_text(json.dumps(record))
    before = checkpoint.read_bytes()

    assert f"checkpoint {checkpoint}: " in error_of(main, ["--resume", "--out", str(copy)], capsys)
    assert checkpoint.read_bytes() == before
