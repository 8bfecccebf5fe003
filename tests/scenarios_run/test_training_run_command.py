"""The command simulates the run that its flags say, writes equal bytes twice, refuses the rest."""

import dataclasses
import io
import json
import shutil
from contextlib import redirect_stdout
from dataclasses import replace

import pandas as pd
import pytest
from command_output import assert_refused, examples_of, help_of
from spot_cases import three_sites

from des import Parallelism, Placement, Plan, build_workload, read_topology
from des.dynamics import DYNAMICS
from des.training.background import BackgroundLoad
from des.training.training_run import run_training
from des.training.training_settings import TrainingRun
from des.world.files.topology_writer import write_topology
from des.worlds import EAST_CENTRAL_WEST
from scenarios.run.command import main
from scenarios.run.training_run_config import Config

FILES = [
    *("epochs.csv", "gantt.png", "iterations.csv", "links.png", "loads.csv", "map.png"),
    *("memory.png", "report.html", "result.json", "training_run.png"),
]
QUICK = ["--model", "llama2_7b", "--num-layers", "6", "--microbatches", "4", "--epochs", "3"]
QUICK += ["--epoch-s", "60"]
JOBS = ["--arrivals-per-s", "0.02", "--mean-duration-s", "60"]
MOVING = ["--dynamics", "markov_fast", "--planner", "exact", "--restart-s", "0.5"]
MOVING += ["--horizon-epochs", "100"]
QUIET = ["--figures", ""]


def run(folder, *flags, trainer="ideal"):
    """Run the command on a few short epochs and return its files."""
    assert main([*QUICK, *flags, "--trainer", trainer, "--out", str(folder)]) == 0
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def said_by(folder, *flags, trainer="ideal"):
    """Figures of a run without pictures in files; its report has them still."""
    return json.loads(run(folder, *flags, *QUIET, trainer=trainer)["result.json"])


@pytest.fixture(scope="module")
def moving(tmp_path_factory):
    """A run that moves beside other jobs: its folder, its files, and what it has printed."""
    folder = tmp_path_factory.mktemp("moving")
    with redirect_stdout(io.StringIO()) as shown:
        files = run(folder, *MOVING, *JOBS)
    return folder, files, shown.getvalue()


def test_the_files_say_what_the_simulator_says(tmp_path):
    flags = ["--dynamics", "ou", "--seed", "4", "--placement", "0*2,1*2,2*2"]
    files = run(tmp_path, *flags, *JOBS)

    load = BackgroundLoad(
        arrivals_per_s=0.02,
        mean_duration_s=60.0,
        gpu_fraction=0.125,
        memory_fraction=0.05,
        most_jobs=4,
    )
    history = run_training(
        replace(read_topology(EAST_CENTRAL_WEST), dynamics=DYNAMICS["ou"]),
        build_workload("llama2_7b", num_layers=6, num_microbatches=4),
        Plan(placement=Placement.parse("0*2,1*2,2*2")),
        TrainingRun(num_epochs=3, epoch_s=60.0, seed=4, background=(load,) * 3),
    )
    assert list(files) == FILES
    for series in ("iterations", "epochs", "loads"):
        read = pd.read_csv(tmp_path / f"{series}.csv")
        pd.testing.assert_frame_equal(read, history.to_frame(series), check_exact=True)
    said = json.loads(files["result.json"])
    assert said["num_iterations"] == len(history.iterations)
    assert said["total_s"] == history.total_s
    assert said["training_s"] == history.training_s == pytest.approx(history.total_s)
    assert said["mean_iteration_s"] * said["num_iterations"] == pytest.approx(said["training_s"])
    assert said["link_bytes"] == sum(row.num_bytes for row in history.iterations)
    assert said["config"]["dynamics"] == "ou"
    assert len(history.loads) > 10


def test_replicas_and_devices_reach_the_simulator(tmp_path):
    """Two replicas of two stages each, on devices that divide the layers; they stay as they are."""
    flags = ["--placement", "East*6", "--replicas", "West*6", "--parallelism", "2x2x2"]
    said_by(tmp_path, *flags, trainer="reference")

    history = run_training(
        read_topology(EAST_CENTRAL_WEST),
        build_workload("llama2_7b", num_layers=6, num_microbatches=4),
        Plan(
            placement=Placement.parse("0*6"),
            replicas=(Placement.parse("2*6"),),
            parallelism=(Parallelism(tensor=2, data=2, pipeline=2),) * 3,
        ),
        TrainingRun(num_epochs=3, epoch_s=60.0),
    )
    for series in ("iterations", "epochs"):
        read = pd.read_csv(tmp_path / f"{series}.csv")
        pd.testing.assert_frame_equal(read, history.to_frame(series), check_exact=True)


