"""Planners against enumeration, closed forms and hand-computed cases."""

import dataclasses
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    STATIC_SCHEDULES,
    cases,
    corrections,
    free_world,
    movements,
    topologies,
    unit_domain,
    unit_workload,
    workloads,
    world,
)

from agents.decision.problem import PlanningProblem
from agents.flat.worlds import DrawnWorld
from agents.planners.exact.bounds import lower_bounds_s
from agents.planners.exact.exact import MOST_WITH_BOUNDS, exact, num_contiguous_placements
from agents.planners.rules.single_domain import single_domain
from agents.planners.rules.static import proportional, random, round_robin, uniform
from agents.planners.table import PLANNERS, reference_planners
from des import (
    Corrections,
    Dynamics,
    InfeasiblePlacementError,
    IterationResult,
    Placement,
    Plan,
    Topology,
    Workload,
    check_memory,
    simulate,
)
from des.job.transformer import BYTES_PER_PARAMETER

SLACK = 1 + 1e-8
EQUAL_LAYERS = unit_workload([(1, 2)] * 6, num_microbatches=8, message_bytes=1.0)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def problem(topology: Topology, workload: Workload = EQUAL_LAYERS, **changes) -> PlanningProblem:
    return PlanningProblem(topology=topology, workload=workload, **changes)


def speeds(*flops_per_s: float, latency_s: float = 0.0) -> Topology:
    """Domains of these speeds, all joined by links of that latency."""
    names = "ABCDEFGH"[: len(flops_per_s)]
    ends = ["".join(pair) for pair in permutations(names, 2)]
    topology = world(names, dict.fromkeys(ends, (1e300, latency_s)))
    domains = [
        unit_domain(name, flops_per_s=speed) for name, speed in zip(names, flops_per_s, strict=True)
    ]
    return Topology.of(domains, topology.links)


def contiguous_placements(num_domains: int, num_layers: int) -> list[Placement]:
    return [
        Placement.contiguous(order, [end - start for start, end in pairwise((0, *cut, num_layers))])
        for num_stages in range(1, min(num_domains, num_layers) + 1)
        for order in permutations(range(num_domains), num_stages)
        for cut in combinations(range(1, num_layers), num_stages - 1)
    ]


def order_and_split(placement: Placement) -> tuple[list[int], np.ndarray]:
    """Domains of the stages, and their numbers of layers as the only way of (1, stages)."""
    order = [stage.domain for stage in placement.stages]
    return order, np.array([[stage.num_layers for stage in placement.stages]])


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


@st.composite
def problems(draw: st.DrawFn) -> PlanningProblem:
    """One epoch of a small world, mostly with memory for but a part of the job in each domain."""
    topology = draw(topologies(max_domains=3))
    workload = draw(workloads(num_layers=draw(st.integers(1, 5)), max_microbatches=4))
    seed, share = draw(st.integers(0, 2**32)), draw(st.sampled_from([0.7, 0.9, 2.0]))
    job_bytes = BYTES_PER_PARAMETER * sum(workload.num_parameters) + (
        workload.num_microbatches * sum(workload.activation_bytes)
    )
    domains = tuple(
        dataclasses.replace(domain, gpu_memory_bytes=(1 + share * job_bytes) / domain.num_gpus)
        for domain in topology.domains
    )
    now = dataclasses.replace(topology, domains=domains)
    return PlanningProblem(
        topology=now.draw_epoch(np.random.default_rng(seed)),
        workload=workload,
        schedule=draw(st.sampled_from(STATIC_SCHEDULES)),
        corrections=draw(corrections()),
    )


# Every planner.


@pytest.mark.parametrize("name", reference_planners())
@settings(max_examples=examples(25), deadline=None)
@given(given=problems(), seed=st.integers(0, 2**32))
def test_every_planner_places_all_layers_and_depends_on_its_seed_only(name, given, seed):
    try:
        one, again = (PLANNERS[name](given, np.random.default_rng(seed)) for _ in range(2))
    except InfeasiblePlacementError:
        assert name == "exact"
        return
    one.check_against(given.topology, given.workload)
    assert one == again


def test_planners_are_known_by_name():
    assert {
        "exact": exact,
        "uniform": uniform,
        "proportional": proportional,
        "round_robin": round_robin,
        "random": random,
        "single_domain": single_domain,
    } == {name: row.planner for name, row in reference_planners().items()}


# Planners that look at the domains only.


