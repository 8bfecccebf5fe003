"""CrossPipe's schedule for given stages: a case by hand, bounds, and what stays as it is."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import drawn_case
from strategies import unit_workload, world

from agents.decision.problem import PlanningProblem
from agents.planners.rules.crosspipe import MOST_EXACT_PASSES, crosspipe, crosspipe_on, num_passes
from agents.planners.search.search import search
from des import InfeasiblePlacementError, Placement, Plan, check_memory, simulate

TWO_STAGES = Placement.contiguous((0, 1), (1, 1))


def rng():
    return np.random.default_rng(0)


def halves(problem, generator):
    """Two stages of a layer each, whatever the links."""
    return problem.plan(TWO_STAGES)


def hand_case(num_microbatches=2, latency_s=1.0):
    """F, D and W of 1 s on both of two stages; a message flies for a second."""
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=num_microbatches)
    links = {"AB": (1e300, latency_s), "BA": (1e300, latency_s)}
    return PlanningProblem(topology=world("AB", links), workload=workload)


def test_two_stages_and_two_microbatches_take_nine_seconds_by_hand():
    """A: F0 F1, wait for D0 from 5 on; B: F0 at 2, D0 at 3, F1 at 4, D1 at 5; W in the gaps.

    The way of the first microbatch is F 1, message 1, F 1, D 1, message 1, D 1: A's D0 ends at 6.
    B's D1 ends at 6 at the earliest, if F0 D0 F1 D1 or F0 F1 D0 D1 leave no gap, so A's D1 starts
    at 7 and ends at 8. W0 fits between A's two, W1 comes last: 9 s. Under 1F1B the backward passes
    are whole: B is busy from 2 to 8, A's last one starts at 9 and ends at 11.
    """
    problem = hand_case()
    plan = crosspipe_on(halves)(problem, rng())

    assert plan.placement == TWO_STAGES
    assert problem.judge(plan).makespan_s == pytest.approx(9.0)
    assert problem.judge(problem.plan(TWO_STAGES, "1f1b_2x")).makespan_s == pytest.approx(11.0)


def test_large_cases_get_the_greedy_schedule():
    problem = hand_case(num_microbatches=MOST_EXACT_PASSES)

    assert crosspipe_on(halves)(problem, rng()).schedule == "greedy"


@settings(max_examples=examples(10), deadline=None)
@given(seed=st.integers(0, 200))
def test_a_small_case_is_never_slower_than_greedy_or_the_searched_schedule(seed):
    topology, workload = drawn_case(seed, 3, 6)
    workload = replace(workload, num_microbatches=4)
    problem = PlanningProblem(
        topology=topology, workload=workload, schedules=("1f1b", "1f1b_2x", "gpipe")
    )
    try:
        found = search(topology, workload, schedules=problem.schedules)
    except InfeasiblePlacementError:
        with pytest.raises(InfeasiblePlacementError):
            crosspipe(problem, rng())
        return
    plan = crosspipe(problem, rng())

    check_memory(topology, workload, plan)
    assert plan.placement == found.plan.placement
    greedy = replace(plan, schedule="greedy")
    time_s = problem.judge(plan).makespan_s
    assert time_s <= problem.judge(greedy).makespan_s
    assert time_s <= found.makespan_s * (1 + 1e-6)  # whole passes are halves without a gap


def test_all_but_the_schedule_is_the_other_planners():
    problem = hand_case()

    def compressed(problem, generator):
        return Plan(placement=TWO_STAGES, schedule="gpipe", activation_compression=2.0)

    plan = crosspipe_on(compressed)(problem, rng())

    assert replace(plan, schedule="gpipe") == compressed(problem, rng())


def test_replicas_add_up_in_the_size_of_the_case():
    """Two stages with 3 of 5 microbatches and one with 2."""
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=5)
    plan = Plan(placement=TWO_STAGES, replicas=(Placement(domain_of_layer=(2, 2)),))

    assert num_passes(plan, workload) == 2 * 3 + 2


def test_the_plan_is_judged_by_the_simulator_of_the_problem():
    """One that favours greedy gets greedy."""

    def slow_exact(topology, workload, plan, corrections):
        result = simulate(topology, workload, plan, corrections)
        extra_s = 1.0 if plan.schedule == "exact" else 0.0
        return replace(result, makespan_s=result.makespan_s + extra_s)

    problem = replace(hand_case(), simulator=slow_exact)

    assert crosspipe_on(halves)(problem, rng()).schedule == "greedy"
