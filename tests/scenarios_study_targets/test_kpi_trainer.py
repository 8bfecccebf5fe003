"""Targets of plans that a trainer runs: columns, references, draws without one, refusals."""

import math
from dataclasses import replace
from functools import partial

import pytest
from command_output import assert_refused

from agents.decision.frozen_network import freeze_topology
from agents.decision.problem import PlanningProblem
from agents.decision.run_epochs import run_course
from agents.hi_ppo.policies import shipped_files
from agents.hi_ppo.schedulers import policy_scheduler
from agents.replanning.search_schedulers import HoldPlan
from agents.search.sketches import quickest_bound
from agents.trainers.plan_checks import check_plan
from agents.trainers.table import TRAINERS
from des.plan.plan_texts import PERFECT_DEVICES
from scenarios.study.targets.command import main
from scenarios.study.targets.gap import gap_of
from scenarios.study.targets.measurement_size import SchedulerColumn, Scope
from scenarios.study.targets.references import in_one_domain
from scenarios.study.targets.sizes import SHORT
from scenarios.study.targets.table import of_perfect_devices
from scenarios.study.targets.target import Goal, Target
from scenarios.study.targets.time_and_utilisation import known, times_of
from scenarios.suites import suite

MEGATRON = TRAINERS["megatron"]


def scope(**changes):
    sizes = replace(SHORT, num_worlds=1, num_epochs=2)
    return Scope(**({"sizes": sizes, "trainer": MEGATRON} | changes))


def held_in(domain, given):
    """The column that keeps the whole job in a domain."""
    make = partial(HoldPlan, lambda _, workload: in_one_domain(domain, workload))
    return SchedulerColumn(name=f"domain {domain}", make=make, scope=given)


def world_of(given, index):
    return given.worlds("eval_calm", index + 1)[index]


def test_every_epoch_has_a_plan_of_the_trainer_and_no_domain_alone_beats_the_reference():
    """The reference may change the domain, so it takes no longer than to stay in any."""
    given = scope()
    world = world_of(given, 4)
    assert world.workload.gradient_precision == MEGATRON.gradient_precision

    for domain in range(2):
        column = held_in(domain, given)
        episode, times = column.episode(world, 0), times_of(column, world, 0)
        for plan in episode.plans:
            check_plan(MEGATRON, world.topology, world.workload, plan)
        assert times.own_s == episode.total_s >= times.single_s > times.physical_s
        assert times.saving <= 0.0


def test_a_job_that_fits_into_no_domain_has_no_reference_and_is_left_out():
    """70 billion parameters and their state are 1.2 TB, a domain has 640 GB."""
    given = scope()
    world = world_of(given, 1)
    assert all(one.memory_bytes < 1.2e12 for one in world.topology.domains)

    times = times_of(SchedulerColumn(name="held", make=HoldPlan, scope=given), world, 0)

    assert math.isnan(times.saving)
    assert math.isnan(times.gain)
    assert not times.single_fits
    assert known([0.25, times.saving]) == [0.25]


def test_perfect_devices_are_the_default_of_a_scope_and_change_nothing():
    given = scope(trainer=TRAINERS["ideal"])
    world = world_of(given, 0)
    plan = in_one_domain(0, world.workload)
    problem = PlanningProblem(topology=world.topology, workload=world.workload)

    assert given == scope(trainer=Scope(sizes=SHORT).trainer)
    assert given.as_run(HoldPlan) is HoldPlan
    assert given.plan_as_run(problem, plan) is plan
    assert given.on_perfect_devices() is given
    assert world == suite("eval_calm").with_domains(4, 5, 6).world(0)


def test_a_plan_is_bound_once_a_network_whatever_its_schedule():
    given = scope()
    world = world_of(given, 0)
    problem = PlanningProblem(topology=world.topology.at_start(), workload=world.workload)
    plan = in_one_domain(0, world.workload)

    first = given.plan_as_run(problem, plan)

    deeper = replace(plan, schedule="1f1b_4x")
    assert first is not None
    assert given.plan_as_run(problem, deeper) is first


def test_what_a_study_remembers_changes_no_course():
    """Of policies, whose plans come from searches and bindings, and of one whose are bound."""
    given = scope()
    world = world_of(given, 0)
    for make in (policy_scheduler(shipped_files()[0])[0], HoldPlan):
        column = SchedulerColumn(name="own", make=make, scope=given)
        alone = run_course(world, 3, column.timed_scheduler(), num_epochs=2, must_fit=False)
        for _ in range(2):
            again = run_course(world, 3, given.as_run(make)(), num_epochs=2, must_fit=False)
            assert again.plans == alone.plans
            assert again.total_s == alone.total_s


def test_a_first_plan_that_beats_all_that_is_known_has_no_gap():
    given = scope()

    assert gap_of(held_in(0, given), world_of(given, 4), 0, best_s=1e9) == 0.0


def test_groups_of_perfect_devices_say_so():
    def measure(column):
        is_perfect = float(column.scope.trainer.is_ideal)
        goal = Goal(sense="at least", target=1.0)
        fields = {"definition": "perfect", "reference": "none", "value": is_perfect}
        return [Target(name="perfect", goal=goal, interval=None, notes=("one",), **fields)]

    (found,) = of_perfect_devices(measure)(held_in(0, scope()))

    assert found.value == 1.0
    assert found.notes == ("one", PERFECT_DEVICES)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--trainer", "other"], "trainer must be one of megatron, .*; got 'other'"),
        (
            ["--trainer", "ideal", "--method", "search_bound"],
            "search_bound needs a trainer that binds GPUs, got ideal",
        ),
        (
            ["--method", "search_bound", "--targets", "time,ranking"],
            "targets must leave out pareto, ranking with search_bound, .*; got 'ranking'",
        ),
    ],
)
def test_what_no_trainer_runs_is_refused(flags, message, tmp_path, capsys):
    out = tmp_path / "out"
    assert_refused(main, [*flags, "--out", str(out)], message, capsys, unwritten=out)


def test_first_plans_of_policies_are_at_least_those_of_the_search():
    """Policies weigh plans as the trainer runs them, and search beside their own proposals."""
    given = scope()
    make, _ = policy_scheduler(shipped_files()[0])
    column = SchedulerColumn(name="hi_ppo", make=make, scope=given)
    for index in range(2):
        world = world_of(given, index)
        topology = freeze_topology(world, 0, 0)
        best = quickest_bound(topology, world.workload, MEGATRON)
        assert gap_of(column, world, 0, best.step_s) == 0.0
