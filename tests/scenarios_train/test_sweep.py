"""The sweep: its grid and tables by hand, and the command on quick runs."""

import json
import math
import os
import shutil
from concurrent.futures import Future, ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import pytest
from command_output import error_of
from quick_training import NO_PICTURES
from rich.console import Console

from des.figures.paper import image_bytes
from des.worlds import EAST_CENTRAL_WEST
from scenarios import east_west_train
from scenarios.frame.statistics import mean_and_interval
from scenarios.train import flat_command
from scenarios.train.sweep import main
from scenarios.train.sweep_grid import TrainingPoint, trials_of
from scenarios.train.sweep_results import settings_table, sweep_figure
from scenarios.train.sweep_running import run_trials


def names(vary: list[str], seeds: tuple[int, ...] = (0,)) -> list[str]:
    return [trial.name for trial in trials_of(vary, seeds=seeds, flags=[], out=Path("out"))]


def test_every_combination_is_trained_with_every_seed():
    assert names(["steps=64,128", "learning_rate=1e-3"], (0, 7)) == [
        "steps=64, learning_rate=0.001, seed 0",
        "steps=64, learning_rate=0.001, seed 7",
        "steps=128, learning_rate=0.001, seed 0",
        "steps=128, learning_rate=0.001, seed 7",
    ]


def test_without_variation_there_are_only_seeds():
    assert names([], (3, 4)) == ["seed 3", "seed 4"]


def test_lists_are_written_with_x(tmp_path):
    trials = trials_of(["hidden_sizes=64x64,32"], seeds=[0], flags=[], out=tmp_path)

    found = [flat_command.resolve(trial.point.arguments)[0].hidden_sizes for trial in trials]
    assert found == [(64, 64), (32,)]
    assert trials[0].point.folder.path == tmp_path / "hidden_sizes=64x64" / "seed0"


def test_folders_are_named_after_settings_and_hold_no_slash(tmp_path):
    network = tmp_path / "my world.yaml"
    network.write_bytes(EAST_CENTRAL_WEST.read_bytes())
    (trial,) = trials_of([f"network={network}"], seeds=[1], flags=[], out=tmp_path)

    assert trial.point.folder.path.parent.parent == tmp_path
    assert trial.point.folder.path.parent.name.endswith("my_world.yaml")


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--vary", "learning_rte=1"], "unknown field 'learning_rte'; did you mean"),
        (["--vary", "seed=1"], "unknown field 'seed'; allowed are network, "),
        (["--vary", "out=here"], "unknown field 'out'"),
        (["--vary", "steps=64,many"], "vary: steps must be an integer, got 'many'"),
        (["--vary", "steps"], "vary: steps must be an integer, got ''"),
        (["--vary", "steps=64", "--vary", "steps=128"], "vary: steps is given twice"),
        (["--vary", "learning_rate=1e-3,0.001"], "vary: learning_rate 0.001 is given twice"),
        (["--vary", "schedule=1f1b,chaos"], "schedule=chaos, seed 0: schedule: must be one of"),
        (["--vary", "learning_rate=2"], "learning_rate must be positive and at most 1"),
        (["--vary", "network=nowhere.yaml"], "nowhere.yaml: topology file cannot be read"),
        (["--vary"], "--vary: expected one argument"),
        (["--seeds", "1,1"], "seeds must be one or more different ones"),
        (["--processes", "0"], "workers must be a whole number from 1"),
        (["--base", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
    ],
)
def test_wrong_input_is_one_line_before_anything_starts(
    flags, complaint, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)

    assert complaint in error_of(main, [*flags, "--out", "out"], capsys)
    assert not (tmp_path / "out").exists()


def test_values_that_would_share_a_folder_are_refused(tmp_path):
    worlds = [tmp_path / "a b.yaml", tmp_path / "a;b.yaml"]
    for world in worlds:
        world.write_bytes(EAST_CENTRAL_WEST.read_bytes())

    with pytest.raises(ValueError, match=r"would be the folder of .*a b.yaml.* and .*a;b.yaml"):
        trials_of([f"network={worlds[0]},{worlds[1]}"], seeds=[0], flags=[], out=tmp_path)


def trials_frame() -> pd.DataFrame:
    """Two settings and three seeds; one training failed, and all of a third setting."""
    return pd.DataFrame(
        {
            "rate": ["slow"] * 3 + ["fast"] * 3 + ["wild"],
            "seed": [0, 1, 2, 0, 1, 2, 0],
            "reward": [0.1, 0.2, 0.3, 0.5, 0.7, math.nan, math.nan],
            "iteration_time_s": [5.0, 5.0, 5.0, 4.0, 3.0, math.nan, math.nan],
            "error": [None] * 5 + ["lost", "lost"],
        }
    )


def test_settings_are_means_over_the_seeds_that_went_through_best_first():
    table = settings_table(trials_frame(), ["rate"]).set_index("rate")

    assert table.index.tolist() == ["fast", "slow", "wild"]
    assert table["num_seeds"].tolist() == [2, 3, 0]
    assert table["num_trials"].tolist() == [3, 3, 1]
    assert table["reward"].tolist()[:2] == pytest.approx([0.6, 0.2])
    expected = [mean_and_interval(rewards).half_width for rewards in ([0.5, 0.7], [0.1, 0.2, 0.3])]
    assert table["reward_half_width"].tolist()[:2] == expected
    assert table.loc["slow", "iteration_time_s_half_width"] == 0.0
    assert math.isnan(table.loc["wild", "reward"])
    assert "excess_over_exact" not in table


