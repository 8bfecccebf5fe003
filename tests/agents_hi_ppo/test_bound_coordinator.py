"""Coordinators of a trainer: bound plans are proposed, weighed by bound times, and taken."""

import pytest
from bound_cases import bind_plan, job, site, sites
from small_policies import coordinator, placement_policy, policies, situation_on

from agents.decision.run_epochs import run_course
from agents.hi_ppo.bound_proposals import BoundProposer
from agents.hi_ppo.coordinator import Coordinator
from agents.hi_ppo.moves.move_rules import WHOLE_RULES
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.schedulers import FixedRule
from agents.judge.look_ahead import LookAhead
from agents.judge.step_times import mean_step
from agents.replanning.bound_schedulers import BoundScheduler, bound_scheduler
from agents.scheduling.job_world import JobWorld
from agents.search.sketches import quickest_bound
from agents.search.trainer_search import TrainerSearch
from agents.trainers.plan_checks import check_plan
from agents.trainers.table import trainer_named
from des import simulate

MEGATRON, IDEAL = trainer_named("megatron"), trainer_named("ideal")
SEARCH = TrainerSearch(trainer=MEGATRON)
TWO = sites(site("A"), site("B", 8))
JOB = job()


def proposer() -> Proposer:
    """Untrained weights, whose look-ahead meets all orders of two domains."""
    return Proposer(placement_policy(), look_ahead=LookAhead(budget=300))


def test_a_proposer_gives_bindings_the_quickest_first():
    bound = BoundProposer(inner=proposer(), search=SEARCH)
    first = bound.propose(situation_on(TWO, JOB)).plans
    later = bound.propose(situation_on(TWO, JOB, last_plan=first[0])).plans
    sketches = proposer().propose(situation_on(TWO, JOB)).plans[:8]

    times_s = [simulate(TWO, JOB, plan).makespan_s for plan in first]
    assert times_s == sorted(times_s)
    assert times_s[0] <= min(bind_plan(TWO, JOB, one, MEGATRON).step_s for one in sketches)
    for plan in (*first, *later):
        assert plan.parallelism
        check_plan(MEGATRON, TWO, JOB, plan)


def always_best() -> Coordinator:
    """Takes the quickest plan known in every epoch, whatever the change costs."""
    return Coordinator(proposer(), None)


def test_without_a_move_policy_the_quickest_bound_plan_known_is_taken():
    """Of a situation without a past it is the quickest of the bound proposals."""
    scheduler = bound_scheduler(always_best(), SEARCH)
    scheduler.begin()
    plan = scheduler.decide(situation_on(TWO, JOB)).plan
    best = BoundProposer(inner=proposer(), search=SEARCH).propose(situation_on(TWO, JOB))

    taken_s = simulate(TWO, JOB, plan).makespan_s
    assert taken_s <= simulate(TWO, JOB, best.plans[0]).makespan_s
    check_plan(MEGATRON, TWO, JOB, plan)


def test_a_coordinator_is_bound_by_itself_and_left_alone_with_perfect_devices():
    inner = coordinator()

    assert bound_scheduler(inner, TrainerSearch(trainer=IDEAL)) is inner
    assert not isinstance(bound_scheduler(inner, SEARCH), BoundScheduler)


@pytest.mark.parametrize("moves", [True, False])
def test_moves_of_an_episode_are_bound_and_a_plan_that_stays_keeps_its_gpus(moves):
    """Links and loads stand still, so what is taken at first stays."""
    world = JobWorld(
        name="two",
        topology=TWO,
        workload=JOB,
        num_epochs=3,
        epoch_s=600.0,
        iterations_per_epoch=20,
    )
    scheduler = bound_scheduler(coordinator(moves=moves), SEARCH)
    course = run_course(world, 0, scheduler, mean_step=mean_step)

    assert len(set(course.plans)) == 1
    for plan in course.plans:
        check_plan(MEGATRON, TWO, JOB, plan)


def test_a_rule_weighs_moves_by_bound_times():
    """A move pays within eight epochs or the plan stays; the last one is bound and slow."""
    rule = FixedRule(WHOLE_RULES.rule(WHOLE_RULES.top, 8.0), WHOLE_RULES)
    scheduler = bound_scheduler(Coordinator(proposer(), rule), SEARCH)
    scheduler.begin()
    slow = bind_plan(TWO, JOB, proposer().propose(situation_on(TWO, JOB)).plans[-1], MEGATRON)
    free, dear = (
        situation_on(TWO, JOB, last_plan=slow.plan, epoch_s=length_s) for length_s in (1e4, 1.0)
    )
    moved = scheduler.decide(free).plan

    assert simulate(TWO, JOB, moved).makespan_s < slow.step_s
    scheduler.begin()
    assert scheduler.decide(dear).plan == slow.plan


@pytest.mark.parametrize("trained_range", [None, policies().trained_range], ids=["in", "out"])
def test_every_world_is_searched_too(trained_range):
    """Megatron-LM's best plan is among those known, as it is that of the search."""
    inner = Coordinator(proposer(), None, trained_range=trained_range)
    scheduler = bound_scheduler(inner, SEARCH)
    scheduler.begin()
    plan = scheduler.decide(situation_on(TWO, JOB)).plan

    assert bool(scheduler.misfits) == (trained_range is not None)
    assert simulate(TWO, JOB, plan).makespan_s <= quickest_bound(TWO, JOB, MEGATRON).step_s
