"""The command simulates the run that its flags say, writes equal bytes twice, refuses the rest."""

import dataclasses
import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from strategies import plan, unit_domain, unit_workload, world

from agents.planners.table import PLANNERS
from agents.replanning.training_planner import Replanning
from des import (
    STEADY,
    InfeasiblePlacementError,
    Parallelism,
    Placement,
    Plan,
    build_workload,
    read_topology,
    simulate,
)
from des.dynamics import DYNAMICS
from des.engine.migration import migration_s
from des.training.background import BackgroundLoad, LoadSample
from des.training.training_history import EpochRow, IterationRow, TrainingHistory
from des.training.training_run import run_training
from des.training.training_settings import EpochView, TrainingRun
from des.world.domain_load import IDLE, DomainLoad
from des.worlds import EAST_CENTRAL_WEST
from scenarios.run.command import main
from scenarios.run.training_run_figure import stalls, training_run_figure
from scenarios.run.training_run_scenario import Config

FILES = ["epochs.csv", "iterations.csv", "loads.csv", "result.json", "training_run.png"]
QUICK = ["--model", "llama2_7b", "--num-layers", "6", "--microbatches", "4", "--epochs", "3"]
QUICK += ["--epoch-s", "60"]
JOBS = ["--arrivals-per-s", "0.02", "--mean-duration-s", "60"]
MOVING = ["--dynamics", "markov_fast", "--planner", "exact", "--restart-s", "0.5"]
MOVING += ["--horizon-epochs", "100"]


def run(folder, *flags):
    """Run the command on a few short epochs and return its files."""
    assert main([*QUICK, *flags, "--out", str(folder)]) == 0
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


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
    """Two replicas of two stages each, on devices that divide the layers."""
    flags = ["--placement", "East*6", "--replicas", "West*6", "--parallelism", "2x2x2"]
    run(tmp_path, *flags)

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


@pytest.mark.parametrize("flags", [[], JOBS, ["--planner", "exact"], [*MOVING, *JOBS]])
def test_the_recorded_flags_make_the_same_run_again(tmp_path, flags):
    first = run(tmp_path / "first", *flags)
    again = tmp_path / "again.json"
    again.write_text(json.dumps(json.loads(first["result.json"])["config"]), encoding="utf-8")

    assert main(["--config", str(again), "--out", str(tmp_path / "second")]) == 0
    for name, content in first.items():
        assert (tmp_path / "second" / name).read_bytes() == content


def test_a_planner_that_is_given_moves_the_model(tmp_path):
    said = json.loads(run(tmp_path, *MOVING, *JOBS)["result.json"])

    epochs = pd.read_csv(tmp_path / "epochs.csv")
    changed = epochs["placement"].shift() != epochs["placement"]
    assert said["num_plan_changes"] == changed.sum() - 1 >= 1
    assert said["moved_bytes"] == epochs["moved_bytes"].sum() > 0
    assert said["migration_s"] == pytest.approx(epochs["migration_s"].sum())
    assert said["total_s"] == pytest.approx(said["training_s"] + said["migration_s"])


def test_moves_can_cost_the_restart_only(tmp_path):
    said = json.loads(run(tmp_path, *MOVING, *JOBS, "--no-pays-bytes")["result.json"])

    assert said["moved_bytes"] == 0
    assert said["num_plan_changes"] > 0
    assert said["migration_s"] == 0.5 * said["num_plan_changes"]


def test_a_run_repeated_gives_the_same_bytes_over_its_old_files(tmp_path):
    first = run(tmp_path, *MOVING, *JOBS, "--seed", "5")
    other = run(tmp_path, *MOVING, *JOBS, "--seed", "6")
    again = run(tmp_path, *MOVING, *JOBS, "--seed", "5")

    assert first == again
    assert all(first[name] != other[name] for name in FILES)