@pytest.mark.parametrize("flags", [[], JOBS, ["--planner", "exact"], "moving"])
def test_the_recorded_flags_make_the_same_run_again(tmp_path, flags, moving):
    first = moving[1] if flags == "moving" else run(tmp_path / "first", *flags)
    again = tmp_path / "again.json"
    again.write_text(json.dumps(json.loads(first["result.json"])["config"]), encoding="utf-8")

    assert main(["--config", str(again), "--out", str(tmp_path / "second")]) == 0
    for name, content in first.items():
        assert (tmp_path / "second" / name).read_bytes() == content


def test_a_planner_that_is_given_moves_the_model(moving):
    said = json.loads(moving[1]["result.json"])

    epochs = pd.read_csv(moving[0] / "epochs.csv")
    changed = epochs["placement"].shift() != epochs["placement"]
    assert said["num_plan_changes"] == changed.sum() - 1 >= 1
    assert said["moved_bytes"] == epochs["moved_bytes"].sum() > 0
    assert said["migration_s"] == pytest.approx(epochs["migration_s"].sum())
    assert said["total_s"] == pytest.approx(said["training_s"] + said["migration_s"])


def test_a_high_threshold_leaves_the_first_plan_and_loads_slow_the_run(tmp_path):
    calm = said_by(tmp_path, *MOVING, *JOBS, "--replan-threshold", "99")
    assert calm["num_plan_changes"] == 0

    busy = said_by(tmp_path, "--loads", "East=0.5/0.1")
    free = said_by(tmp_path)
    assert busy["mean_iteration_s"] > free["mean_iteration_s"]


def test_between_two_questions_sites_are_re_bound_alone(tmp_path, capsys):
    flags = ["--planner", "search_bound", "--replan-every", "9999", "--microbatch-size", "1"]
    said = said_by(tmp_path, *flags, *JOBS, trainer="megatron")

    assert said["moved_bytes"] == 0
    assert "two levels: the planner was asked 1 times" in capsys.readouterr().err


def test_moves_can_cost_the_restart_only(tmp_path):
    said = said_by(tmp_path, *MOVING, *JOBS, "--no-pays-bytes")

    assert said["moved_bytes"] == 0
    assert said["num_plan_changes"] > 0
    assert said["migration_s"] == 0.5 * said["num_plan_changes"]


def test_a_run_repeated_gives_the_same_bytes_over_its_old_files(tmp_path):
    first = run(tmp_path, *MOVING, *JOBS, "--seed", "5")
    other = run(tmp_path, *MOVING, *JOBS, "--seed", "6")
    again = run(tmp_path, *MOVING, *JOBS, "--seed", "5")

    assert first == again
    of_plan = {"gantt.png", "links.png", "map.png", "memory.png"}  # may be the same last plan
    assert all(first[name] != other[name] for name in set(FILES) - of_plan)


