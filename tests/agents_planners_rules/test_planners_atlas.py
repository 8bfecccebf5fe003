"""Atlas and the formula planner."""

import dataclasses
import math
from itertools import combinations, permutations

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from joined_worlds import joined, problem, rng
from strategies import free_world, plan, topologies, unit_domain, unit_workload, workloads, world

from agents.decision.problem import PlanningProblem
from agents.planners.rules.atlas import atlas
from agents.planners.rules.formula import formula, formula_figures, formula_times_s
from des import InfeasiblePlacementError, Parallelism, Placement, Topology
from des.plan.plan import split_evenly


def test_atlas_takes_as_many_of_the_best_joined_domains_as_help():
    """Messages of 1 byte: 0.01 s between B, C and D, an hour to A and E."""
    rates = {a + b: 100.0 for a, b in combinations("BCD", 2)}
    rates |= {a + b: 1 / 3600 for a in "AE" for b in "BCDAE" if a != b and b + a not in rates}
    asked = problem(
        joined(rates), unit_workload([(1, 1)] * 6, num_microbatches=9, message_bytes=1.0)
    )
    found = atlas(asked, rng())

    assert {stage.domain for stage in found.placement.stages} == {1, 2, 3}
    assert [stage.num_layers for stage in found.placement.stages] == [2, 2, 2]


def test_atlas_stays_alone_where_links_are_slow_and_prefers_more_gpus():
    slow = joined({"AB": 1e-3, "BC": 1e-3, "AC": 1e-3})
    domains = [
        dataclasses.replace(domain, num_gpus=count)
        for domain, count in zip(slow.domains, (1, 2, 1), strict=True)
    ]
    asked = problem(Topology.of(domains, slow.links))

    assert atlas(asked, rng()).placement == plan(1, 1, 1, 1).placement


def test_no_other_way_to_share_the_gpus_of_its_domains_is_quicker_than_that_of_atlas():
    two = [dataclasses.replace(unit_domain(name), num_gpus=2) for name in "AB"]
    asked = problem(Topology.of(two, free_world(2).links))
    found = atlas(asked, rng())

    assert found.parallelism in ((), (Parallelism(pipeline=2),) * 2)
    others = [
        dataclasses.replace(found, parallelism=(shared, shared))
        for shared in (Parallelism(tensor=2), Parallelism(data=2), Parallelism(pipeline=2))
    ]
    assert all(asked.judge(found).makespan_s <= asked.judge(each).makespan_s for each in others)


def formula_s(asked: PlanningProblem, placement: Placement) -> float:
    """Iteration time of one placement by the formula."""
    order = np.array([[stage.domain for stage in placement.stages]])
    ends = np.cumsum([[stage.num_layers for stage in placement.stages]], axis=1)
    return float(formula_times_s(asked, formula_figures(asked), order, ends)[0])


def test_the_formula_by_hand():
    """Stages of 6 s and 2 s; the message takes 2 + 1 s the worse way: 7 x 9 + 8 + 3."""
    links = {"AB": (0.5, 1.0), "BA": (1.0, 1.0)}
    asked = problem(world("AB", links))

    assert formula_s(asked, Placement.parse("0*3,1*1")) == 7 * (6 + 3) + (6 + 2) + 3
    assert formula_s(asked, Placement.parse("1*4")) == 8 * 8
    assert formula_s(problem(world("AB", {})), Placement.parse("0*3,1*1")) == math.inf


@settings(max_examples=examples(40), deadline=None)
@given(
    topology=topologies(min_domains=2, max_domains=3, fully=True),
    workload=workloads(num_layers=5),
)
def test_the_formula_finds_its_own_optimum_or_that_of_even_splits(topology, workload):
    """On domains of one speed, where a less slow slowest stage is all that a split can win."""
    alike = tuple(
        dataclasses.replace(topology.domains[0], name=domain.name, gpu_memory_bytes=1e15)
        for domain in topology.domains
    )
    asked = problem(dataclasses.replace(topology, domains=alike), workload)
    even, every = [], []
    for size in range(1, topology.num_domains + 1):
        for order in permutations(range(topology.num_domains), size):
            even.append(Placement.contiguous(order, split_evenly(5, size)))
            for cut in combinations(range(1, 5), size - 1):
                counts = np.diff([0, *cut, 5]).tolist()
                every.append(Placement.contiguous(order, counts))
    found_s = formula_s(asked, formula(asked, rng()).placement)

    bests_s = [min(formula_s(asked, each) for each in placements) for placements in (even, every)]
    assert found_s == pytest.approx(bests_s[0]) or found_s == pytest.approx(bests_s[1])


def test_the_simulator_decides_between_the_even_and_the_level_split():
    """By the formula a border of 4 s stands in for 2 layers: 3 and 5. Deep enough it is hidden."""
    asked = problem(
        joined({"AB": 0.25}),
        unit_workload([(1, 1)] * 8, num_microbatches=20, message_bytes=1.0),
        schedule="gpipe",
    )
    even, level = Placement.parse("0*4,1*4"), Placement.parse("0*3,1*5")

    assert formula_s(asked, level) == 19 * 10 + 16 + 4 < formula_s(asked, even)
    assert sorted(stage.num_layers for stage in formula(asked, rng()).placement.stages) == [4, 4]


def test_the_formula_prefers_the_order_with_fast_borders():
    """A-B and B-C are fast, A-C is not; an even split either way round."""
    asked = problem(
        joined({"AB": 1e6, "BC": 1e6, "AC": 1e-6}),
        unit_workload([(1, 1)] * 6, num_microbatches=12, message_bytes=1.0),
    )
    found = formula(asked, rng())

    assert [stage.domain for stage in found.placement.stages] in ([0, 1, 2], [2, 1, 0])
    assert [stage.num_layers for stage in found.placement.stages] == [2, 2, 2]


def test_the_formula_keeps_to_memory_or_says_that_nothing_fits():
    """B is ten times faster, but holds one layer and two microbatches of it."""
    fast = unit_domain("B", flops_per_s=10.0, memory_bytes=16 + 2)
    asked = problem(Topology.of([unit_domain("A"), fast], joined({"AB": 1e9}).links))
    found = formula(asked, rng())

    assert asked.judge(found).fits_memory
    assert found.placement.domain_of_layer.count(1) == 1
    small = problem(joined({"AB": 1e9}, memory_bytes=20.0))
    with pytest.raises(InfeasiblePlacementError, match=r"formula: no plan .* domain A must hold"):
        formula(small, rng())
