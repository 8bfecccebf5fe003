"""The coordinator: plans that are valid, memory, lost domains, and what happens when none fits."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from small_policies import (
    JOB,
    THREE,
    coordinator,
    drawn,
    move_policy,
    plans_of,
    situation_on,
    slowed,
    with_memory,
    without,
)
from strategies import unit_domain, unit_workload

from agents.decision.levels import level_of
from agents.decision.run_epochs import run_course
from agents.decision.situation import Preference
from agents.hi_ppo import coordinator as module
from agents.hi_ppo.coordinator import Coordinator, NoValidPlanError
from agents.hi_ppo.moves import choosing
from agents.hi_ppo.placement.features import features_of
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.policies import TrainedRange
from agents.hi_ppo.validation import require_valid
from agents.judge.look_ahead import PlanJudge
from des import InfeasiblePlacementError, Link, Plan, Topology, check_memory, simulate
from des.world.domain_load import DomainLoad
from scenarios.suites import suite

LOST = "Central"
SOME = plans_of("0*16,1*16", "0*12,1*20", "1*16,0*16", "2*32", "0*10,1*10,2*12")


@pytest.mark.parametrize("moves", [False, True])
def test_a_course_of_a_suite_is_decided_in_valid_plans(moves):
    """`run_course` refuses a plan that does not fit; the first decision sees base figures too."""
    world = replace(suite("hard").world(0), num_epochs=10)
    scheduler = coordinator(moves=moves)

    result = run_course(world, 3, scheduler)

    assert len(result.rows) == 10
    assert result.num_fallbacks == 0
    assert scheduler.counts.decisions == 10
    for row in result.rows:
        check_memory(world.topology, world.workload, row.plan)
        assert set(row.response_s) == {"proposals", "move", "validation", "inter_domain"}


@pytest.mark.parametrize("moves", [False, True])
def test_equal_seeds_decide_alike_and_begin_forgets(moves):
    """After another draw, a scheduler decides as a new one does."""
    world = replace(suite("hard").world(1), num_epochs=6)
    scheduler = coordinator(moves=moves)
    first, _, again = (
        [row.plan for row in run_course(world, draw_seed, scheduler).rows]
        for draw_seed in (5, 6, 5)
    )
    fresh = run_course(world, 5, coordinator(moves=moves))

    assert first == again == [row.plan for row in fresh.rows]


def test_without_a_move_policy_the_best_plan_of_the_epoch_is_taken():
    """No known plan, and no proposal of its own, is quicker now."""
    scheduler = coordinator(moves=False)
    last = None
    for epoch in range(4):
        topology = drawn(epoch)
        situation = situation_on(topology, base=THREE, epoch=epoch, last_plan=last)
        last = scheduler.decide(situation).plan
        found = scheduler.proposer.propose(situation)
        taken_s = simulate(topology, JOB, last).makespan_s
        assert taken_s <= found.iteration_s[0] * 1.02
        assert taken_s <= min(simulate(topology, JOB, plan).makespan_s for plan in SOME)


def test_who_wants_no_communication_gets_one_domain():
    situation = situation_on(preference=Preference(time=0.0, communication=1.0))
    for moves in (False, True):
        scheduler = coordinator(moves=moves)
        plan = scheduler.decide(situation).plan
        assert plan.placement.num_borders == 0
        slow = replace(situation, topology=slowed(THREE, 0.1), epoch=1, last_plan=plan)
        assert scheduler.decide(slow).plan == plan  # an equal one is no reason to move
        for other in plans_of("0*32", "0*16,1*16", "0*10,1*10,2*12"):
            alone = scheduler.decide(replace(situation, epoch=2, last_plan=other)).plan
            assert alone.placement.num_borders == 0


def test_a_change_of_preference_or_of_base_figures_begins_the_memory_anew():
    """What was weighed in other units is no memory; plans stay known."""
    scheduler = coordinator()
    decision = scheduler.decide(situation_on())
    later = situation_on(
        slowed(THREE, 0.5), base=slowed(THREE, 0.9), epoch=1, last_plan=decision.plan
    )
    known = scheduler.decide(later).plan
    weighed = replace(
        later, epoch=2, last_plan=known, preference=Preference(time=0.9, communication=0.1)
    )

    require_valid(weighed, scheduler.decide(weighed).plan)
    assert scheduler.counts.decisions == 3


def test_loads_take_memory_off():
    """Under the last 5 % of memory a domain takes no part, and plans that fitted no longer do."""
    scheduler = coordinator()
    first = scheduler.decide(situation_on())
    full = (DomainLoad(memory_occupancy=0.995), DomainLoad(), DomainLoad())
    situation = situation_on(epoch=1, last_plan=first.plan, loads=full)

    plan = scheduler.decide(situation).plan

    require_valid(situation, plan)
    assert 0 not in plan.placement.domain_of_layer


def test_beyond_the_most_known_plans_the_worse_half_is_forgotten(monkeypatch):
    """No more are kept than fit, but those on which rules of the move policy stand."""
    monkeypatch.setattr(choosing, "MOST_KNOWN", 12)
    scheduler = coordinator()
    last, sizes = None, []
    for epoch in range(10):
        situation = situation_on(drawn(epoch), base=THREE, epoch=epoch, last_plan=last)
        last = scheduler.decide(situation).plan
        require_valid(situation, last)
        sizes.append(len(scheduler._known))
    assert max(sizes) <= 12
    assert min(np.diff(sizes)) < 0
    assert scheduler.counts.fallbacks == 0


def test_plans_that_fit_no_longer_are_forgotten_and_come_back():
    """Epoch by epoch another domain is full."""
    scheduler = coordinator()
    last = None
    for epoch in range(9):
        shares = [0.995 if domain == epoch % 3 else 0.0 for domain in range(3)]
        loads = tuple(DomainLoad(memory_occupancy=share) for share in shares)
        situation = situation_on(drawn(epoch), base=THREE, epoch=epoch, last_plan=last, loads=loads)
        last = scheduler.decide(situation).plan
        require_valid(situation, last)
        assert epoch % 3 not in last.placement.domain_of_layer


# Figures that are not numbers.


def test_figures_that_are_not_numbers_are_refused_at_the_door():
    with pytest.raises(ValueError, match="bandwidth_bytes_per_s"):
        replace(THREE.links[0], bandwidth_bytes_per_s=float("nan"))
    job = PlanJudge(JOB, 3).job_of(THREE)
    broken = job._replace(rate_flops_per_s=job.rate_flops_per_s * np.array([1.0, np.nan, 1.0]))
    with pytest.raises(ValueError, match="nodes must be finite"):
        features_of(THREE, job, broken)


# Domains that come and go.


def test_a_plan_that_used_a_lost_domain_is_replaced_by_one_without_it():
    scheduler = coordinator()
    fast = situation_on(slowed(THREE, 50.0), base=slowed(THREE, 50.0))
    first = scheduler.decide(fast).plan
    assert set(first.placement.domain_of_layer) == {0, 1, 2}

    left = without(THREE, LOST)
    decision = scheduler.decide(situation_on(left, epoch=1, last_plan=first))

    assert scheduler.counts.losses_of_domain == 1
    assert decision.level == "order"
    require_valid(situation_on(left), decision.plan)


def test_a_plan_that_did_not_use_a_lost_domain_stays_comparable():
    """West is domain 2 of three and 1 of two; there a plan that stays is no change."""
    scheduler = coordinator(moves=False)
    west = plans_of("2*32")[0]
    alone = situation_on(preference=Preference(time=0.0, communication=1.0), last_plan=west)
    scheduler.decide(alone)

    left = without(THREE, LOST)
    decision = scheduler.decide(replace(alone, topology=left, base=left, epoch=1))

    assert scheduler.counts.losses_of_domain == 1
    renamed = plans_of("1*32")[0]
    assert decision.level == level_of(renamed, decision.plan)
    assert max(decision.plan.placement.domain_of_layer) <= 1


def test_a_domain_that_comes_is_no_loss():
    scheduler = coordinator()
    left = without(THREE, LOST)
    plan = scheduler.decide(situation_on(left)).plan
    scheduler.decide(situation_on(THREE, epoch=1, last_plan=plan))

    assert scheduler.counts.losses_of_domain == 0


# Where the policies have learnt nothing, or find nothing.


def test_where_nothing_fits_the_shortfall_is_named():
    """7 billion parameters of 16 bytes are 108 GB; three domains of 8 GPUs of 1 GB have 24."""
    situation = situation_on(with_memory(THREE, 1e9))
    pattern = r"domain \w+ must hold at most 8\.0 GB, got [0-9.]+ GB .*model state"
    with pytest.raises(InfeasiblePlacementError, match=pattern):
        coordinator().decide(situation)


def test_where_nothing_fits_any_longer_the_shortfall_is_named_too():
    scheduler = coordinator()
    plan = scheduler.decide(situation_on()).plan
    small = situation_on(with_memory(THREE, 1e9), base=THREE, epoch=1, last_plan=plan)
    with pytest.raises(InfeasiblePlacementError, match=r"must hold at most 8\.0 GB, got"):
        scheduler.decide(small)


def test_a_world_outside_the_range_is_told_and_planned_too():
    """The planner's plan is among those that are weighed: without moves nothing is slower."""
    learnt = TrainedRange.of([(THREE, JOB)])
    outside = slowed(THREE, 0.3)
    scheduler = coordinator(moves=False, trained_range=learnt)

    plan = scheduler.decide(situation_on(outside)).plan

    assert scheduler.misfits[0].startswith("ratio ")
    best = coordinator(moves=False, trained_range=learnt)
    best.decide(situation_on(THREE))
    assert best.misfits == ()
    planned = module.planned(situation_on(outside), seed=1)
    taken_s, planned_s = (simulate(outside, JOB, one).makespan_s for one in (plan, planned))
    assert taken_s <= planned_s