def test_the_terminal_shows_sums_and_files(moving):
    folder, files, shown = moving
    said = json.loads(files["result.json"])

    assert f"{said['num_iterations']} iterations of {said['mean_iteration_s']:.3f} s" in shown
    assert f"{said['num_plan_changes']} changes of plan" in shown
    for name in FILES:
        assert f"written: {folder / name}\n" in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--model", "gpt3_175b", "--trainer", "ideal"],
            "plan: domain East must hold at most 640.0 GB, got 1102",
        ),
        (["--model", "gpt3_175b"], "trainer megatron: .* does not fit; at best a GPU lacks"),
        (["--placement", "0*28"], "placement: .* each of the 80 layers .* got 28"),
        (["--dynamics", "still"], "dynamics must be one of steady, .*; got 'still'"),
        (["--planner", "best"], "planner must be one of exact, .*; got 'best'"),
        (["--planner", "exact", "--placement", "0*80"], "placement must be left out"),
        (["--planner", "exact", "--horizon-epochs", "0"], "horizon_epochs must be positive .* 0"),
        (["--epochs", "0"], "num_epochs must be a whole number from 1 .*, got 0"),
        (["--epoch-s", "0"], "epoch_s must be positive and finite, got 0"),
        (["--seed", "-1"], "seed must be .*at least 0, got -1"),
        (["--planner", "exact", "--restart-s", "-1"], "restart_s must be finite and not neg.*-1"),
        (["--horizon-epochs", "4"], "horizon_epochs must be left out without a planner, got 4.0"),
        (["--restart-s", "1"], "restart_s must be left out without a planner, got 1.0"),
        (["--no-pays-bytes"], "pays_bytes must be left out without a planner, got False"),
        (["--gpu-fraction", "0.1"], "gpu_fraction must be left out without arrivals_per_s above 0"),
        (["--memory-fraction", "0"], "memory_fraction must be left out without arrivals_per_s"),
        (["--most-jobs", "1", "--arrivals-per-s", "0"], "most_jobs must be left out without arr"),
        ([*JOBS[2:], "--planner", "exact"], "mean_duration_s must be left out without arrivals"),
        (["--planner", "exact", "--parallelism", "2x2x1"], "parallelism must be left out where"),
        (["--planner", "exact", "--replicas", "0*80"], "replicas must be left out where planner"),
        (["--parallelism", "1x1x1,1x1x1"], "parallelism must be one .* for each of 3 .*, got 2"),
        (["--parallelism", "9x9x1"], "parallelism of domain East must use at most its 8 GPUs"),
        (["--arrivals-per-s", "-1"], "arrivals_per_s must be positive and finite, got -1"),
        (["--arrivals-per-s", "1", "--most-jobs", "9"], "gpu_fraction times most_jobs .* below 1"),
        (["--replan-threshold", "0.2"], "replan_threshold must be left out without a planner"),
        (["--replan-threshold", "-1", "--planner", "exact"], "share must be finite and not neg"),
        (
            ["--replan-threshold", "1", "--planner", "H8"],
            "replan_threshold .* with H8, a rule",
        ),
        (
            ["--planner", "H8", "--dynamics", "markov_fast", "--links-in-use"],
            "flags of how links are seen must be left out with H8, a rule of all epochs at once",
        ),
        (["--link-delay-s", "5"], "link_delay_s must be left out without a planner"),
        (["--loads", "Mars=0.2"], "loads: unknown domain 'Mars'; allowed are East, Central, West"),
        (["--network", "none.yaml"], "none.yaml: topology file cannot be read"),
        (["--corrections", "none.json"], "none.json: corrections file cannot be read"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line_and_nothing_is_written(
    flags, message, tmp_path, capsys
):
    out = tmp_path / "out"
    assert_refused(main, [*flags, "--out", str(out)], message, capsys, unwritten=out)


def test_a_planner_that_sees_links_late_leaves_a_jam_late(tmp_path):
    flags = ["--model", "llama2_13b", "--num-layers", "12", "--microbatches", "16"]
    flags += ["--dynamics", "markov_slow", "--planner", "search", "--epochs", "10"]
    flags += ["--epoch-s", "600", "--restart-s", "0.5"]
    plain = said_by(tmp_path / "plain", *flags)
    late = said_by(tmp_path / "late", *flags, "--link-delay-s", "600")

    assert plain["num_plan_changes"] == late["num_plan_changes"] == 1
    assert late["num_iterations"] < plain["num_iterations"]
    assert late["config"]["link_delay_s"] == 600.0


def test_help_explains_every_flag_with_examples_that_run(tmp_path, monkeypatch, capsys):
    examples = examples_of(
        help_of(main, capsys, fields=dataclasses.fields(Config)), "scenarios.training_run"
    )
    assert len(examples) == 4
    monkeypatch.chdir(tmp_path)
    world = replace(read_topology(EAST_CENTRAL_WEST), availability=three_sites().over(["East"]))
    write_topology("spot.yaml", world)
    for example in examples:
        assert main([*example, "--epochs", "2"]) == 0
        is_spot = "spot.yaml" in example
        files = ["report.html", "result.json", "rules.csv", "sites.csv", "sites.png"]
        written = sorted(path.name for path in tmp_path.glob("runs/training_run/*"))
        assert written == (files if is_spot else FILES)
        shutil.rmtree("runs/training_run")