@pytest.mark.parametrize(
    ("num_domains", "counts"), [(1, [6]), (2, [3, 3]), (4, [2, 2, 1, 1]), (8, [1] * 6)]
)
def test_uniform_gives_equal_shares(num_domains, counts):
    placement = uniform(problem(free_world(num_domains)), rng()).placement

    assert [stage.num_layers for stage in placement.stages] == counts
    assert [stage.domain for stage in placement.stages] == list(range(len(counts)))


@pytest.mark.parametrize(
    ("flops_per_s", "num_layers", "counts"),
    [
        ((3.0, 2.0, 1.0), 6, (3, 2, 1)),
        ((3.0, 2.0, 1.0), 8, (4, 3, 1)),  # 4, 2.67, 1.33
        ((1.0, 1.0, 1.0), 8, (3, 3, 2)),  # the earlier wins a tie
        ((1.0, 1.0, 1.0), 7, (3, 2, 2)),
        ((1.0, 10.0), 2, (0, 2)),  # 0.18, 1.82
        ((1.0, 1.0, 1.0), 1, (1, 0, 0)),
    ],
)
def test_proportional_rounds_by_largest_remainders(flops_per_s, num_layers, counts):
    workload = unit_workload([(1, 1)] * num_layers, num_microbatches=1)

    placement = proportional(problem(speeds(*flops_per_s), workload), rng()).placement
    assert placement == Placement.contiguous(range(len(counts)), counts)


def test_proportional_looks_at_what_is_attained_not_at_the_peak():
    a, b = free_world(2).domains
    slow = dataclasses.replace(a, attainable_fraction=0.5)

    plan = proportional(problem(Topology.of([slow, b], free_world(2).links)), rng())
    assert plan.placement.domain_of_layer == (0, 0, 1, 1, 1, 1)


@given(topology=topologies(max_domains=4), num_layers=st.integers(1, 100))
def test_proportional_is_within_one_layer_of_the_exact_share(topology, num_layers):
    workload = unit_workload([(1, 1)] * num_layers, num_microbatches=1)
    placement = proportional(problem(topology, workload), rng()).placement

    total = sum(domain.attainable_flops_per_s for domain in topology.domains)
    assert list(placement.domain_of_layer) == sorted(placement.domain_of_layer)
    for index, domain in enumerate(topology.domains):
        share = num_layers * domain.attainable_flops_per_s / total
        assert abs(placement.domain_of_layer.count(index) - share) < 1 + 1e-9


def test_round_robin_deals_layers_out():
    placement = round_robin(problem(free_world(4)), rng()).placement

    assert placement.domain_of_layer == (0, 1, 2, 3, 0, 1)


def test_random_draws_every_order_and_every_split():
    given, generator = problem(free_world(3)), rng()
    drawn = {random(given, generator).placement for _ in range(4000)}

    assert drawn == set(contiguous_placements(3, 6))


def test_random_follows_from_the_generator():
    given = problem(free_world(4))
    sequences = [
        [random(given, generator) for _ in range(5)]
        for generator in map(np.random.default_rng, (1, 1, 2))
    ]
    assert sequences[0] == sequences[1] != sequences[2]


# The whole job in one domain.


def test_single_domain_takes_the_fastest():
    assert (
        single_domain(problem(speeds(1.0, 3.0, 2.0)), rng()).placement.domain_of_layer == (1,) * 6
    )
    assert single_domain(problem(speeds(2.0, 2.0)), rng()).placement.domain_of_layer == (0,) * 6


def test_single_domain_over_memory_is_simulated_as_if_it_fitted_and_marked():
    small = [unit_domain(name, flops_per_s=2.0, memory_bytes=1.0) for name in "A"]
    given = problem(Topology.of(small, []))
    result = given.judge(single_domain(given, rng()))

    assert result.makespan_s == 8 * 6 * 3 / 2
    assert not result.fits_memory


# The bounds behind the exact planner.


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


# The exact planner.


@settings(max_examples=examples(200), deadline=None)
@given(given=problems())
def test_exact_is_the_best_of_all_contiguous_placements(given):
    assert_best_of_all(given)


@pytest.mark.parametrize("schedule", STATIC_SCHEDULES)
@pytest.mark.parametrize("interval_s", [None, 2.0])
def test_exact_is_the_best_on_links_of_the_stated_range(schedule, interval_s):
    """Compute and messages of like size, where neither alone decides."""
    law = Dynamics(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=interval_s)
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


# A simulator of one's own.


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
