"""Sailor's planner: its formula by hand, its search against all placements."""

import dataclasses
from itertools import pairwise, permutations

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import FEW, all_plans, drawn_case, fits, joined, small_cases
from strategies import unit_workload, world

from agents.decision.depths import DEPTHS
from agents.decision.problem import PlanningProblem
from agents.planners.sailor.sailor import (
    TIED_FRACTION,
    estimate_s,
    sailor,
    sailor_overlapped,
    sailor_search,
    sailor_with_parallelism,
)
from agents.planners.sailor.sailor_lists import border_bandwidths, lists_of_size
from des import (
    Domain,
    InfeasiblePlacementError,
    Parallelism,
    Placement,
    Topology,
    simulate,
)


def problem_of(topology, workload, schedules=DEPTHS):
    return PlanningProblem(topology=topology, workload=workload, schedules=schedules)


def domain_of_gpus(num_gpus, *, gpu_memory_bytes=1e30, intra_bandwidth_bytes_per_s=1e300):
    return Domain(
        name="A",
        num_gpus=num_gpus,
        gpu_peak_flops_per_s=1.0,
        gpu_memory_bytes=gpu_memory_bytes,
        gpu_memory_bandwidth_bytes_per_s=1.0,
        attainable_fraction=1.0,
        intra_bandwidth_bytes_per_s=intra_bandwidth_bytes_per_s,
        intra_latency_s=0.0,
    )


def in_one_domain(domain, *, num_layers=4, num_microbatches=8, message_bytes=1.0):
    workload = unit_workload(
        [(1.0, 2.0)] * num_layers,
        num_microbatches=num_microbatches,
        message_bytes=message_bytes,
    )
    problem = problem_of(Topology.of([domain], []), workload, ("1f1b",))
    return sailor_search(problem, is_whole_domain=False)


def test_a_stage_pays_for_the_slower_of_its_two_messages_and_no_stage_for_both():
    """Stages of 3 s; A to B takes 1 s, back 2 s; B to C 3 s, back 1 s; 4 microbatches.

    A sends for 1 s a microbatch, B for 2 s back or 3 s on, C for 1 s: 3 x 6 + 9 + 3 + 4.
    """
    links = {"AB": 1.0, "BA": 2.0, "BC": 3.0, "CB": 1.0}
    topology = world("ABC", {ends: (1.0, delay_s - 0.5) for ends, delay_s in links.items()})
    workload = unit_workload([(1.0, 2.0)] * 3, num_microbatches=4, message_bytes=0.5)

    assert estimate_s(problem_of(topology, workload), Placement(domain_of_layer=(0, 1, 2))) == 34.0


@pytest.mark.parametrize(("is_overlapped", "by_hand_s"), [(False, 22.5), (True, 18.0)])
def test_the_formula_of_two_stages_is_that_drawn_by_hand(is_overlapped, by_hand_s):
    """Stages of 3 s, messages of 1 s on the wire and 0.5 s in flight each way, 4 microbatches.

    Each stage takes 3 + 1.5 s with what it sends: 3 x 4.5 + (6 + 3); without that 3 x 3 + 9.
    """
    topology = joined([1.0, 1.0], bandwidth=1.0, latency_s=0.5)
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=4, message_bytes=1.0)
    placement = Placement(domain_of_layer=(0, 1))

    estimate = estimate_s(problem_of(topology, workload), placement, is_overlapped=is_overlapped)
    assert estimate == by_hand_s


def test_a_second_stage_in_a_domain_has_no_estimate():
    problem = problem_of(joined([1.0, 1.0]), unit_workload([(1.0, 2.0)] * 3, num_microbatches=1))
    with pytest.raises(ValueError, match="must have one stage per domain"):
        estimate_s(problem, Placement(domain_of_layer=(0, 1, 0)))


