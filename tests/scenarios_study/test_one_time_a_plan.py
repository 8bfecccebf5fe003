"""One time a plan: what a decision says is found by every command that takes the plan."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from agents.decide import main as decide
from agents.decision.load import LoadLaw
from agents.decision.plan_document import read_document
from agents.scheduling.env import SchedulingEnv
from agents.trainers.table import trainer_named
from des import simulate
from scenarios.iteration.command import main as simulated
from scenarios.run.command import main as run
from scenarios.study.compare.command import main as compare
from scenarios.study.targets.bound import bound_figures
from scenarios.suites.examples import example_world

WORLDS = ("four_domains_0", "four_domains_1", "four_domains_2")
TRAINERS = ("megatron", "torchtitan")


@pytest.fixture(scope="module", params=TRAINERS)
def decided(request, tmp_path_factory):
    """Files of the complete plans of a trainer on all worlds."""
    folder = tmp_path_factory.mktemp(request.param)
    for name in WORLDS:
        flags = ["--network", name, "--job", name, "--trainer", request.param, "--json"]
        assert decide([*flags, "--out", str(folder / f"{name}.json")]) == 0
    return request.param, folder


def read(folder, name):
    """A complete plan."""
    return read_document(json.loads((folder / f"{name}.json").read_text("utf-8")))


@pytest.mark.parametrize("name", WORLDS)
def test_simulations_runs_targets_and_environments_take_the_time_of_the_decision(
    name, decided, tmp_path
):
    trainer, folder = decided
    bound, plan = read(folder, name), str(folder / f"{name}.json")
    quiet = ["--figures", ""]
    assert simulated(["--plan", plan, "--out", str(tmp_path / "one"), *quiet]) == 0
    steps = ["--dynamics", "steady", "--epochs", "1", "--epoch-s", "1"]
    assert run(["--plan", plan, *steps, "--out", str(tmp_path / "run"), *quiet]) == 0

    one = json.loads((tmp_path / "one" / "result.json").read_text("utf-8"))
    report = (tmp_path / "one" / "report.html").read_text("utf-8")
    rows = pd.read_csv(tmp_path / "run" / "iterations.csv")
    assert one["makespan_s"] == bound.step_s
    assert f"{bound.step_s:.4g} s" in report
    assert rows["duration_s"].tolist() == [bound.step_s]
    assert simulate(bound.topology, bound.workload, bound.plan).makespan_s == bound.step_s
    world = example_world(WORLDS.index(name))
    assert bound_figures(trainer_named(trainer), world).best_s == bound.step_s
    assert step_of_environment(bound) == bound.step_s


def step_of_environment(bound):
    """Time of a step in an epoch without a change, on links and domains at base figures."""
    env = SchedulingEnv(
        network=replace(bound.topology, movement=None),
        model=bound.workload,
        trainer=bound.trainer,
        law="steady",
        load=LoadLaw(low_factor=1.0, high_factor=1.0),
        num_epochs=1,
        num_known=1,
    )
    env.reset(seed=0)
    info = env.step(env.action_space.sample() * 0)[-1]
    assert info["trainer"] == bound.trainer
    assert info["plan"] == bound.plan
    return info["iteration_s"]


def test_a_comparison_takes_the_times_of_the_decisions(decided, tmp_path):
    trainer, folder = decided
    flags = ["--suite", "examples", "--num-worlds", "3", "--num-draws", "1"]
    flags += ["--planners", "decide,uniform", "--trainer", trainer, "--figures", ""]

    assert compare([*flags, "--out", str(tmp_path / "out")]) == 0

    rows = pd.read_csv(tmp_path / "out" / "static.csv")
    own = rows[rows["method"] == "decide"].set_index("world")["time_s"]
    assert own.to_dict() == {name: read(folder, name).step_s for name in WORLDS}
    others = rows[rows["method"] == "uniform"]["time_s"]
    assert (others >= rows[rows["method"] == "decide"]["time_s"].to_numpy()).all()
