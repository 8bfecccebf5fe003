"""Planners against closed forms and hand-computed cases."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_cases import contiguous_placements, problem, problems, rng, speeds
from strategies import free_world, topologies, unit_domain, unit_workload

from agents.planners.exact.exact import exact
from agents.planners.rules.single_domain import single_domain
from agents.planners.rules.static import proportional, random, round_robin, uniform
from agents.planners.table import PLANNERS, reference_planners
from des import InfeasiblePlacementError, Placement, Topology

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