def test_the_terminal_shows_sums_and_files(tmp_path, capsys):
    said = json.loads(run(tmp_path, *MOVING, *JOBS)["result.json"])

    shown = capsys.readouterr().out
    assert f"{said['num_iterations']} iterations of {said['mean_iteration_s']:.3f} s" in shown
    assert f"{said['num_plan_changes']} changes of plan" in shown
    for name in FILES:
        assert f"written: {tmp_path / name}\n" in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model", "gpt3_175b"], "plan: domain East must hold at most 640.0 GB, got 1102"),
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
        (["--network", "none.yaml"], "none.yaml: topology file cannot be read"),
        (["--corrections", "none.json"], "none.json: corrections file cannot be read"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line_and_nothing_is_written(
    flags, message, tmp_path, capsys
):
    assert main([*flags, "--out", str(tmp_path / "out")]) == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert re.match(f"error: .*{message}", shown.err)
    assert not (tmp_path / "out").exists()


def test_help_explains_every_flag_with_examples_that_run(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])

    shown = capsys.readouterr().out
    assert end.value.code == 0
    for field in dataclasses.fields(Config):
        assert re.search(f"  --{field.name.replace('_', '-')}[ ,]", shown)
    joined = shown.replace("\\\n", " ")
    examples = re.findall(r"^  python -m scenarios.training_run(.*)$", joined, re.M)
    assert len(examples) == 3
    monkeypatch.chdir(tmp_path)
    for example in examples:
        assert main([*shlex.split(example), "--epochs", "2"]) == 0
        assert sorted(path.name for path in tmp_path.glob("runs/training_run/*")) == FILES


# When a proposal is taken. Two domains of 1 FLOP/s and two layers; B has become busy.

PAIR = world("AB", {"AB": (4.0, 0.0), "BA": (4.0, 0.0)})
"""A layer of 16 bytes moves within 4 s."""

TWO_LAYERS = unit_workload([(1, 1)] * 2, num_microbatches=1)
BUSY_B = (IDLE, DomainLoad(utilisation=0.5))


def view_of(topology, plan, loads=BUSY_B):
    return EpochView(
        epoch=1, time_s=0.0, topology=topology, loads=loads, load_changes=(), plan=plan
    )


def decided(view, *, planner="single_domain", horizon_epochs=1.0, epoch_s=40.0, **costs):
    replanning = Replanning(
        planner=PLANNERS[planner],
        workload=TWO_LAYERS,
        schedule="1f1b",
        run=TrainingRun(num_epochs=9, epoch_s=epoch_s, **costs),
        horizon_epochs=horizon_epochs,
    )
    return replanning.decide(np.random.default_rng(0))(view)


def test_a_move_is_made_where_it_pays_within_the_horizon():
    """All in B takes 8 s, in A 4 s: half of the horizon is saved, 8 s and a restart are paid."""
    at_b, at_a = view_of(PAIR, plan(1, 1)), plan(0, 0)

    assert decided(at_b, restart_s=11.5) == at_a  # 19.5 s of 40 s
    assert decided(at_b, restart_s=12.5) == plan(1, 1)
    assert decided(at_b, restart_s=12.5, horizon_epochs=2.0) == at_a
    assert decided(at_b, restart_s=12.5, epoch_s=80.0) == at_a
    assert decided(at_b, restart_s=12.5, pays_bytes=False) == at_a


def test_the_first_plan_is_the_planners_and_a_worse_one_never_comes_after():
    assert decided(view_of(PAIR, None), planner="uniform") == plan(0, 1)
    there = view_of(PAIR, plan(0, 0))
    assert decided(there, planner="uniform", restart_s=0.0, pays_bytes=False) == plan(0, 0)


def test_over_links_that_are_down_nothing_moves_and_what_needs_them_gets_out():
    cut = replace(PAIR, links=())
    one_way = replace(PAIR, links=PAIR.links[1:])

    assert decided(view_of(cut, plan(1, 1)), restart_s=0.0) == plan(1, 1)
    assert decided(view_of(one_way, plan(1, 1)), restart_s=0.0) == plan(0, 0)
    assert decided(view_of(one_way, plan(0, 1)), restart_s=0.0) == plan(0, 0)


