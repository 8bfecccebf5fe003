"""Plans next to one, found by moving borders, against all splits there are."""

from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest
from small_policies import JOB, THREE

from agents.hi_ppo.moves.near_plans import near_plans
from agents.judge.look_ahead import PlanJudge
from agents.judge.step_times import step_times_s
from des import Placement, Plan

START = Plan(placement=Placement.contiguous([2, 0, 1], [20, 6, 6]), schedule="1f1b_2x")
STEPS = {(a, b) for a in range(-6, 7) for b in range(-6, 7) if abs(a) + abs(b) <= 6}
REACHED = sorted({(n * a, n * b) for n in (1, 2, 3) for a, b in STEPS})


def moved(shift: tuple[int, int]) -> Plan | None:
    """The start with both borders moved; None where a domain would lose all layers."""
    counts = (20 + shift[0], 6 + shift[1] - shift[0], 6 - shift[1])
    if min(counts) < 1:
        return None
    return replace(START, placement=Placement.contiguous([2, 0, 1], counts))


def moved_parameters(plan: Plan) -> float:
    """Parameters between the old borders and the new ones."""
    before = [0.0, *accumulate(JOB.num_parameters)]
    ends = [[stage.first_layer for stage in one.placement.stages[1:]] for one in (START, plan)]
    return sum(abs(before[new] - before[old]) for old, new in zip(*ends, strict=True))


@pytest.mark.parametrize("share", [0.95, 1.0, 1.1])
def test_those_within_the_limit_come_by_the_fewest_moved_parameters(share):
    judge = PlanJudge(JOB, 3)
    (start_s,) = step_times_s(THREE, JOB, [START])
    every = [plan for shift in REACHED if (plan := moved(shift)) is not None]
    times_s = step_times_s(THREE, JOB, every)
    quick = {
        plan: time for plan, time in zip(every, times_s, strict=True) if time <= share * start_s
    }

    found = near_plans(judge, judge.job_of(THREE), START, share * start_s, most=10)

    weights = [moved_parameters(plan) for plan in found]
    assert set(found) <= set(quick)
    assert weights == sorted(weights)
    assert np.array_equal(weights, sorted(map(moved_parameters, quick))[: len(found)])
    assert len(found) == min(10, len(quick)) > 0


def test_a_single_domain_has_no_borders_to_move_and_no_limit_no_plans():
    judge = PlanJudge(JOB, 3)
    job, alone = judge.job_of(THREE), Plan(placement=Placement.parse("0*32"), schedule="1f1b")

    assert near_plans(judge, job, alone, 1e9) == ()
    assert near_plans(judge, job, START, 0.0) == ()
