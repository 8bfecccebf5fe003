"""The exact planner against enumeration, and what it refuses."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from planned_cases import EQUAL_LAYERS, contiguous_placements, problem, problems, rng, speeds
from strategies import STATIC_SCHEDULES, free_world, unit_domain, unit_workload

from agents.decision.problem import PlanningProblem
from agents.flat.worlds import DrawnWorld
from agents.planners.exact.exact import MOST_WITH_BOUNDS, exact, num_contiguous_placements
from agents.planners.rules.single_domain import single_domain
from des import (
    Corrections,
    InfeasiblePlacementError,
    IterationResult,
    Plan,
    Topology,
    UniformLaw,
    Workload,
    check_memory,
    simulate,
)


def fits(given: PlanningProblem, plan: Plan) -> bool:
    try:
        check_memory(given.topology, given.workload, plan)
    except InfeasiblePlacementError:
        return False
    return True


def assert_best_of_all(given: PlanningProblem) -> None:
    """The planner finds the least makespan of all placements that fit, or says that none does."""
    placements = contiguous_placements(given.topology.num_domains, given.workload.num_layers)
    plans = [given.plan(placement) for placement in placements]
    makespans_s = [given.judge(plan).makespan_s for plan in plans if fits(given, plan)]
    if not makespans_s:
        with pytest.raises(InfeasiblePlacementError):
            exact(given, rng())
        return
    chosen = exact(given, rng())
    assert fits(given, chosen)
    assert given.judge(chosen).makespan_s == min(makespans_s)


@settings(max_examples=examples(200), deadline=None)
@given(given=problems())
def test_exact_is_the_best_of_all_contiguous_placements(given):
    assert_best_of_all(given)


@pytest.mark.parametrize("schedule", STATIC_SCHEDULES)
@pytest.mark.parametrize("interval_s", [None, 2.0])
def test_exact_is_the_best_on_links_of_the_stated_range(schedule, interval_s):
    """Compute and messages of like size, where neither alone decides."""
    law = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=interval_s)
    workload = unit_workload(
        [(4e14, 8e14), (2e14, 4e14), (8e14, 16e14), (2e14, 4e14), (6e14, 12e14), (2e14, 2e14)],
        num_microbatches=6,
        message_bytes=1e8,
    )
    for seed in range(5):
        generator = np.random.default_rng(seed)
        drawn = DrawnWorld(num_domains=3, dynamics=law).draw(generator)
        fast, middle, slow = (
            dataclasses.replace(domain, attainable_fraction=fraction)
            for domain, fraction in zip(drawn.domains, (0.5, 0.4, 0.3), strict=True)
        )
        mixed = dataclasses.replace(drawn, domains=(fast, middle, slow))
        assert_best_of_all(problem(mixed.draw_epoch(generator), workload, schedule=schedule))


def test_exact_by_hand():
    """Free links: an even split, 3 s a layer and pass pair, (8 + 1) x 9 s. 100 s away: alone."""
    near = exact(problem(free_world(2)), rng())
    assert sorted(stage.num_layers for stage in near.placement.stages) == [3, 3]

    far = exact(problem(speeds(1.0, 2.0, latency_s=100.0)), rng())
    assert far.placement.domain_of_layer == (1,) * 6


def test_exact_leaves_out_what_does_not_fit():
    """B is ten times faster, but holds two layers: 2 x 16 bytes of state, 2 of activations each."""
    a, b = unit_domain("A"), unit_domain("B", flops_per_s=10.0, memory_bytes=2 * 16 + 2 * 2)
    workload = unit_workload([(1, 1)] * 4, num_microbatches=2)
    given = problem(Topology.of([a, b], free_world(2).links), workload, schedule="gpipe")

    assert sorted(exact(given, rng()).placement.domain_of_layer) == [0, 0, 1, 1]


def test_exact_refuses_a_job_that_fits_nowhere_with_the_shortfall():
    small = [unit_domain(name, memory_bytes=5e9) for name in "AB"]
    layer = dataclasses.replace(EQUAL_LAYERS.layers[0], num_parameters=1e9)
    workload = dataclasses.replace(EQUAL_LAYERS, layers=(layer,) * 3)
    given = problem(Topology.of(small, free_world(2).links), workload)

    with pytest.raises(
        InfeasiblePlacementError,
        match=r"exact: no contiguous placement fits; at best, domain [AB] must hold at most "
        r"5\.0 GB, got 32\.0 GB",
    ):
        exact(given, rng())


def test_exact_refuses_more_placements_than_it_can_compare():
    workload = unit_workload([(1, 1)] * 80, num_microbatches=1)
    count = num_contiguous_placements(6, 80)

    assert count > MOST_WITH_BOUNDS
    with pytest.raises(
        ValueError, match=rf"exact: must have at most {MOST_WITH_BOUNDS} .* got {count} \(6 domains"
    ):
        exact(problem(free_world(6), workload), rng())


@pytest.mark.parametrize("num_domains", [1, 2, 3, 4])
@pytest.mark.parametrize("num_layers", [1, 2, 3, 6])
def test_number_of_contiguous_placements(num_domains, num_layers):
    placements = contiguous_placements(num_domains, num_layers)

    assert len(set(placements)) == len(placements)
    assert num_contiguous_placements(num_domains, num_layers) == len(placements)


def upside_down(
    topology: Topology, workload: Workload, plan: Plan, corrections: Corrections
) -> IterationResult:
    """As `simulate`, but all on the last domain is by far the fastest, whatever the figures say."""
    result = simulate(topology, workload, plan, corrections)
    favoured = set(plan.placement.domain_of_layer) == {topology.num_domains - 1}
    return dataclasses.replace(result, makespan_s=1e-3 if favoured else result.makespan_s)


@pytest.mark.parametrize("planner", [single_domain, exact])
def test_planners_that_simulate_believe_the_given_simulator(planner):
    given = problem(speeds(3.0, 2.0, 1.0, latency_s=1.0), simulator=upside_down)

    assert planner(given, rng()).placement.domain_of_layer == (2,) * 6


def test_exact_is_the_best_under_a_simulator_with_other_corrections():
    """Compute 100 times as fast as the problem's own corrections say: links decide."""
    quick = Corrections(compute_time_factor=0.01)
    given = problem(
        speeds(1.0, 1.0, latency_s=1.0),
        simulator=lambda topology, workload, plan, _: simulate(topology, workload, plan, quick),
    )
    assert_best_of_all(given)
