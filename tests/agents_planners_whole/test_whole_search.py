"""The search over families: exact judgement, never worse than simple planners, clear refusals."""

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
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.judge.step_times import step_times_s
from agents.planners.table import PLANNERS
from agents.planners.whole.search_whole import search_whole
from des import (
    Corrections,
    Placement,
    Plan,
    PlaneWorlds,
    UnreachableError,
    check_memory,
    simulate,
)
from des.compiled.simulate import simulate_compiled
from des.costs.memory import InfeasiblePlacementError

SIMPLE = ("single_domain", "uniform", "proportional", "data_parallel", "atlas")


def problem_of(num_domains, seed=0, *, bandwidth_bytes_per_s=1e9, memory_bytes=None, **space):
    """A 7B model in 16 sequences on domains of a plane."""
    worlds = PlaneWorlds(num_domains=num_domains, mean_bandwidth_bytes_per_s=bandwidth_bytes_per_s)
    topology = worlds.draw(np.random.default_rng(seed)).at_start()
    if memory_bytes is not None:
        domains = tuple(
            dataclasses.replace(one, gpu_memory_bytes=memory_bytes) for one in topology.domains
        )
        topology = dataclasses.replace(topology, domains=domains)
    return WholeProblem(
        topology=topology,
        job=TrainingJob(model="llama2_7b", num_sequences=16),
        space=PlanSpace(**space),
    )


@pytest.mark.parametrize("num_domains", [2, 4])
def test_every_family_has_the_time_that_the_judge_gives_its_plan(num_domains):
    problem = problem_of(num_domains, memory_bytes=288e9, families=FAMILIES)
    found = search_whole(problem)
    assert set(found.by_family) >= {"single", "pipeline", "replicas", "diloco"}
    for family, judged in found.by_family.items():
        assert family_of(judged.plan) == judged.family == family
        check_memory(problem.topology, judged.workload, judged.plan)
        (step_s,) = step_times_s(problem.topology, judged.workload, [judged.plan])
        assert judged.step_s == step_s
    assert found.best.step_s == min(each.step_s for each in found.by_family.values())


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
        plan = PLANNERS["whole"](problem, rng)
    except InfeasiblePlacementError:
        assert others == []
        return
    check_memory(topology, workload, plan)
    assert problem.judge(plan).makespan_s <= min(others, default=np.inf)


@given(st.integers(0, 10_000))
def test_few_layers_on_two_domains_get_the_best_of_all_pipelines(seed):
    topology, workload = drawn_case(seed, 2, 4)
    schedules = ("1f1b", "gpipe", "zb_h1")
    times_s = [
        simulate(topology, workload, plan).makespan_s
        for plan in all_plans(2, 4, schedules)
        if fits(topology, workload, plan)
    ]
    problem = PlanningProblem(topology=topology, workload=workload)
    if not times_s:
        with pytest.raises(InfeasiblePlacementError, match="no plan fits"):
            PLANNERS["whole"](problem, np.random.default_rng(0))
        return
    found = PLANNERS["whole"](problem, np.random.default_rng(0))
    assert simulate(topology, workload, found).makespan_s <= min(times_s)


def test_equal_problems_get_equal_answers():
    problem = problem_of(5, seed=3, families=SYNCHRONOUS)
    assert search_whole(problem) == search_whole(problem)


def test_many_domains_are_no_worse_than_the_nearest_neighbour_and_one_alone():
    problem = problem_of(20, seed=1, bandwidth_bytes_per_s=2e8, memory_bytes=288e9)
    found = search_whole(problem, max_judged=500)
    (workload, *_) = problem.workloads
    chain = range(3)
    counts = [len(part) for part in np.array_split(np.arange(workload.num_layers), len(chain))]
    near = Plan(placement=Placement.contiguous(chain, counts), schedule="zb_h1_4x")
    alone = Plan(placement=Placement.contiguous([0], [workload.num_layers]))
    for plan in (near, alone):
        assert found.best.step_s <= simulate_compiled(problem.topology, workload, plan).makespan_s


