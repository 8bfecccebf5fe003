"""Figures of known plans: all together they take and cost what each does alone."""

import numpy as np
import pytest
from small_policies import JOB, THREE, drawn, plans_of, situation_on

from agents.decision.levels import level_of
from agents.decision.situation import Preference
from agents.hi_ppo.moves.known_plans import KnownPlans
from agents.judge.look_ahead import PlanJudge, aim_of
from agents.replanning.levels import PlanLevels, levels_between
from agents.replanning.plan_costs import Changes
from des import Placement, Plan, simulate
from des.plan.replacement import Replacement

SOME = [
    *plans_of("0*16,1*16", "0*12,1*20", "1*16,0*16", "2*32", "0*10,1*10,2*12"),
    *plans_of("0*16,1*16", schedule="gpipe"),
]


def test_levels_of_many_changes_are_those_of_each():
    names = ("nothing", "depth", "split", "order")
    found = levels_between(SOME[:3], SOME)

    assert [[names[level] for level in row] for row in found] == [
        [level_of(old, new) for new in SOME] for old in SOME[:3]
    ]


@pytest.mark.parametrize("pays_bytes", [False, True])
def test_known_plans_take_and_cost_what_each_does_alone(pays_bytes):
    situation = situation_on(
        drawn(1), base=THREE, replacement=Replacement(restart_s=2.0, pays_bytes=pays_bytes)
    )
    odd = Plan(placement=Placement.parse("0*8,1*8,0*16"))  # visits a domain twice
    known = KnownPlans(PlanJudge(JOB, 3), THREE, SOME[:2])
    known.add([*SOME, odd])
    job = known.job_of(situation)

    assert known.plans == (*SOME, odd)
    assert known.times_s(situation, job).tolist() == [
        simulate(situation.topology, JOB, plan).makespan_s for plan in known.plans
    ]
    assert known.base_s.tolist() == [simulate(THREE, JOB, plan).makespan_s for plan in known.plans]
    move_s, moved_bytes = known.changes(situation, job, SOME[:3])
    changes = Changes(JOB, known.plans, 3, situation.replacement, sources=SOME[:3])
    assert move_s.tolist() == changes.times_s(situation.topology).tolist()
    assert moved_bytes.tolist() == changes.moved_bytes.tolist()


def test_known_plans_count_the_tolls_of_their_borders():
    """Without prices each border of three domains counts one half."""
    known = KnownPlans(PlanJudge(JOB, 3), THREE, plans_of("0*32", "0*16,1*16", "0*8,1*8,2*16"))
    situation = situation_on(preference=Preference(time=0.5, communication=0.5))
    aim = aim_of(THREE, known.job_of(situation), situation.preference)
    expected = 0.5 * np.log([1.0, 1.5, 2.0])

    assert known.costs(aim, np.ones(3)) == pytest.approx(expected)


def test_plans_of_another_job_are_refused():
    known = KnownPlans(PlanJudge(JOB, 3), THREE)
    with pytest.raises(ValueError, match="for each of the 32 layers"):
        known.add(plans_of("0*16,1*15"))


def test_levels_are_the_same_however_plans_came():
    levels = PlanLevels(SOME[:2])
    levels.add(SOME[2:])

    assert (levels.between(np.arange(6)) == levels_between(SOME, SOME)).all()
    assert (levels.between(np.array([4, 0]), np.array([1])) == [[3], [2]]).all()
    assert levels_between([], SOME).shape == (0, 6)