def test_the_picture_repeats_and_shows_more_for_more_settings():
    trials = trials_frame()
    pictures = []
    for shown in (trials, trials, trials[:3]):
        settings = settings_table(shown, ["rate"])
        pictures.append(image_bytes(sweep_figure(shown, settings, ["rate"])))

    assert pictures[0] == pictures[1] != pictures[2]
    assert pictures[0].startswith(b"\x89PNG")


def test_the_picture_has_every_seed():
    trials = trials_frame()
    figure = sweep_figure(trials, settings_table(trials, ["rate"]), ["rate"])

    seeds, means = figure.panels[0].marks
    points = sorted(zip(seeds.y, seeds.x, strict=True))
    assert points == [(0, 0.5), (0, 0.7), (1, 0.1), (1, 0.2), (1, 0.3)]
    assert means.y == (0.0, 1.0)
    assert [text for _, text in figure.panels[0].y.ticks] == ["rate fast", "rate slow"]


def test_the_death_of_a_training_is_its_own(tmp_path):
    """Its process takes neither the sweep nor the other trainings with it."""
    trials = trials_of(
        ["steps=64,128"], seeds=[0], flags=["--quick", "--calibration", "none"], out=tmp_path
    )

    def submit(point: TrainingPoint) -> "Future[str | None]":
        if point is trials[1].point:
            point.folder.path.mkdir(parents=True)
            point.folder.report_html.touch()
            future: Future[str | None] = Future()
            future.set_result(None)
            return future
        pool = ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"))
        future = pool.submit(os._exit, 7)
        pool.shutdown(wait=False)
        return future

    errors = run_trials(trials, submit, at_once=1, console=Console(quiet=True))

    assert list(errors) == ["steps=64, seed 0"]
    assert errors["steps=64, seed 0"].startswith("BrokenProcessPool: ")


def base_file(folder: Path) -> list[str]:
    path = folder / "base.yaml"
    path.write_text("{steps: 128, evaluation_draws: 2, num_envs: 8, calibration: none}")
    return ["--quick", "--base", str(path)]


def test_finished_points_stay_and_a_failing_one_does_not_stop_the_others(tmp_path, capsys):
    out = tmp_path / "out"
    flags = [*base_file(tmp_path), "--vary", "learning_rate=1e-3", "--out", str(out)]
    folders = {seed: out / "learning_rate=0.001" / f"seed{seed}" for seed in (0, 1, 2)}
    scenario = ["--policy", "flat", "--quick", "--config", flags[2], "--learning-rate", "0.001"]
    alone = [*scenario, "--workers=1", "--seed=0", "--no-kpi", *NO_PICTURES]
    assert east_west_train.main([*alone, "--out", str(folders[0])]) == 0
    shutil.copytree(folders[0], folders[1])
    record = json.loads((folders[1] / "config.json").read_text())
    record["config"]["seed"] = 1
    (folders[1] / "config.json").write_text(json.dumps(record))
    (folders[1] / "checkpoint.safetensors").write_bytes(b"damaged")
    (folders[1] / "report.html").unlink()
    before = (folders[0] / "checkpoint.safetensors").stat().st_mtime_ns
    capsys.readouterr()

    assert main([*flags, "--seeds", "0,1,2", "--processes", "2"]) == 1

    shown = capsys.readouterr().out
    assert "FAILED: learning_rate=0.001, seed 1: checkpoint " in shown
    assert "2/3" in shown
    assert (folders[0] / "checkpoint.safetensors").stat().st_mtime_ns == before
    table = pd.read_csv(out / "sweep.csv")
    assert table["seed"].tolist() == [0, 1, 2]
    assert table["reward"].notna().tolist() == [True, False, True]
    assert "must be an intact eastwest-checkpoint" in table.loc[1, "error"]
    assert (out / "sweep.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "base.yaml").write_text(
        "{steps: 64, evaluation_draws: 2, num_envs: 8, calibration: none}"
    )
    assert main([*flags, "--seeds", "0"]) == 2
    assert "must hold a run with steps 64, got one with 128" in capsys.readouterr().err


@pytest.mark.soak
@pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
def test_a_point_trained_on_ray_is_the_run_trained_alone(tmp_path):
    flags = base_file(tmp_path)
    out, alone = tmp_path / "out", tmp_path / "alone"

    assert main([*flags, "--seeds", "3", "--ray", "local", "--out", str(out)]) == 0

    scenario = [
        "--policy",
        "flat",
        "--quick",
        "--config",
        flags[-1],
        "--seed",
        "3",
        "--workers",
        "1",
    ]
    assert east_west_train.main([*scenario, "--out", str(alone)]) == 0
    for name in ("checkpoint.safetensors", "config.json", "trace.json"):
        assert (out / "seed3" / name).read_bytes() == (alone / name).read_bytes()


def test_ray_is_asked_for_where_it_is_missing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("des.base.extras.find_spec", lambda name: None)

    assert main(["--quick", "--seeds", "0", "--ray", "local", "--out", str(tmp_path / "out")]) == 2
    assert "--ray needs the extra [ray]: pip install 'eastwest[ray]'" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
@pytest.mark.parametrize(
    "address", ["nowhere", "127.0.0.1:1", "127.0.0.1:99999", "ray://127.0.0.1:1"]
)
def test_an_address_without_a_cluster_is_refused_at_once(address, tmp_path, capsys):
    assert main(["--seeds", "0", "--ray", address, "--out", str(tmp_path / "out")]) == 2
    assert "ray: address must be local, auto or host:port of a running cluster" in (
        capsys.readouterr().err
    )
