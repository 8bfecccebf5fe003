"""Schedulers and planners of a trainer: plans are bound, stay as they are, or fall back."""

from dataclasses import replace

import numpy as np
import pytest
from bound_cases import bind_plan, bound_plan, job, sites

from agents.decision.problem import PlanningProblem
from agents.decision.situation import Decision, Situation
from agents.planners.table import PLANNERS
from agents.replanning.bound_schedulers import (
    BoundScheduler,
    bound_planner,
    bound_scheduler,
    complete_plan,
    pool_binder,
    search_bound_scheduler,
)
from agents.replanning.pool import Pool
from agents.scheduling.job_world import JobWorld
from agents.search.sketches import quickest_bound, sketch_of
from agents.search.trainer_search import TrainerSearch
from agents.trainers.plan_checks import check_plan
from agents.trainers.table import trainer_named
from des import Placement, Plan, lower
from des.compiled.simulate import makespan_compiled_s
from des.plan.replacement import Replacement

MEGATRON, IDEAL = trainer_named("megatron"), trainer_named("ideal")
SEARCH = TrainerSearch(trainer=MEGATRON)
EVEN = Plan(placement=Placement.parse("0*16,1*16"))
UNEVEN = Plan(placement=Placement.parse("0*31,1*1"), schedule="zb_h1")


class Listed:
    """Decides for plans from a list, and keeps the last plans that it sees."""

    def __init__(self, *plans):
        self.plans, self.seen = list(plans), []

    def begin(self):
        self.seen = []

    def decide(self, situation):
        self.seen.append(situation.last_plan)
        return Decision(plan=self.plans[len(self.seen) - 1], level="order")


def situation(last=None, **changes):
    fields = {
        "topology": sites(),
        "base": sites(),
        "workload": job(),
        "epoch": 0,
        "epoch_s": 600.0,
        "replacement": Replacement(),
        "last_plan": last,
    }
    return Situation(**(fields | changes))


def completed(plan):
    problem = PlanningProblem(topology=sites(), workload=job())
    return complete_plan(problem, plan, SEARCH)


def test_a_plan_is_bound_seen_as_it_was_proposed_and_kept_with_its_gpus():
    inner = Listed(EVEN, EVEN, UNEVEN)
    scheduler = BoundScheduler(inner, SEARCH)
    scheduler.begin()

    first = scheduler.decide(situation())
    slower = replace(sites(), links=tuple(replace(one, latency_s=0.5) for one in sites().links))
    kept = scheduler.decide(situation(first.plan, topology=slower))
    moved = scheduler.decide(situation(kept.plan))

    assert first.plan == completed(EVEN)
    assert kept.plan is first.plan
    assert moved.plan == completed(UNEVEN)
    assert inner.seen == [None, EVEN, EVEN]
    for decision in (first, kept, moved):
        check_plan(MEGATRON, sites(), job(), decision.plan)
        assert not decision.is_fallback


def test_what_cannot_be_bound_leaves_the_last_plan_or_the_search_decides():
    three = Plan(
        placement=Placement.parse("0*32"),
        replicas=(Placement.parse("1*32"), Placement.parse("2*32")),
    )
    scheduler = BoundScheduler(Listed(three, three), SEARCH)
    scheduler.begin()

    first = scheduler.decide(situation())
    second = scheduler.decide(situation(bound_plan()))

    assert first.is_fallback
    assert first.plan == quickest_bound(sites(), job(), MEGATRON).plan
    assert second.is_fallback
    assert second.plan == bound_plan()


def test_perfect_devices_change_nothing():
    inner, planner = Listed(EVEN), PLANNERS["uniform"]

    assert bound_scheduler(inner, TrainerSearch(trainer=IDEAL)) is inner
    assert bound_planner(planner, IDEAL) is planner


def test_a_planner_gives_the_bound_plan_of_its_own():
    problem = PlanningProblem(topology=sites(), workload=job(), last_plan=bound_plan())
    rng = np.random.default_rng(0)
    own = PLANNERS["uniform"](problem, rng)

    assert bound_planner(PLANNERS["uniform"], MEGATRON)(problem, rng) == (completed(own))


def test_a_plan_is_completed_under_the_quickest_schedule_of_the_trainer():
    """All schedules are looked at, so none is quicker than the one taken."""
    plain = bind_plan(sites(), job(), EVEN, MEGATRON)

    free = completed(EVEN)

    assert makespan_compiled_s(sites(), lower(sites(), job(), free)) <= plain.step_s
    assert completed(replace(EVEN, schedule="gpipe")) == free
    assert completed(free) == free


def test_the_search_decides_the_quickest_plan_and_holds_it_where_moves_cost_more():
    scheduler = search_bound_scheduler(SEARCH, 1.0)
    scheduler.begin()
    best = quickest_bound(sites(), job(), MEGATRON)

    first = scheduler.decide(situation())
    dear = replace(situation(first.plan), replacement=Replacement(restart_s=1e9))
    slow = replace(sites(), links=tuple(replace(one, latency_s=0.5) for one in sites().links))

    assert first.plan == best.plan
    assert scheduler.decide(replace(dear, topology=slow)).plan == best.plan


def test_a_pool_is_bound_with_the_search_first_and_without_what_cannot_be():
    world = JobWorld(topology=sites(), workload=job(), epoch_s=600.0, iterations_per_epoch=20)
    back = Plan(placement=Placement.parse("0*16,1*8,0*8"))

    pool = pool_binder(world, SEARCH)(Pool(plans=(back, EVEN), known_from=(0, 2)))

    known = dict(zip(pool.plans, pool.known_from, strict=True))
    assert pool.plans[0] == quickest_bound(sites(), job(), MEGATRON).plan
    assert known[bind_plan(sites(), job(), EVEN, MEGATRON).plan] in (0, 2)
    assert len(pool.plans) == 2


@pytest.mark.parametrize("text", ["0*16,1*16", "2*32"])
def test_a_plan_of_perfect_devices_is_its_own_sketch(text):
    plan = Plan(placement=Placement.parse(text), schedule="zb_h1")

    assert sketch_of(plan) == plan
    assert sketch_of(bind_plan(sites(), job(), plan, MEGATRON).plan).placement == plan.placement
