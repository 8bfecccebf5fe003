"""One row of the table makes a planner known to every command."""

from dataclasses import fields

import numpy as np
import pytest
from strategies import unit_workload, world

from agents.decision.problem import PlanningProblem
from agents.planners.names import POLICY, SEARCH_BOUND
from agents.planners.table import PLANNERS, quick_planners, reference_planners
from agents.replanning.table import RULES, SCHEDULERS, scheduler_makers
from des.base.command import UsageError
from scenarios.run import training_run_scenario as training_run
from scenarios.study.compare import command as compare
from scenarios.study.compare.cases import BEST_SCHEDULE
from scenarios.study.compare.static_part import static_planners
from scenarios.study.robustness import command as robustness
from scenarios.study.robustness.curves import default_names, held_planners, planner_names
from scenarios.study.targets import command as kpi


def test_every_command_offers_the_planners_of_the_table():
    assert {name.removesuffix(BEST_SCHEDULE) for name in static_planners()} == set(PLANNERS)
    assert set(held_planners()) - {"search_once"} == set(PLANNERS)
    assert set(scheduler_makers()) == {*PLANNERS, *SCHEDULERS}
    assert set(planner_names()) == {*PLANNERS, *SCHEDULERS}
    assert (*PLANNERS, *RULES, *SCHEDULERS, POLICY, SEARCH_BOUND) == training_run.DECIDERS


@pytest.mark.parametrize("name", [*PLANNERS, *SCHEDULERS])
def test_every_command_takes_every_name(name):
    """Their configurations refuse names that they do not know."""
    assert compare.Config(planners=(name,)).planners == (name,)
    assert robustness.Config(planners=(name,)).planners == (name,)
    assert kpi.Config(method=(name,)).method == (name,)


@pytest.mark.parametrize("name", RULES)
def test_rules_of_the_table_are_compared(name):
    assert compare.Config(planners=(name,)).planners == (name,)


@pytest.mark.parametrize(
    "make",
    [
        lambda: compare.Config(planners=("unknown",)),
        lambda: robustness.Config(planners=("unknown",)),
        lambda: kpi.Config(method=("unknown",)),
    ],
)
def test_other_names_are_refused(make):
    with pytest.raises(UsageError, match="unknown name 'unknown'"):
        make()


def test_names_are_those_of_the_rows_and_kinds_of_plan_are_kept():
    """A planner of a placement leaves the schedule alone, and all else as it is by default."""
    pair = world("AB", {"AB": (1.0, 0.5), "BA": (1.0, 0.5)})
    job = unit_workload([(1, 2)] * 4, num_microbatches=3, message_bytes=1.0)
    problem = PlanningProblem(topology=pair, workload=job, schedule="gpipe")

    for name, row in PLANNERS.items():
        assert row.name == name
        plan = row(problem, np.random.default_rng(0))
        if row.kind == "placement":
            assert plan.schedule == "gpipe", name
        if row.kind != "plan":
            assert not plan.replicas, name
    assert reference_planners().keys() <= quick_planners().keys()
    assert {"search_h8", "search_once"} <= set(default_names()) <= set(planner_names())
    assert "planner" in {field.name for field in fields(training_run.Config)}
