"""Bounds on the time of an iteration, which no plan is quicker than."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import movements
from planned_cases import problem, problems, speeds
from strategies import cases, corrections, free_world, unit_workload

from agents.decision.problem import PlanningProblem
from agents.planners.exact.bounds import lower_bounds_s
from des import Placement

SLACK = 1 + 1e-8


def order_and_split(placement: Placement) -> tuple[list[int], np.ndarray]:
    """Domains of the stages, and their numbers of layers as the only way of (1, stages)."""
    order = [stage.domain for stage in placement.stages]
    return order, np.array([[stage.num_layers for stage in placement.stages]])


@settings(max_examples=examples(200), deadline=None)
@given(case=cases(single_visit=True), movement=st.none() | movements(), found=corrections())
def test_no_iteration_is_quicker_than_its_bound(case, movement, found):
    """Any schedule, order and split, on steady links and on links that move on the way."""
    topology, workload, chosen = case
    given = PlanningProblem(
        topology=dataclasses.replace(topology, movement=movement),
        workload=workload,
        schedule=chosen.schedule,
        corrections=found,
    )
    (bound_s,) = lower_bounds_s(given, *order_and_split(chosen.placement))

    assert 0 < bound_s <= given.judge(chosen).makespan_s


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(single_visit=True), found=corrections())
def test_bound_is_tight_for_one_microbatch_on_steady_links(case, found):
    """Nothing queues, so the iteration is the sum of all passes and messages."""
    topology, workload, chosen = case
    given = problem(topology, dataclasses.replace(workload, num_microbatches=1), corrections=found)
    (bound_s,) = lower_bounds_s(given, *order_and_split(chosen.placement))

    assert given.judge(chosen).makespan_s <= bound_s * SLACK


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@given(num_stages=st.integers(1, 6), num_microbatches=st.integers(1, 12))
def test_bound_is_the_closed_form_for_equal_stages_on_free_links(
    schedule, num_stages, num_microbatches
):
    workload = unit_workload([(1, 2)] * num_stages, num_microbatches=num_microbatches)
    given = problem(free_world(num_stages), workload, schedule=schedule)

    bounds_s = lower_bounds_s(given, range(num_stages), np.ones((1, num_stages), dtype=int))
    assert bounds_s == pytest.approx([3 * (num_microbatches + num_stages - 1)])


def test_bound_is_tight_where_a_window_of_two_waits_for_long_latencies():
    """1F1B, 5 microbatches, 100 s each way: a round trip of 204 s for every second forward.

    F0 starts at 0, F2 after B0 at 204, F4 after B2 at 408; B4 ends at 612.
    """
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=5)
    given = problem(speeds(1.0, 1.0, latency_s=100.0), workload)

    assert lower_bounds_s(given, (0, 1), np.array([[1, 1]])) == pytest.approx([612])
    assert given.judge(given.plan(Placement(domain_of_layer=(0, 1)))).makespan_s == 612


@settings(max_examples=examples(30), deadline=None)
@given(given=problems(), draw=st.data())
def test_bounds_of_many_splits_are_those_of_each(given, draw):
    num_domains, num_layers = given.topology.num_domains, given.workload.num_layers
    order = draw.draw(st.permutations(range(num_domains)))[: min(num_domains, num_layers)]
    cuts = combinations(range(1, num_layers), len(order) - 1)
    splits = np.array([np.diff([0, *cut, num_layers]) for cut in cuts])

    together = lower_bounds_s(given, order, splits)
    alone = [lower_bounds_s(given, order, split[np.newaxis])[0] for split in splits]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
