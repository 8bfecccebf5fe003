"""The training of Hi-PPO on a named world, end to end."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from command_output import error_of
from killed_runs import killed_after_rows
from processes import descendants, is_running, python, wait_until
from tiny_training import TINY

from agents.hi_ppo.policies import Policies, shipped
from agents.ppo.checkpoint import load_checkpoint, save_checkpoint
from scenarios.train.east_west.command import main
from scenarios.train.east_west.worth import METHODS

SAME = (
    "config.json",
    "placement.safetensors",
    "moves.safetensors",
    "hi_ppo.safetensors",
    "validation.csv",
    "targets.json",
)
UNTIMED = ("placement.csv", "moves.csv", "evaluation.csv")
TIMED = ["wall_s", "decision_time_s"]


def rows_of(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str).drop(columns=TIMED, errors="ignore")


def assert_same_run(one: Path, other: Path) -> None:
    """All that repeats is equal, byte for byte."""
    for name in SAME[:-1]:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    for name in UNTIMED:
        pd.testing.assert_frame_equal(rows_of(one / name), rows_of(other / name))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that went through; read-only."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    assert main([*TINY, "--out", str(folder)]) == 0
    return folder


def test_a_run_leaves_weights_rows_targets_and_a_report(finished):
    evaluation = pd.read_csv(finished / "evaluation.csv")
    targets = json.loads((finished / "targets.json").read_text())

    assert set(evaluation["method"]) == set(METHODS)
    assert evaluation.groupby(["block", "method"]).size().eq(2).all()
    assert list(targets["columns"]) == ["this run", "hi_ppo-0"]
    assert "Learning was worth" in (finished / "report.html").read_text()
    assert len(list((finished / "tensorboard").iterdir())) == 2


def test_nothing_beats_the_clairvoyant(finished):
    """It knows the plans of all methods; times are rounded to nanoseconds."""
    evaluation = pd.read_csv(finished / "evaluation.csv")
    times_s = evaluation.pivot(index=["block", "draw"], columns="method", values="iteration_time_s")

    assert (times_s.sub(times_s["clairvoyant"], axis=0) >= -2e-9).all(axis=None)


def test_weights_that_are_shown_no_better_are_the_shipped_ones(finished):
    kept, start = Policies.load(finished / "hi_ppo.safetensors"), Policies.load(shipped())

    for name, array in kept.placement.numbers.items():
        assert (array == start.placement.numbers[name]).all(), name
    assert kept.trained_range.num_layers[0] == 8


def test_a_run_that_was_killed_continues_to_the_same_bytes(finished, tmp_path):
    """In the first stage, with a row after its checkpoint."""
    run = tmp_path / "run"
    flags = [*TINY, "--out", str(run)]
    assert killed_after_rows(11, run / "placement.csv", "scenarios.east_west_train", flags)

    assert main(["--resume", "--figures", "", "--out", str(run)]) == 0
    assert_same_run(finished, run)


@pytest.mark.soak
def test_ctrl_c_among_workers_leaves_a_run_that_resumes_to_the_same_bytes(finished, tmp_path):
    """A terminal's Ctrl-C reaches the workers too: they leave it to the process that began them."""
    run = tmp_path / "run"
    log, words = run / "placement.csv", ["-m", "scenarios.east_west_train", *TINY]
    words += ["--workers", "2", "--out", str(run)]
    with python(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert wait_until(lambda: log.exists() and log.read_text().count("\n") > 2, process)
        begun = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        shown, errors = process.communicate()
        assert wait_until(lambda: not any(is_running(number) for number in begun))

    assert (process.returncode, errors) == (130, "")
    assert f"--resume --out {run}" in shown
    assert main(["--resume", "--workers", "1", "--out", str(run)]) == 0
    assert_same_run(finished, run)


def test_a_run_from_scratch_keeps_what_it_has_trained_if_that_is_no_worse(tmp_path, capsys):
    run = tmp_path / "run"
    flags = [*TINY, "--updates", "2", "--from", "scratch", "--figures", ""]

    assert main([*flags, "--out", str(run)]) == 0

    assert "trained against before on 2 validation episodes" in capsys.readouterr().out
    assert Policies.load(run / "hi_ppo.safetensors").trained_range.num_domains == (3.0, 3.0)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            "foreign",
            "calibration must be there, got none, as in those of scenarios.east_west_train moves",
        ),
        ("seed", "training_seed must be 5, got 0"),
        ("cut", "must be an intact eastwest-checkpoint"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused_by_name(
    damage, message, finished, tmp_path, capsys
):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    path = run / "placement.safetensors"
    if damage == "foreign":
        state = load_checkpoint(path)
        del state["calibration"]
        save_checkpoint(path, state)
    elif damage == "seed":
        record = json.loads((run / "config.json").read_text())
        record["config"]["seed"] = 5
        (run / "config.json").write_text(json.dumps(record))
    else:
        path.write_bytes(path.read_bytes()[:-100])

    shown = error_of(main, ["--resume", "--out", str(run)], capsys)
    assert f"checkpoint {path}: " in shown
    assert message in shown
