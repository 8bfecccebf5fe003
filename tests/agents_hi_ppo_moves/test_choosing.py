"""The bound on how slow a plan in force may get: when it overrules, and what is taken instead."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from small_policies import JOB, THREE, coordinator, drawn, placement_policy, situation_on

from agents.decision.situation import Preference, Situation
from agents.hi_ppo.coordinator import Coordinator
from agents.hi_ppo.moves.move_observer import MoveObservation
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES, STAY, MoveRule
from agents.hi_ppo.placement.proposals import Proposer
from agents.judge.look_ahead import LookAhead
from agents.judge.step_times import step_times_s
from des import Placement, Plan, cross_domain_bytes, migration_s, simulate
from des.plan.replacement import Replacement

BOUND = 0.08


class NeverMove:
    """A move policy that keeps what is in force, however slow it gets."""

    rule_set = PIPELINE_RULES

    def choose(self, observation: MoveObservation) -> MoveRule:
        """Return the rule that stays."""
        return STAY


def bounded(most_slowdown: float | None = BOUND) -> Coordinator:
    """A scheduler that would stay for good."""
    proposer = Proposer(placement_policy(), look_ahead=LookAhead(budget=300))
    return Coordinator(proposer, NeverMove(), most_slowdown=most_slowdown)


def course(scheduler: Coordinator, num_epochs: int = 12) -> list[tuple[Situation, Plan]]:
    """Decisions on networks that are drawn independently in every epoch."""
    last, rows = None, []
    for epoch in range(num_epochs):
        situation = situation_on(drawn(epoch), base=THREE, epoch=epoch, last_plan=last)
        last = scheduler.decide(situation).plan
        rows.append((situation, last))
    return rows


def within(
    situation: Situation, scheduler: Coordinator, near: Sequence[Plan] = ()
) -> dict[Plan, float]:
    """Iteration times of the plans, known or near, that the bound on the known ones allows. [s]"""
    known = scheduler._known.plans
    plans = list(dict.fromkeys((*known, *near)))
    times_s = dict(zip(plans, step_times_s(situation.topology, JOB, plans).tolist(), strict=True))
    most_s = (1.0 + BOUND) * min(times_s[plan] for plan in known)
    return {plan: time_s for plan, time_s in times_s.items() if time_s <= most_s}


def splits_near(plan: Plan) -> list[Plan]:
    """All splits of the layers over the same domains in the same order, but those out of reach."""
    order = [stage.domain for stage in plan.placement.stages]
    counts = product(range(1, JOB.num_layers), repeat=len(order))
    splits = [each for each in counts if sum(each) == JOB.num_layers]
    return [replace(plan, placement=Placement.contiguous(order, each)) for each in splits]


@pytest.mark.parametrize(("pays_bytes", "epoch_s"), [(False, 300.0), (True, 3000.0), (True, 300.0)])
def test_a_plan_beyond_the_bound_gives_way_to_the_most_work_now_and_at_base(pays_bytes, epoch_s):
    """Of all plans known that are within and those near the last, by the simulator's figures.

    It counts what is left of the next epoch and two epochs at base figures. Where the change takes
    nearly all of a short epoch the plan stays.
    """
    scheduler, last, overruled = bounded(), None, []
    costs = Replacement(restart_s=1.0, pays_bytes=pays_bytes)
    for epoch in range(12):
        situation = situation_on(
            drawn(epoch), base=THREE, epoch=epoch, last_plan=last, replacement=costs
        )
        situation = replace(situation, epoch_s=epoch_s)
        plan = scheduler.decide(situation).plan
        allowed = within(situation, scheduler, () if last is None else splits_near(last))
        if last is None or last in allowed:
            assert scheduler.overruled is None or last is None
            assert last in (None, plan)
            assert plan in allowed
        else:
            done = {one: (epoch_s - price_s(situation, one)) / allowed[one] for one in allowed}
            base_s = dict(zip(done, step_times_s(THREE, JOB, list(done)), strict=True))
            value = {one: done[one] + 2.0 * epoch_s / base_s[one] for one in done}
            best = max(value, key=lambda one: value[one])
            kept = epoch_s / step_times_s(situation.topology, JOB, [last])[0]
            overruled.append(bool(done[best] >= 0.1 * kept))
            assert scheduler.overruled == (last if overruled[-1] else None)
            if overruled[-1]:
                assert value[plan] == pytest.approx(value[best])
                assert plan in allowed
            else:
                assert plan == last
        last = plan
    assert len(overruled) > 0
    assert all(overruled) == (not pays_bytes or epoch_s > 300.0)


def test_a_dear_change_is_made_once_the_network_has_stayed_for_long_enough():
    """It takes most of an epoch or more: not in the first epoch of a network, but in some later."""
    costs = Replacement(restart_s=1.0, pays_bytes=True)
    scheduler = bounded()
    first = situation_on(drawn(0), base=THREE, epoch=0, replacement=costs)
    last = scheduler.decide(first).plan
    staying = [
        situation_on(drawn(3), base=THREE, epoch=epoch, last_plan=last, replacement=costs)
        for epoch in range(1, 9)
    ]
    plans = [scheduler.decide(situation).plan for situation in staying]
    moved = [plan != last for plan in plans]
    at = moved.index(True)

    assert at > 0
    assert all(moved[at:])
    assert price_s(staying[at], plans[at]) > 0.5 * staying[at].epoch_s


def price_s(situation: Situation, plan: Plan) -> float:
    """What the change to a plan takes. [s]"""
    return migration_s(
        situation.topology,
        JOB,
        situation.last_plan,
        plan,
        restart_s=situation.replacement.restart_s,
        pays_bytes=situation.replacement.pays_bytes,
    )


def test_a_bound_that_nothing_exceeds_changes_nothing():
    free, loose = course(bounded(None)), course(bounded(1e6))

    assert [plan for _, plan in free] == [plan for _, plan in loose]
    assert len({plan for _, plan in free}) == 1


def test_a_trained_policy_is_bounded_too():
    scheduler, last = coordinator(most_slowdown=BOUND), None
    for epoch in range(6):
        situation = situation_on(drawn(epoch), base=THREE, epoch=epoch, last_plan=last)
        situation = replace(situation, epoch_s=3000.0)  # a change leaves most of an epoch
        last = scheduler.decide(situation).plan
        assert last in within(situation, scheduler)


@pytest.mark.parametrize("communication", [0.9, 1.0])
@pytest.mark.parametrize("moves", [False, True])
def test_the_bound_is_on_time_whatever_the_preference(moves, communication):
    """Where bytes alone count, the plan of fewest bytes among those that are quick enough."""
    preference = Preference(time=1.0 - communication, communication=communication)
    situation = situation_on(preference=preference)
    scheduler = coordinator(moves=moves, most_slowdown=BOUND)
    quick_s = simulate(THREE, JOB, coordinator(moves=False).decide(situation_on()).plan).makespan_s

    plan = scheduler.decide(situation).plan

    allowed = within(situation, scheduler)
    assert plan in allowed
    assert allowed[plan] <= (1.0 + BOUND) * 1.01 * quick_s
    unbound = coordinator(moves=moves).decide(situation).plan
    assert unbound.placement.num_borders == scheduler.overruled.placement.num_borders == 0
    if communication == 1.0:
        sent = {one: cross_domain_bytes(JOB, one.placement) for one in allowed}
        assert sent[plan] == min(sent.values())


@pytest.mark.parametrize("wrong", [0.0, -0.08, float("nan"), float("inf")])
def test_the_bound_is_positive(wrong):
    with pytest.raises(ValueError, match="coordinator: most_slowdown must be positive and finite"):
        coordinator(most_slowdown=wrong)