def test_where_no_plan_fits_beside_the_jobs_the_present_one_waits():
    """A layer holds 17 bytes at work: 2 of 40 bytes fit into one domain, not into a quarter."""
    small = replace(PAIR, domains=tuple(unit_domain(name, memory_bytes=40.0) for name in "AB"))
    full = (DomainLoad(utilisation=0.25, memory_occupancy=0.75),) * 2

    assert decided(view_of(small, plan(1, 1), full), planner="exact") == plan(1, 1)
    with pytest.raises(InfeasiblePlacementError):
        decided(view_of(small, None, full), planner="exact")


def test_the_rule_costs_nothing_where_the_world_stands_still():
    run = TrainingRun(num_epochs=4, epoch_s=100.0)
    replanning = Replanning(
        planner=PLANNERS["exact"],
        workload=TWO_LAYERS,
        schedule="1f1b",
        run=run,
        horizon_epochs=4.0,
    )

    history = run_training(PAIR, TWO_LAYERS, replanning.decide(np.random.default_rng(0)), run)

    assert history.migration_s == 0
    best_s = simulate(PAIR, TWO_LAYERS, history.epochs[0].plan).makespan_s
    assert history.total_s == 100 * best_s
    assert PAIR.dynamics == STEADY
    assert migration_s(PAIR, TWO_LAYERS, plan(0, 0), plan(1, 1), restart_s=0.0) == 8.0


def test_the_picture_is_grey_where_no_iteration_runs():
    rows = tuple(
        IterationRow(number, 0, start_s, 10.0, 0.0, 0.0, 1.0)
        for number, start_s in enumerate([0.0, 10.0, 25.0, 35.0])
    )
    epoch = EpochRow(
        epoch=0,
        start_s=0.0,
        plan=plan(0, 0),
        moved_bytes=0.0,
        drain_s=0.0,
        migration_s=5.0,
        stall_s=3.0,
        num_iterations=4,
    )
    history = TrainingHistory(
        domains=("A",), total_s=48.0, iterations=rows, epochs=(epoch,), loads=()
    )

    assert list(stalls(history)) == [(20.0, 25.0), (45.0, 48.0)]


def drawn_panels(load):
    """Lower and upper end of every panel of a run beside one load."""
    row = IterationRow(0, 0, 0.0, 10.0, 0.0, 0.0, 1.0)
    epoch = EpochRow(
        epoch=0,
        start_s=0.0,
        plan=plan(0, 0),
        moved_bytes=0.0,
        drain_s=0.0,
        migration_s=0.0,
        stall_s=0.0,
        num_iterations=1,
    )
    history = TrainingHistory(
        domains=("A",),
        total_s=10.0,
        iterations=(row,),
        epochs=(epoch,),
        loads=(LoadSample.of(0.0, 0, load),),
    )
    figure = training_run_figure(history, title="a run")
    lines = {axes.get_ylabel().replace("\n", " "): axes.lines for axes in figure.axes}
    return lines, [axes.get_ylim() for axes in figure.axes]


def test_the_picture_has_every_share_that_other_jobs_take():
    lines, _ = drawn_panels(DomainLoad(utilisation=0.25, memory_occupancy=0.125, queue_length=3))

    for label, value in (("GPUs taken", 0.25), ("memory taken", 0.125)):
        assert set(lines[f"{label} by other jobs"][0].get_ydata()) == {value}
    assert set(lines["other jobs waiting"][0].get_ydata()) == {3}


def test_a_panel_of_zeros_goes_from_0_to_1():
    _, (iterations, *others) = drawn_panels(IDLE)

    assert others == [(0.0, 1.0)] * 4
    assert iterations[0] == 0.0
    assert iterations[1] > 10.0
