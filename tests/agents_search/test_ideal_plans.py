"""The search over perfect devices: exact times, never worse than simple planners, refusals."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import all_plans, drawn_case, fits

from agents.decision.families import FAMILIES, SYNCHRONOUS, family_of
from agents.decision.plan_space import PlanSpace
from agents.decision.problem import PlanningProblem
from agents.planners.table import PLANNERS
from agents.search.ideal_plans import ideal_plans
from des import (
    Placement,
    Plan,
    PlaneWorlds,
    UnreachableError,
    build_workload,
    check_memory,
    simulate,
)
from des.compiled.simulate import simulate_compiled
from des.costs.memory import InfeasiblePlacementError

SIMPLE = ("single_domain", "uniform", "proportional", "data_parallel", "atlas")
JOB = build_workload("llama2_7b", num_microbatches=16)


def domains_of(num_domains, seed=0, *, bandwidth_bytes_per_s=1e9, memory_bytes=288e9):
    """Domains of a plane, with this memory a GPU."""
    worlds = PlaneWorlds(num_domains=num_domains, mean_bandwidth_bytes_per_s=bandwidth_bytes_per_s)
    topology = worlds.draw(np.random.default_rng(seed)).at_start()
    domains = (dataclasses.replace(one, gpu_memory_bytes=memory_bytes) for one in topology.domains)
    return dataclasses.replace(topology, domains=tuple(domains))


def best_of(topology, *families, workload=JOB):
    return ideal_plans(topology, workload, PlanSpace(families=families))


@pytest.mark.parametrize("num_domains", [2, 4])
def test_every_family_has_the_time_of_the_simulator(num_domains):
    topology = domains_of(num_domains)
    found = best_of(topology, *FAMILIES)
    assert {family_of(one.plan) for one in found} >= {"single", "pipeline", "streaming_diloco"}
    for one in found:
        check_memory(topology, one.workload, one.plan)
        assert one.workload == JOB
        if family_of(one.plan) in SYNCHRONOUS:
            assert one.step_s == simulate(topology, JOB, one.plan).makespan_s
    assert [one.step_s for one in found] == sorted(one.step_s for one in found)


@settings(max_examples=examples(40))
@given(st.integers(0, 10_000), st.integers(2, 7))
def test_it_is_never_worse_than_a_simple_planner(seed, num_domains):
    topology, workload = drawn_case(seed, num_domains, 12)
    problem = PlanningProblem(
        topology=topology, workload=workload, simulator=simulate_compiled, schedule="1f1b_4x"
    )
    rng = np.random.default_rng(0)
    others = []
    for name in SIMPLE:
        plan = PLANNERS[name](problem, rng)
        if fits(topology, workload, plan):
            others.append(problem.judge(plan).makespan_s)
    try:
        best = best_of(topology, *SYNCHRONOUS, workload=workload)[0]
    except InfeasiblePlacementError:
        assert others == []
        return
    check_memory(topology, workload, best.plan)
    assert best.step_s <= min(others, default=np.inf) * (1 + 1e-12)


@given(st.integers(0, 10_000))
def test_few_layers_on_two_domains_get_the_best_of_all_pipelines(seed):
    topology, workload = drawn_case(seed, 2, 4)
    schedules = ("1f1b", "gpipe", "zb_h1")
    times_s = [
        simulate(topology, workload, plan).makespan_s
        for plan in all_plans(2, 4, schedules)
        if fits(topology, workload, plan)
    ]
    if not times_s:
        with pytest.raises(InfeasiblePlacementError):
            best_of(topology, "single", "pipeline", workload=workload)
        return
    best = best_of(topology, "single", "pipeline", workload=workload)[0]
    assert best.step_s <= min(times_s) * (1 + 1e-12)


def test_equal_problems_get_equal_answers():
    topology = domains_of(5, seed=3)
    assert best_of(topology, *SYNCHRONOUS) == best_of(topology, *SYNCHRONOUS)


def test_many_domains_are_no_worse_than_the_nearest_neighbour_and_one_alone():
    topology = domains_of(20, seed=1, bandwidth_bytes_per_s=2e8)
    found = best_of(topology, *SYNCHRONOUS)
    counts = [len(part) for part in np.array_split(np.arange(JOB.num_layers), 3)]
    near = Plan(placement=Placement.contiguous(range(3), counts), schedule="zb_h1_4x")
    alone = Plan(placement=Placement.contiguous([0], [JOB.num_layers]))
    for plan in (near, alone):
        assert found[0].step_s <= simulate_compiled(topology, JOB, plan).makespan_s


def test_a_job_that_fits_nowhere_names_the_smallest_shortfall():
    assert {family_of(one.plan) for one in best_of(domains_of(3, memory_bytes=8e9), *FAMILIES)} == {
        "pipeline"
    }
    with pytest.raises(InfeasiblePlacementError, match="GB"):
        best_of(domains_of(3, memory_bytes=1e9), *FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_alone_is_the_answer_or_refused(family):
    topology = domains_of(4)
    assert {family_of(one.plan) for one in best_of(topology, family)} == {family}
    with pytest.raises(InfeasiblePlacementError):
        best_of(domains_of(4, memory_bytes=1e9), family)


def test_layers_keep_to_the_memory_of_each_domain():
    """Layers level in time do not fit; layers that fit are found all the same."""
    topology = domains_of(3, seed=2)
    small = dataclasses.replace(topology.domains[0], gpu_memory_bytes=2.5e9)
    tight = dataclasses.replace(topology, domains=(small, *topology.domains[1:]))
    (best, *_) = best_of(tight, "pipeline")
    check_memory(tight, JOB, best.plan)
    assert best.step_s >= best_of(topology, "pipeline")[0].step_s


def test_relays_are_simulated():
    topology = domains_of(3, seed=2)
    first, *_, last = (domain.name for domain in topology.domains)
    kept = [link for link in topology.links if {link.source, link.target} != {first, last}]
    relayed = dataclasses.replace(topology, links=tuple(kept))
    (best,) = best_of(relayed, "pipeline")
    assert best.step_s == simulate(relayed, JOB, best.plan).makespan_s


def test_domains_that_nothing_joins_train_alone():
    apart = dataclasses.replace(domains_of(2), links=())
    assert [family_of(one.plan) for one in best_of(apart, *FAMILIES)] == ["single"]
    with pytest.raises(UnreachableError):
        simulate(apart, JOB, Plan(placement=Placement.even(2, 32)))


def test_more_bandwidth_never_makes_the_best_plan_slower():
    topology, times_s = domains_of(3, seed=5), []
    for factor in (1.0, 4.0, 16.0):
        links = tuple(
            dataclasses.replace(one, bandwidth_bytes_per_s=factor * one.bandwidth_bytes_per_s)
            for one in topology.links
        )
        quicker = dataclasses.replace(topology, links=links)
        times_s.append(best_of(quicker, "single", "pipeline")[0].step_s)
    assert all(later <= before for before, later in pairwise(times_s))
