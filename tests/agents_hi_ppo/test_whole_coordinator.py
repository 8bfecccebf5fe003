"""Coordinators among plans of all families: proposals, memory and choices."""

from dataclasses import replace

import pytest
from epoch_cases import HandWorld
from small_policies import JOB, THREE, drawn, situation_on, slowed, with_memory, without

from agents.decision.families import FAMILIES, family_of
from agents.decision.levels import LEVELS, level_of
from agents.decision.plan_space import PlanSpace
from agents.decision.run_epochs import run_course
from agents.hi_ppo.whole_proposals import WholeProposer, moving_scheduler, near_changes
from agents.judge.step_times import mean_step, step_times_s
from agents.planners.names import MOVING_NAMES
from agents.replanning.tables import tables_of, total_s
from agents.search.ideal_plans import ideal_plans
from des import InfeasiblePlacementError, Placement, Plan
from des.world.domain_load import DomainLoad

SLOW = slowed(THREE, 0.002)


def test_a_proposal_is_the_best_of_the_search_and_of_near_changes():
    last = ideal_plans(THREE, JOB, PlanSpace())[0].plan
    here = drawn(1)

    first = WholeProposer().propose(situation_on(here, base=THREE), num_plans=2).plans
    later = WholeProposer().propose(situation_on(here, base=THREE, last_plan=last), num_plans=2)

    assert first == tuple(one.plan for one in ideal_plans(here, JOB, PlanSpace())[:2])
    assert later.plans[:2] == first
    near_s = step_times_s(here, JOB, near_changes(last))
    assert later.plans[2] == near_changes(last)[int(near_s.argmin())]


def test_near_plans_differ_by_a_schedule_or_a_layer():
    copies = Plan(placement=Placement.parse("0*2,1*1"), replicas=(Placement.parse("2*3"),))

    near = near_changes(copies)

    assert {level_of(copies, plan) for plan in near} == {"depth", "split"}
    assert [str(one.placement) for one in near if one.schedule == copies.schedule] == ["0*1,1*2"]
    assert len(near) == len(set(near))


def test_memory_that_other_jobs_occupy_is_left_to_them():
    """Where a domain is nearly full no plan puts a layer there."""
    loads = (DomainLoad(memory_occupancy=0.999), DomainLoad(), DomainLoad())

    decision = moving_scheduler("decide_h8").decide(situation_on(loads=loads))

    assert 0 not in decision.plan.placement.domain_of_layer
    with pytest.raises(InfeasiblePlacementError, match="no plan was found that fits"):
        moving_scheduler("decide_h8").decide(situation_on(with_memory(THREE, 1e9)))


@pytest.mark.parametrize("name", MOVING_NAMES)
def test_each_scheduler_changes_the_family_when_links_get_slow(name):
    scheduler = moving_scheduler(name, FAMILIES)
    first = scheduler.decide(situation_on())

    second = scheduler.decide(situation_on(SLOW, base=THREE, epoch=1, last_plan=first.plan))

    assert second.level == level_of(first.plan, second.plan)
    assert second.plan.replicas or family_of(second.plan) == "single"
    assert scheduler.counts.decisions == 2


def test_a_course_costs_what_the_tables_of_its_plans_say():
    """Copies that seldom exchange are judged by the mean of their steps."""
    hand = HandWorld(epochs=(THREE, SLOW, THREE), topology=THREE, workload=JOB)

    course = run_course(hand, 0, moving_scheduler("decide_h1", FAMILIES), mean_step=mean_step)

    plans = tuple(dict.fromkeys(course.plans))
    tables = tables_of(hand, 0, plans)
    path = [plans.index(plan) for plan in course.plans]
    assert course.total_s == pytest.approx(total_s(tables, path), rel=1e-9)
    assert set(course.moves) == set(LEVELS)


def test_a_domain_that_is_gone_takes_the_plan_with_it():
    scheduler = moving_scheduler("decide_h8", FAMILIES)
    first = scheduler.decide(situation_on())
    two = without(THREE, "West")

    second = scheduler.decide(replace(situation_on(two, epoch=1), last_plan=first.plan))

    assert max(max(one.domain_of_layer) for one in second.plan.placements) < 2
    assert scheduler.counts.losses_of_domain == 1


def test_a_name_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="name must be one of decide_learned"):
        moving_scheduler("decide_all")