def test_lists_come_by_their_bottleneck_link():
    """Of three domains in a row, A=B at 3 bytes/s, B=C at 2 and A=C at 1."""
    links = {"AB": 3.0, "BA": 4.0, "BC": 2.0, "CB": 2.0, "AC": 1.0, "CA": 9.0}
    topology = world("ABC", {ends: (bandwidth, 0.0) for ends, bandwidth in links.items()})
    bandwidths = border_bandwidths(topology)

    assert bandwidths[0, 1] == 3.0
    assert bandwidths[0, 2] == 1.0
    assert list(lists_of_size(bandwidths, 2))[:2] == [(0, 1), (1, 0)]
    assert set(list(lists_of_size(bandwidths, 3))[:2]) == {(0, 1, 2), (2, 1, 0)}


@given(seed=st.integers(0, 10**6), num_domains=st.integers(1, 5))
def test_every_ordered_list_comes_once_and_in_order(seed, num_domains):
    rng = np.random.default_rng(seed)
    bandwidths = rng.uniform(1.0, 2.0, (num_domains, num_domains))
    for size in range(1, num_domains + 1):
        found = list(lists_of_size(bandwidths, size))
        bottlenecks = [
            min((bandwidths[pair] for pair in pairwise(order)), default=np.inf) for order in found
        ]
        assert sorted(found) == sorted(permutations(range(num_domains), size))
        assert bottlenecks == sorted(bottlenecks, reverse=True)


def test_on_free_links_layers_are_in_proportion_to_speed():
    """Speeds 2 and 1, six layers: four and two, 6 s a stage."""
    workload = unit_workload([(1.0, 2.0)] * 6, num_microbatches=16)
    found = sailor_search(problem_of(joined([2.0, 1.0]), workload))

    assert sorted((s.domain, s.num_layers) for s in found.plan.placement.stages) == [(0, 4), (1, 2)]
    assert found.estimate_s == 15 * 6.0 + 12.0
    assert (found.num_considered, found.is_complete) == (4, True)


