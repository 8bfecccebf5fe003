"""The constraint planner against the proven best, and its paths by hand."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from search_cases import drawn_case, fits, joined, small_cases
from strategies import STATIC_SCHEDULES, corrections, unit_workload

from agents.decision.depths import DEPTHS
from agents.decision.problem import PlanningProblem
from agents.planners.exact.cp_sat import cp_sat, cp_sat_search
from agents.planners.exact.cp_sat_model import critical_paths
from agents.planners.search.search import search
from des import InfeasiblePlacementError, Placement, Plan, simulate

SHORT_S = 0.2


def problem_of(topology, workload, schedules=DEPTHS):
    return PlanningProblem(topology=topology, workload=workload, schedules=schedules)


def equal_layers(num_layers, **figures):
    return unit_workload([(1.0, 2.0)] * num_layers, **figures)


@pytest.mark.parametrize(
    ("flops_per_s", "num_layers", "makespan_s"),
    [
        ([1.0], 3, 72.0),  # three layers of 1 + 2 s and 8 microbatches, whatever the schedule
        # One layer there takes longer than everything here: 12 s a microbatch, eight times.
        *(([1.0, slow], 4, 96.0) for slow in (1e-3, 1e-12, 1e-300)),
    ],
)
def test_the_bound_is_the_time_by_hand(flops_per_s, num_layers, makespan_s):
    workload = equal_layers(num_layers, num_microbatches=8)
    found = cp_sat_search(problem_of(joined(flops_per_s), workload))

    assert found.makespan_s == makespan_s
    assert found.bound_s == pytest.approx(makespan_s, rel=1e-5)
    assert found.bound_s <= makespan_s
    assert found.is_proven


def test_two_equal_domains_on_free_links_are_proven_to_share_evenly():
    """Makespan is (m + 1) (f + b) = 9 x 6 s, which is also the bound of work: head, m (F + B)."""
    found = cp_sat_search(problem_of(joined([1.0, 1.0]), equal_layers(4, num_microbatches=8)))

    assert found.makespan_s == 54.0
    assert [stage.num_layers for stage in found.plan.placement.stages] == [2, 2]
    assert found.bound_s == pytest.approx(54.0, rel=1e-5)
    assert found.is_proven


def test_links_that_cost_more_than_they_bring_leave_one_domain():
    """Each message takes 100 s, and the work of one domain 96 s."""
    topology = joined([1.0, 1.0], bandwidth=0.01)
    found = cp_sat_search(
        problem_of(topology, equal_layers(4, num_microbatches=8, message_bytes=1.0))
    )

    assert found.makespan_s == 96.0
    assert found.plan.placement.num_borders == 0
    assert found.is_proven


@pytest.mark.parametrize(
    ("num_microbatches", "window", "num_first", "paths"),
    [
        # 1F1B at the stage before the last: two held, so F2 waits for B0.
        (4, 2, 1, [(1, 2, 3), (1, 3, 2), (2, 1, 1)]),
        # A stage that holds one makes every trip by itself.
        (3, 1, 1, [(1, 2, 2), (1, 2, 2), (2, 1, 1), (3, 0, 0)]),
        # GPipe: all forwards of the last stage come before its first backward.
        (3, 3, 3, [(1, 2, 2), (1, 2, 0)]),
    ],
)
def test_paths_are_those_drawn_by_hand(num_microbatches, window, num_first, paths):
    assert critical_paths(num_microbatches, window, num_first) == paths


@settings(max_examples=examples(8))
@given(case=small_cases(), found=corrections())
def test_no_plan_is_below_the_bound(case, found):
    topology, workload = case
    for schedules in (("1f1b", "gpipe"), (STATIC_SCHEDULES[-1],)):
        problem = PlanningProblem(
            topology=topology, workload=workload, schedules=schedules, corrections=found
        )
        try:
            best = search(topology, workload, found, schedules=schedules, is_exact=True)
        except InfeasiblePlacementError:
            with pytest.raises(InfeasiblePlacementError, match="cp_sat: no plan was found"):
                cp_sat_search(problem, time_limit_s=SHORT_S)
            continue
        mine = cp_sat_search(problem, time_limit_s=SHORT_S)
        assert mine.bound_s <= best.makespan_s <= mine.makespan_s
        assert mine.makespan_s == simulate(topology, workload, mine.plan, found).makespan_s
        assert fits(topology, workload, mine.plan)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_holds_over_four_domains_with_room_and_without(seed):
    topology, workload = drawn_case(seed, 4, 8)
    best = search(topology, workload, is_exact=True)
    mine = cp_sat_search(problem_of(topology, workload), time_limit_s=SHORT_S)

    assert mine.bound_s <= best.makespan_s <= mine.makespan_s


def test_more_than_six_domains_are_bound_as_well():
    """Seven equal domains on free links: 14 layers, two each, (m + 6) (f + b)."""
    problem = problem_of(joined([1.0] * 7), equal_layers(14, num_microbatches=16))
    found = cp_sat_search(problem, time_limit_s=5.0)

    assert found.makespan_s == 132.0
    assert found.bound_s == pytest.approx(132.0, rel=1e-4)
    assert found.is_proven


def test_a_plan_that_is_known_is_never_made_worse():
    topology, workload = joined([1.0, 1.0]), equal_layers(4, num_microbatches=8)
    slow = Plan(placement=Placement(domain_of_layer=(0, 0, 0, 1)))
    found = cp_sat_search(problem_of(topology, workload), known=slow)
    assert found.makespan_s == 54.0
    again = cp_sat_search(problem_of(topology, workload), known=found.plan)
    assert again.plan == found.plan
    assert again.is_proven


def test_equal_seeds_give_equal_results():
    problem = problem_of(*drawn_case(1, 4, 6), ("1f1b", "gpipe"))
    one, other = (cp_sat_search(problem, time_limit_s=SHORT_S, seed=3) for _ in range(2))
    assert one == other
    plans = [cp_sat(problem, np.random.default_rng(5)) for _ in range(2)]
    assert plans[0] == plans[1]


def test_a_known_plan_that_does_not_fit_is_refused():
    topology = joined([1.0, 1.0], memory_bytes=60.0)
    workload = equal_layers(4, num_microbatches=8)
    with pytest.raises(InfeasiblePlacementError, match="must hold at most"):
        cp_sat_search(
            problem_of(topology, workload),
            known=Plan(placement=Placement(domain_of_layer=(0,) * 4)),
        )


def test_a_simulator_to_which_the_bounds_do_not_belong_is_refused():
    problem = PlanningProblem(
        topology=joined([1.0]),
        workload=equal_layers(1, num_microbatches=1),
        simulator=lambda *arguments: None,
    )
    with pytest.raises(ValueError, match="simulator must be that of des"):
        cp_sat_search(problem)


@pytest.mark.parametrize("num_bytes", [5e-324, 1e-310, 1e-9])
def test_layers_that_weigh_next_to_nothing_fit_anywhere(num_bytes):
    """2 (F + B) of two layers a domain, five times: 30 s."""
    layer = dataclasses.replace(
        equal_layers(1, num_microbatches=1).layers[0],
        num_parameters=0.0,
        activation_bytes=num_bytes,
        weight_input_bytes=num_bytes,
    )
    workload = dataclasses.replace(equal_layers(4, num_microbatches=4), layers=(layer,) * 4)
    found = cp_sat_search(problem_of(joined([1.0, 1.0]), workload))

    assert found.makespan_s == 30.0
    assert found.is_proven


def test_an_iteration_of_next_to_no_time_is_refused():
    workload = unit_workload([(1e-310, 1e-310)] * 2, num_microbatches=2)
    with pytest.raises(ValueError, match=r"cp_sat: an iteration must take at least 2.23e-300 s"):
        cp_sat_search(problem_of(joined([1.0, 1.0]), workload))