@pytest.mark.parametrize("groups", [((8, 3, 5, 1),), ((7, 2), (4, 0, 6))])
def test_an_answer_is_no_slower_than_a_plan_that_was_proposed(groups):
    problem = problem_of(9, seed=4, memory_bytes=288e9, families=SYNCHRONOUS)
    (workload, *_) = problem.workloads
    found = search_whole(problem, max_judged=1, propose=lambda *_: [groups])
    even = [
        Placement.contiguous(
            order,
            [len(part) for part in np.array_split(np.arange(workload.num_layers), len(order))],
        )
        for order in groups
    ]
    plan = Plan(placement=even[0], replicas=tuple(even[1:]), schedule="zb_h1_4x")
    assert found.best.step_s <= simulate(problem.topology, workload, plan).makespan_s


def test_orders_that_are_proposed_are_looked_at():
    problem = problem_of(9, seed=4, memory_bytes=288e9, families=("pipeline",))
    order = (8, 3, 5, 1, 0, 6)
    one = dataclasses.replace(problem.space, microbatch_sizes=(1,))
    problem = dataclasses.replace(problem, space=one)
    plain = search_whole(problem, max_judged=1)
    more = search_whole(problem, max_judged=1, propose=lambda *_: [(order,)])
    assert more.num_judged > plain.num_judged


def test_a_family_that_fits_nowhere_names_the_smallest_shortfall():
    problem = problem_of(3, memory_bytes=8e9, families=("single", "pipeline"))
    found = search_whole(problem)
    assert set(found.by_family) == {"pipeline"}
    assert "GB" in str(found.misfits["single"])
    tight = problem_of(3, memory_bytes=1e9, families=("single", "replicas"))
    with pytest.raises(InfeasiblePlacementError, match="no plan fits; at best, "):
        search_whole(tight)


def test_one_domain_that_holds_small_microbatches_alone_is_not_called_too_small():
    problem = problem_of(3, memory_bytes=17.5e9, families=("single", "pipeline"))
    slow_messages = Corrections(message_overhead_s=0.3)
    found = search_whole(dataclasses.replace(problem, corrections=slow_messages))
    assert found.misfits == {}
    of_one, of_several = (found.by_family[family].workload for family in ("single", "pipeline"))
    assert of_several.num_microbatches < of_one.num_microbatches
    assert of_one.num_microbatches == 16


def test_relays_are_simulated():
    problem = problem_of(3, seed=2, families=("pipeline",), memory_bytes=288e9)
    kept = [link for link in problem.topology.links if {link.source, link.target} != ends(problem)]
    topology = dataclasses.replace(problem.topology, links=tuple(kept))
    found = search_whole(dataclasses.replace(problem, topology=topology))
    best = found.best
    assert best.step_s == simulate(topology, best.workload, best.plan).makespan_s


def test_domains_that_nothing_joins_train_alone():
    problem = problem_of(2, memory_bytes=288e9)
    topology = dataclasses.replace(problem.topology, links=())
    found = search_whole(dataclasses.replace(problem, topology=topology))
    assert set(found.by_family) == {"single"}
    pipeline = Plan(placement=Placement.even(2, 32))
    with pytest.raises(UnreachableError):
        simulate(topology, found.best.workload, pipeline)


def ends(problem):
    """Names of the first and the last domain."""
    first, *_, last = (domain.name for domain in problem.topology.domains)
    return {first, last}


def test_more_bandwidth_never_makes_the_best_plan_slower():
    times_s = []
    for factor in (1.0, 4.0, 16.0):
        problem = problem_of(3, seed=5, memory_bytes=288e9, families=("single", "pipeline"))
        links = tuple(
            dataclasses.replace(one, bandwidth_bytes_per_s=factor * one.bandwidth_bytes_per_s)
            for one in problem.topology.links
        )
        topology = dataclasses.replace(problem.topology, links=links)
        times_s.append(search_whole(dataclasses.replace(problem, topology=topology)).best.step_s)
    assert all(later <= before for before, later in pairwise(times_s))


@pytest.mark.parametrize("family", ["hybrid", "diloco", "streaming_diloco", "replicas"])
def test_one_family_alone_that_fits_nowhere_says_what_it_lacks(family):
    with pytest.raises(InfeasiblePlacementError, match=f"{family}: no plan fits; at best, domain"):
        search_whole(problem_of(4, memory_bytes=1e9, families=(family,)))
    least = 3 if family == "hybrid" else 2
    message = f"it takes {least} domains and 2 microbatches or more, got 1 and 16"
    with pytest.raises(InfeasiblePlacementError, match=message):
        search_whole(problem_of(1, memory_bytes=288e9, families=(family,)))