def test_more_domains_than_the_policy_knows_are_planned():
    names = [f"d{index:02}" for index in range(17)]
    links = [
        Link(source=one, target=other, bandwidth_bytes_per_s=1e3, latency_s=0.01)
        for one, other in permutations(names, 2)
    ]
    many = Topology.of([unit_domain(name) for name in names], links)
    job = unit_workload([(1.0, 2.0)] * 20, num_microbatches=4, message_bytes=1.0)
    scheduler = coordinator()

    situation = situation_on(many, job)
    decision = scheduler.decide(situation)

    require_valid(situation, decision.plan)
    alone = max(simulate(many, job, plan).makespan_s for plan in plans_of("0*20"))
    assert simulate(many, job, decision.plan).makespan_s < alone


# Plans that cannot be used.


def refusing(allowed: set[Plan]):
    """Refuse all plans but some."""

    def validate(situation, plan):
        if plan not in allowed:
            raise InfeasiblePlacementError(f"plan {plan.placement} is not allowed")

    return validate


def test_a_plan_that_is_refused_is_not_used_and_counted():
    last = plans_of("0*16,1*16")[0]
    scheduler = coordinator(moves=False, validate=refusing({last}))

    decision = scheduler.decide(situation_on(slowed(THREE, 0.1), last_plan=last))

    assert decision.is_fallback
    assert decision.plan == last
    assert decision.level == "nothing"
    assert (scheduler.counts.decisions, scheduler.counts.fallbacks) == (1, 1)


def test_without_any_plan_to_use_both_reasons_are_given():
    last = plans_of("0*16,1*16")[0]
    scheduler = coordinator(moves=False, validate=refusing(set()))

    with pytest.raises(NoValidPlanError, match=r"neither the new plan \(.*\) nor the last one can"):
        scheduler.decide(situation_on(slowed(THREE, 0.1), last_plan=last))
    with pytest.raises(InfeasiblePlacementError, match="is not allowed"):
        scheduler.decide(situation_on())


def test_the_number_of_new_plans_is_a_count():
    with pytest.raises(ValueError, match="coordinator: num_new must be"):
        Coordinator(Proposer(None), move_policy(), num_new=0)
