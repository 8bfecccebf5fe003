"""Extensions in ``examples/``: short, right, and known to every command once installed."""

import importlib
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from epoch_cases import tables_by_hand
from strategies import bandwidth_factors, free_world, unit_domain, unit_workload, world

from agents.decision.problem import PlanningProblem
from agents.flat.backends import backend_named, backend_names
from agents.judge.steady_judge import SteadyJudge
from agents.planners.table import PLANNERS
from agents.replanning.table import SCHEDULERS
from des import SCHEDULES, Placement, Plan, simulate
from des.compiled.many.simulation import simulate_many
from des.dynamics import kind_of
from des.world.files.dynamics_forms import read_law
from scenarios.study.targets.measurement_size import SchedulerColumn, Scope
from scenarios.study.targets.sizes import SHORT

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PROJECT = tomllib.loads((EXAMPLES / "pyproject.toml").read_text("utf-8"))["project"]
FILES = sorted((EXAMPLES / "eastwest_examples").glob("[!_]*.py"))


def install(folder: Path) -> str:
    """Put the metadata of the examples next to a path of their source, as an installation does."""
    metadata = folder / "eastwest_examples-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: eastwest-examples\n")
    lines = []
    for group, rows in PROJECT["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in rows.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return str(folder)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(install(tmp_path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_has_fewer_than_40_lines(path):
    assert len(path.read_text("utf-8").splitlines()) < 40


def test_there_is_an_example_of_each_thing_that_can_be_added():
    assert [path.stem for path in FILES] == [
        *("backend", "law", "model", "planner", "rule", "schedule", "target"),
    ]


def test_the_schedule_takes_all_passes_of_a_microbatch_in_turn(installed):
    """On 3 stages of 1 s and 2 s without messages, 4 microbatches take 4 x 3 x 3 s."""
    workload = unit_workload([(1.0, 2.0)] * 3, num_microbatches=4)
    plan = Plan(placement=Placement(domain_of_layer=(0, 1, 2)), schedule="one_by_one")

    assert list(SCHEDULES)[-1] == "one_by_one"
    assert simulate(free_world(3), workload, plan).makespan_s == pytest.approx(36.0)


def test_plans_of_a_schedule_without_a_pace_are_judged_one_by_one(installed):
    workload = unit_workload([(1.0, 2.0)] * 3, num_microbatches=4)
    plans = [Plan(placement=Placement.even(3, 3), schedule=name) for name in ("one_by_one", "1f1b")]
    judge = SteadyJudge(workload, 3, schedules=("1f1b", "one_by_one"))

    expected_s = [simulate(free_world(3), workload, plan).makespan_s for plan in plans]
    scores = judge.scores(judge.job_of(free_world(3)), judge.plans_of(plans))
    assert (
        scores.tolist() == expected_s == simulate_many([free_world(3)], workload, plans)[0].tolist()
    )


def test_the_planner_takes_the_fastest_domain(installed):
    topology = free_world(2)
    slow, fast = topology.domains[0], unit_domain("B", flops_per_s=2.0)
    problem = PlanningProblem(
        topology=replace(topology, domains=(slow, fast)),
        workload=unit_workload([(1.0, 2.0)] * 2, num_microbatches=2),
    )
    row = PLANNERS["fastest_domain"]

    assert (row.name, row.kind) == ("fastest_domain", "plan")
    assert row(problem, np.random.default_rng(0)).placement.domain_of_layer == (1, 1)


def test_the_law_is_read_from_a_file_and_halves_bandwidths_in_turn(installed):
    law = read_law({"kind": "half_tide", "period": "4s", "ebb": 0.5})

    assert kind_of(law) == "half_tide"
    assert bandwidth_factors(law, 0, 1, [0.0, 1.9, 2.0, 4.0]).T.tolist() == [[1.0, 1.0, 0.5, 1.0]]


def test_the_backend_leaves_latencies_out(installed):
    topology = world("AB", {"AB": (1e300, 5.0), "BA": (1e300, 5.0)})
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=1)
    plan = Plan(placement=Placement(domain_of_layer=(0, 1)))
    backend = backend_named("latency_free")

    assert "latency_free" in backend_names()
    assert backend.prepare(topology, workload, plan)().makespan_s == pytest.approx(6.0)


def test_the_model_the_rule_and_the_target_are_values_that_need_no_table(installed):
    model, rule, target = (
        importlib.import_module(f"eastwest_examples.{name}") for name in ("model", "rule", "target")
    )
    tables = tables_by_hand(
        [[1.0, 2.0], [3.0, 2.0], [3.0, 2.0]], [[0.0, 9.0], [9.0, 0.0]], base_s=[1.0, 2.0]
    )
    column = SchedulerColumn(
        name="search_once",
        make=SCHEDULERS["search_once"],
        scope=Scope(sizes=replace(SHORT, num_worlds=1)),
    )
    (found,) = target.measure(column)

    assert model.small_workload().num_layers == 24
    assert rule.EveryNEpochs(2)(tables).tolist() == [0, 0, 1]
    assert 0.0 < found.value <= 1.0
    assert found.verdict in ("met", "missed")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("one_by_one = eastwest_examples:nothing", "schedule one_by_one: .* cannot be loaded"),
        (
            "one_by_one = eastwest_examples.law:HalfTide",
            "schedule one_by_one: must be a des.schedules",
        ),
    ],
)
def test_an_offer_of_another_kind_is_named(row, message, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    folder = install(tmp_path)
    entries = tmp_path / "eastwest_examples-0.1.0.dist-info" / "entry_points.txt"
    entries.write_text(f"[eastwest.schedules]\n{row}\n")
    monkeypatch.syspath_prepend(folder)

    with pytest.raises(ValueError, match=message):
        SCHEDULES["one_by_one"]


def test_commands_list_what_is_installed(tmp_path):
    """In a process of its own, as names are read when a command is loaded."""
    path = os.pathsep.join([install(tmp_path), str(EXAMPLES)])
    done = subprocess.run(
        [sys.executable, "-m", "scenarios", "run", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )

    assert "one_by_one" in done.stdout
    assert "fastest_domain" in done.stdout
