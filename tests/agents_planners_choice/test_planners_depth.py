"""The search for the best depth around any planner."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from strategies import free_world, plan, topologies, unit_domain, unit_workload, workloads, world

from agents.decision.depths import DEPTHS
from agents.decision.plan_space import HALVED_SCHEDULES
from agents.decision.problem import PlanningProblem
from agents.planners.choice.choosing import best_of, share_out
from agents.planners.choice.depth import with_best_depth, with_best_schedule
from agents.planners.exact.exact import exact
from agents.planners.rules.megatron import megatron
from agents.planners.rules.static import random, uniform
from agents.planners.table import PLANNERS
from des import InfeasiblePlacementError, Plan, Topology, UnreachableError
from des.compiled.simulate import simulate_compiled

FOUR_LAYERS = unit_workload([(1, 1)] * 4, num_microbatches=8)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def far(num_domains: int, *, memory_bytes: float = 1e30) -> Topology:
    """Links of 10 s each way that take any message at once."""
    links = free_world(num_domains).links
    names = "ABCD"[:num_domains]
    ends = {a + b: (1e300, 10.0) for a in names for b in names if a != b}
    assert len(ends) == len(links)
    domains = [unit_domain(name, memory_bytes=memory_bytes) for name in names]
    return Topology.of(domains, world(names, ends).links)


def test_the_deepest_schedule_wins_where_links_are_far():
    """A depth of 8 holds all microbatches, as GPipe does; both send at once what they can."""
    given = PlanningProblem(topology=far(2), workload=FOUR_LAYERS, schedules=DEPTHS)
    shallow = uniform(given, rng())
    found = with_best_depth(uniform)(given, rng())

    assert found.placement == shallow.placement
    assert found.schedule in ("1f1b_8x", "gpipe")
    times_s = {name: given.judge(plan(0, 0, 1, 1, schedule=name)).makespan_s for name in DEPTHS}
    assert given.judge(found).makespan_s == min(times_s.values()) < times_s["1f1b"]


def test_a_depth_that_does_not_fit_is_left_out():
    """2 layers keep 32 bytes of state and 2 of activations for each of 4 + 1 microbatches."""
    given = PlanningProblem(
        topology=far(2, memory_bytes=32 + 2 * 5), workload=FOUR_LAYERS, schedules=DEPTHS
    )
    found = with_best_depth(uniform)(given, rng())

    assert found.schedule == "1f1b_4x"
    assert given.judge(found).fits_memory
    assert not given.judge(plan(0, 0, 1, 1, schedule="gpipe")).fits_memory


def test_where_nothing_fits_the_one_that_lacks_least_is_kept():
    given = PlanningProblem(
        topology=far(2, memory_bytes=1.0), workload=FOUR_LAYERS, schedules=("gpipe", "1f1b")
    )
    assert with_best_depth(uniform)(given, rng()).schedule == "1f1b"


def test_a_planner_that_finds_nothing_under_some_schedule_is_asked_under_the_others():
    tight = PlanningProblem(
        topology=far(1, memory_bytes=4 * 16 + 4), workload=FOUR_LAYERS, schedules=("gpipe", "1f1b")
    )
    with pytest.raises(InfeasiblePlacementError):
        exact(
            PlanningProblem(topology=tight.topology, workload=FOUR_LAYERS, schedule="gpipe"), rng()
        )
    assert with_best_depth(exact)(tight, rng()).schedule == "1f1b"

    nowhere = PlanningProblem(topology=far(2, memory_bytes=1.0), workload=FOUR_LAYERS)
    with pytest.raises(InfeasiblePlacementError, match="exact: no contiguous placement fits"):
        with_best_depth(exact)(nowhere, rng())


def test_a_schedule_of_the_planners_own_competes_with_those_to_choose_from():
    near, apart = (
        PlanningProblem(topology=topology, workload=FOUR_LAYERS, schedules=DEPTHS)
        for topology in (free_world(2), far(2))
    )
    deepest = with_best_depth(megatron)

    assert deepest(near, rng()) == megatron(near, rng())  # the least bubble
    assert deepest(apart, rng()).schedule in DEPTHS


@pytest.mark.parametrize("topology", [free_world(2), far(2)])
def test_a_halved_schedule_is_kept_where_it_is_the_quickest_for_the_plan(topology):
    given = PlanningProblem(topology=topology, workload=FOUR_LAYERS, schedules=DEPTHS)
    deepest = with_best_depth(uniform)
    own, found = deepest(given, rng()), with_best_schedule(deepest)(given, rng())

    assert found.placement == own.placement
    times_s = [
        given.judge(dataclasses.replace(own, schedule=name)).makespan_s
        for name in (own.schedule, *HALVED_SCHEDULES)
    ]
    assert given.judge(found).makespan_s == min(times_s)


def test_schedules_without_memory_for_the_halves_of_a_microbatch_are_left_out():
    """2 layers keep 32 bytes of state; nothing is left for a microbatch."""
    given = PlanningProblem(topology=far(2, memory_bytes=32.0), workload=FOUR_LAYERS)

    assert with_best_schedule(uniform)(given, rng()).placement == uniform(given, rng()).placement


def test_all_depths_of_a_planner_that_draws_are_tried_on_the_same_draws():
    given = PlanningProblem(topology=far(4), workload=FOUR_LAYERS, schedules=DEPTHS)
    asked: list[Plan] = []

    def noted(problem: PlanningProblem, generator: np.random.Generator) -> Plan:
        asked.append(random(problem, generator))
        return asked[-1]

    generator = rng()
    for _ in range(2):
        with_best_depth(noted)(given, generator)
    once, again = asked[:5], asked[5:]

    assert [found.schedule for found in once] == list(DEPTHS)
    assert len({found.placement for found in once}) == len({f.placement for f in again}) == 1
    assert once[0].placement != again[0].placement


@pytest.mark.parametrize("name", ["uniform", "single_domain", "mast", "atlas", "data_parallel"])
@settings(max_examples=examples(10), deadline=None)
@given(topology=topologies(min_domains=2, max_domains=4), workload=workloads(max_microbatches=6))
def test_more_schedules_to_choose_from_are_never_worse(name, topology, workload):
    """Where both fit; and a plan that fits is never given up for one that does not."""
    results = []
    for schedules in (("1f1b",), DEPTHS):
        asked = PlanningProblem(
            topology=topology, workload=workload, schedules=schedules, simulator=simulate_compiled
        )
        results.append(asked.judge(with_best_depth(PLANNERS[name])(asked, rng())))
    few, many = results

    assert many.fits_memory >= few.fits_memory
    if few.fits_memory:
        assert many.makespan_s <= few.makespan_s


def test_the_best_of_plans_leaves_out_what_no_path_joins():
    cut = PlanningProblem(topology=world("AB", {}), workload=FOUR_LAYERS)

    assert best_of(cut, [plan(0, 0, 1, 1), plan(1, 1, 1, 1), plan(0, 0, 0, 0)]) == plan(1, 1, 1, 1)
    with pytest.raises(UnreachableError):
        best_of(cut, [plan(0, 0, 1, 1)])
    with pytest.raises(ValueError, match="there must be at least one plan, got none"):
        best_of(cut, [])


def test_shares_add_up_and_the_earlier_wins_a_tie():
    assert share_out(7, [1.0, 1.0, 1.0]) == [3, 2, 2]
    assert share_out(1, [1.0, 2.0]) == [0, 1]
