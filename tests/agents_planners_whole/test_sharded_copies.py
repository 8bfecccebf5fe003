"""Copies that share the optimiser's state: found where they alone fit, or are quicker."""

from dataclasses import replace
from itertools import permutations

import pytest

from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.judge.step_times import step_times_s
from agents.planners.bounds.step_bound import step_lower_bound_s
from agents.planners.whole.search_whole import search_whole
from des import (
    GradientExchange,
    InfeasiblePlacementError,
    Link,
    Topology,
    check_memory,
    read_topology,
)
from des.world.kernel_figures import FITTED_KERNELS

JOB = TrainingJob(model="llama2_7b", num_sequences=64)
"""6.7 G parameters: 108 GB of state, of which 81 GB are the optimiser's."""


def equal_domains(num_domains: int, memory_bytes: float, *, bandwidth: float = 1e10) -> Topology:
    """Domains of the same GPUs with this memory each, all pairs joined by the same links."""
    east = read_topology("four_uneven").domains[0]
    own = replace(east, gpu_memory_bytes=memory_bytes / east.num_gpus)
    domains = [replace(own, name=name) for name in "ABCDEFGH"[:num_domains]]
    links = [
        Link(source=a.name, target=b.name, bandwidth_bytes_per_s=bandwidth, latency_s=0.01)
        for a, b in permutations(domains, 2)
    ]
    return Topology.of(domains, links)


def problem_of(topology: Topology, *families: str) -> WholeProblem:
    return WholeProblem(topology=topology, job=JOB, space=PlanSpace(families=families))


def test_a_job_that_fits_sharded_alone_is_found():
    """Four copies need 4 + 3 bytes a parameter each, 47 GB, not 16; two groups 4 + 6."""
    problem = problem_of(equal_domains(4, 70e9), "replicas", "hybrid")
    found = search_whole(problem)

    best = found.by_family["replicas"]
    assert (best.plan.exchange.sharded, len(best.plan.placements)) == (True, 4)
    bound = step_lower_bound_s(problem)
    for family, judged in found.by_family.items():
        check_memory(problem.topology, judged.workload, judged.plan)
        (step_s,) = step_times_s(problem.topology, judged.workload, [judged.plan])
        assert step_s == judged.step_s >= bound.family_s[family]
    whole = replace(best.plan, exchange=GradientExchange())
    with pytest.raises(InfeasiblePlacementError, match="must hold at most 70"):
        check_memory(problem.topology, best.workload, whole)


def test_what_fits_nowhere_says_what_the_smallest_copies_lack():
    """Two copies that share the optimiser lack more than four."""
    with pytest.raises(InfeasiblePlacementError, match=r"at best, .* got 6.\.. GB \(47.2 GB model"):
        search_whole(problem_of(equal_domains(4, 50e9), "replicas"))


def test_where_memory_and_updates_are_free_no_optimiser_is_shared():
    """The gathering of weights starts behind the update, and nothing hides it."""
    best = search_whole(problem_of(equal_domains(2, 1e12), "replicas")).best

    assert not best.plan.exchange.sharded


def test_slow_updates_are_shared_where_links_are_quick():
    """With times of kernels an update reads and writes all state; two copies do half of it each."""
    topology = equal_domains(2, 1e12, bandwidth=1e14)
    slow = replace(FITTED_KERNELS, memory_efficiency=1e-3)
    shaped = tuple(replace(domain, kernels=slow) for domain in topology.domains)
    problem = problem_of(replace(topology, domains=shaped), "replicas")

    best = search_whole(problem).best
    assert best.plan.exchange.sharded
    whole = replace(best.plan, exchange=replace(best.plan.exchange, sharded=False))
    assert step_times_s(problem.topology, best.workload, [whole])[0] > best.step_s
    assert step_lower_bound_s(problem).step_s <= best.step_s