@pytest.mark.parametrize("is_overlapped", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_over_two_domains_the_estimate_is_the_least_of_all(seed, is_overlapped):
    """There the recursion is exact, as the part behind the first stage has no choice."""
    topology, workload = drawn_case(seed, 2, 7)
    problem = problem_of(topology, workload)
    least_s = min(
        estimate_s(problem, plan.placement, is_overlapped=is_overlapped)
        for plan in all_plans(2, 7, ("1f1b",))
        if any(fits(topology, workload, problem.plan(plan.placement, name)) for name in DEPTHS)
    )

    found = sailor_search(problem, is_overlapped=is_overlapped, max_judged=1)
    assert found.estimate_s == pytest.approx(least_s, rel=1e-12)
    assert found.estimate_s == pytest.approx(
        estimate_s(problem, found.plan.placement, is_overlapped=is_overlapped), rel=1e-12
    )


@settings(max_examples=examples(FEW))
@given(case=small_cases())
def test_plans_fit_and_are_the_same_again(case):
    topology, workload = case
    problem = problem_of(topology, workload)
    for planner in (sailor, sailor_overlapped, sailor_with_parallelism):
        try:
            plan = planner(problem, np.random.default_rng(0))
        except InfeasiblePlacementError:
            continue
        assert fits(topology, workload, plan)
        assert plan == planner(problem, np.random.default_rng(1))
        assert plan.schedule in DEPTHS


@pytest.mark.parametrize("seed", range(4))
def test_the_simulator_decides_between_plans_of_about_the_least_estimate(seed):
    topology, workload = drawn_case(seed, 3, 9)
    problem = problem_of(topology, workload)
    alone = sailor_search(problem, max_judged=1)
    found = sailor_search(problem)

    assert alone.estimate_s <= found.estimate_s <= (1.0 + TIED_FRACTION) * alone.estimate_s
    assert problem.judge(found.plan).makespan_s <= problem.judge(alone.plan).makespan_s


def test_the_schedule_is_the_best_of_those_to_choose_from():
    topology, workload = drawn_case(4, 3, 9)
    problem = problem_of(topology, workload)
    plan = sailor(problem, np.random.default_rng(0))
    times_s = {
        name: simulate(topology, workload, dataclasses.replace(plan, schedule=name)).makespan_s
        for name in DEPTHS
        if fits(topology, workload, dataclasses.replace(plan, schedule=name))
    }

    assert times_s[plan.schedule] == min(times_s.values())


def test_a_search_that_is_cut_short_says_so():
    topology, workload = drawn_case(0, 4, 8)
    problem = problem_of(topology, workload)
    found = sailor_search(problem, max_lists=5)
    assert (found.num_considered, found.is_complete) == (5, False)
    whole = sailor_search(problem)
    assert (whole.num_considered, whole.is_complete) == (64, True)  # 4 + 12 + 24 + 24


def test_ten_domains_are_cut_short_and_planned_all_the_same():
    workload = unit_workload([(1.0, 2.0)] * 20, num_microbatches=16)
    names = "ABCDEFGHIJ"
    topology = world(names, {a + b: (1e300, 0.0) for a, b in permutations(names, 2)})
    found = sailor_search(problem_of(topology, workload), max_lists=200)

    assert not found.is_complete
    assert found.estimate_s == 15 * 6.0 + 60.0


def test_gpus_on_a_free_network_train_as_replicas():
    """The most replicas come first, and fewer are no quicker: 8 x 12 / 4 s."""
    found = in_one_domain(domain_of_gpus(4))
    assert found.plan.parallelism == (Parallelism(data=4),)
    assert found.estimate_s == pytest.approx(24.0)


def test_gpus_that_hold_no_replica_each_split_every_layer():
    """State of 64 bytes, GPUs of 24: only all four hold it, and each doubling pays."""
    found = in_one_domain(domain_of_gpus(4, gpu_memory_bytes=24.0), num_microbatches=1)
    assert found.plan.parallelism == (Parallelism(tensor=4),)
    assert found.estimate_s == pytest.approx(3.0)


def test_tensor_parallelism_is_the_least_that_fits_where_more_does_not_pay():
    """One stage needs 64 bytes of state and 4 of activations; GPUs have 40, so two hold it.

    On one message per second, splitting further costs more than it saves.
    """
    slow = domain_of_gpus(2, gpu_memory_bytes=40.0, intra_bandwidth_bytes_per_s=1e-3)
    found = in_one_domain(slow, num_microbatches=1)
    (chosen,) = found.plan.parallelism
    assert chosen.num_gpus == 2
    assert chosen in (Parallelism(tensor=2), Parallelism(pipeline=2))

    roomy = domain_of_gpus(2, intra_bandwidth_bytes_per_s=1e-3)
    assert in_one_domain(roomy).plan.parallelism == (Parallelism(),)


def test_the_exchange_of_gradients_is_in_the_estimate():
    """Two replicas: 8 x 6 s, then 8 bytes around a ring of two at 100 bytes/s, 0.08 s.

    Two GPUs for each layer would exchange for 2 x 2 x 4 x 8 x 0.01 s.
    """
    found = in_one_domain(domain_of_gpus(2, intra_bandwidth_bytes_per_s=100.0))
    assert found.plan.parallelism == (Parallelism(data=2),)
    assert found.estimate_s == pytest.approx(48.08)


def test_a_poorly_joined_domain_does_not_hold_up_the_lists():
    """Nine domains on quick links, and one behind a slow one that every list of ten crosses."""
    bandwidths = np.full((10, 10), 2.0)
    bandwidths[9, :] = bandwidths[:, 9] = 1.0
    first = next(lists_of_size(bandwidths, 10))

    assert sorted(first) == list(range(10))


def test_what_cannot_be_asked_is_refused():
    problem = problem_of(joined([1.0]), unit_workload([(1.0, 2.0)], num_microbatches=1))
    with pytest.raises(ValueError, match="is_overlapped must be False"):
        sailor_search(problem, is_whole_domain=False, is_overlapped=True)
    with pytest.raises(ValueError, match="max_lists"):
        sailor_search(problem, max_lists=0)
    full = joined([1.0], memory_bytes=1.0)
    with pytest.raises(InfeasiblePlacementError, match="sailor: no plan was found"):
        sailor_search(dataclasses.replace(problem, topology=full))
