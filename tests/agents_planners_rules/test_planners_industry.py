"""Baselines of industrial practice against hand-computed cases and the laws of their exchanges."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import (
    free_world,
    topologies,
    unit_domain,
    unit_workload,
    workloads,
    world,
)

from agents.decision.problem import PlanningProblem
from agents.planners.rules.data_parallel import data_parallel
from agents.planners.rules.megatron import megatron
from agents.planners.rules.zero import zero1, zero3, zero_memory
from agents.planners.table import PLANNERS, quick_planners, reference_planners
from des import (
    InfeasiblePlacementError,
    Parallelism,
    Plan,
    Topology,
    domain_memory,
)
from des.compiled.simulate import simulate_compiled

TWO_LAYERS = unit_workload([(1, 2)] * 2, num_microbatches=4)
"""6 s a microbatch on a domain of 1 FLOP/s; gradients of 2 x 2 bytes."""

PAIR = world("AB", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)})


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def problem(topology: Topology, workload=TWO_LAYERS, **changes) -> PlanningProblem:
    return PlanningProblem(topology=topology, workload=workload, **changes)


def replicas_of(plan: Plan) -> list[int]:
    """Domain of every replica that has one domain alone."""
    domains = [set(placement.domain_of_layer) for placement in plan.placements]
    assert all(len(each) == 1 for each in domains)
    return [min(each) for each in domains]


@pytest.mark.parametrize("name", [name for name in quick_planners() if name != "exact"])
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(draw=st.data())
def test_every_planner_returns_a_valid_plan_that_depends_on_its_seed_only(name, draw):
    topology = draw.draw(topologies(min_domains=2, max_domains=5))
    workload = draw.draw(workloads(max_microbatches=6))
    seed = draw.draw(st.integers(0, 2**32))
    asked = problem(topology, workload, simulator=simulate_compiled)
    try:
        one, again = (PLANNERS[name](asked, np.random.default_rng(seed)) for _ in range(2))
    except InfeasiblePlacementError:
        assert name == "formula"
        return
    one.check_against(topology, workload)
    assert one == again
    assert asked.judge(one).makespan_s > 0


def test_planners_of_placements_are_among_the_baselines():
    assert reference_planners().items() <= quick_planners().items()


# Data parallelism.


def test_data_parallelism_computes_its_share_and_sums_up_over_the_ring():
    """Each replica does 2 microbatches in 12 s; then 2 steps of 2 bytes at 1 byte/s."""
    asked = problem(PAIR)
    plan = data_parallel(asked, rng())

    assert replicas_of(plan) == [0, 1]
    assert asked.judge(plan).makespan_s == 12 + 2 * 2


def test_data_parallelism_sums_up_along_the_ring_of_the_fastest_slowest_link():
    """Links of A-C, C-B, B-D and D-A are fast, those across slow."""
    fast = {"AC", "CB", "BD", "DA"}
    ends = [a + b for a in "ABCD" for b in "ABCD" if a != b]
    rates = {pair: (8.0 if pair in fast or pair[::-1] in fast else 1.0, 0.0) for pair in ends}
    ring = replicas_of(data_parallel(problem(world("ABCD", rates)), rng()))

    neighbours = {frozenset(pair) for pair in zip(ring, ring[1:] + ring[:1], strict=True)}
    assert neighbours == {frozenset(pair) for pair in ((0, 2), (2, 1), (1, 3), (3, 0))}


def test_the_fastest_domain_does_the_microbatch_that_is_over():
    slow, fast = unit_domain("A"), unit_domain("B", flops_per_s=2.0)
    asked = problem(
        Topology.of([slow, fast], free_world(2).links),
        dataclasses.replace(TWO_LAYERS, num_microbatches=3),
    )
    plan = data_parallel(asked, rng())

    assert replicas_of(plan) == [1, 0]
    assert asked.judge(plan).makespan_s == 6  # 2 x 3 s and 1 x 6 s


def test_of_more_domains_than_microbatches_the_fastest_take_part():
    domains = [
        unit_domain(name, flops_per_s=speed) for name, speed in zip("ABC", (2, 1, 3), strict=True)
    ]
    workload = dataclasses.replace(TWO_LAYERS, num_microbatches=2)
    asked = problem(Topology.of(domains, free_world(3).links), workload)

    assert sorted(replicas_of(data_parallel(asked, rng()))) == [0, 2]


def test_a_model_too_large_for_a_domain_is_judged_as_if_it_fitted_and_marked():
    small = [unit_domain(name, memory_bytes=1.0) for name in "AB"]
    asked = problem(Topology.of(small, PAIR.links))
    result = asked.judge(data_parallel(asked, rng()))

    assert result.makespan_s == 16
    assert not result.fits_memory


# Megatron.


def test_megatron_goes_round_the_domains_twice_in_their_order():
    """2 x 2 x (1 + 1) s of work a domain and a bubble of (p - 1) (F + B) / 2 = 2 s."""
    workload = unit_workload([(1, 1)] * 4, num_microbatches=2)
    asked = problem(free_world(2), workload)
    plan = megatron(asked, rng())

    assert plan.placement.domain_of_layer == (0, 1, 0, 1)
    assert plan.schedule == "interleaved_1f1b"
    assert asked.judge(plan).makespan_s == 10


@pytest.mark.parametrize(
    ("num_domains", "num_layers", "expected"),
    [(1, 4, "0*4"), (2, 3, "0*2,1*1"), (4, 3, "0*1,1*1,2*1"), (2, 7, "0*2,1*2,0*2,1*1")],
)
def test_megatron_goes_round_once_where_it_cannot_twice(num_domains, num_layers, expected):
    workload = unit_workload([(1, 1)] * num_layers, num_microbatches=2)
    plan = megatron(problem(free_world(num_domains), workload, schedule="gpipe"), rng())

    assert str(plan.placement) == expected
    assert plan.schedule == ("interleaved_1f1b" if num_layers == 7 else "gpipe")


# ZeRO.


def four_gpus(names: str, links) -> Topology:
    domains = [dataclasses.replace(unit_domain(name), num_gpus=4) for name in names]
    return Topology.of(domains, links)


@pytest.mark.parametrize(("planner", "volume"), [(data_parallel, 2), (zero1, 2), (zero3, 3)])
@pytest.mark.parametrize("num_domains", [2, 3, 5])
def test_zero_sends_two_or_three_times_the_parameters(planner, volume, num_domains):
    """2 bytes a parameter, times (R - 1) / R for a ring of R; every domain sends that."""
    workload = unit_workload([(1, 2)] * 3, num_microbatches=5)
    asked = problem(four_gpus("ABCDE"[:num_domains], free_world(num_domains).links), workload)
    result = asked.judge(planner(asked, rng()))

    sent = volume * 2 * 3 * (num_domains - 1) / num_domains
    assert result.communication_cost_bytes == pytest.approx(num_domains * sent)
    assert [use.num_bytes for use in result.links if use.num_bytes] == pytest.approx(
        [sent] * num_domains
    )


def test_zero_keeps_what_it_does_not_spread_on_every_gpu():
    """8 GPUs: 4 + 12 / 8 = 5.5 bytes, 16 / 8 = 2 bytes a parameter, and a layer of 2 bytes."""
    asked = problem(four_gpus("AB", PAIR.links))
    one, three = zero1(asked, rng()), zero3(asked, rng())

    assert {memory.model_state_bytes for memory in zero_memory(asked, one, 1)} == {4 * 2 * 5.5}
    assert {memory.model_state_bytes for memory in zero_memory(asked, three, 3)} == {4 * (4 + 2)}


@given(topology=topologies(min_domains=2), workload=workloads())
@settings(deadline=None)
def test_zero_needs_no_more_memory_than_the_simulator_counts(topology, workload):
    """Which spreads the optimiser within domains only."""
    asked = problem(topology, workload)
    plan = zero1(asked, rng())
    counted = domain_memory(topology, workload, plan)

    for ours, theirs in zip(zero_memory(asked, plan, 1), counted, strict=True):
        assert ours.model_state_bytes <= theirs.model_state_bytes * (1 + 1e-9)
        assert ours.activation_bytes == theirs.activation_bytes
    assert plan.parallelism[0] == Parallelism(
        data=topology.domains[0].num_gpus, sharding="optimiser"
    )
