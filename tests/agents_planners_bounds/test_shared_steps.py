"""Exchanges that have steps to themselves, and the links that all copies need."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.judge.step_times import step_times_s
from agents.planners.bounds.exchanges import Windows
from agents.planners.bounds.job_figures import JobFigures
from agents.planners.bounds.linked_sets import LinkedSets
from agents.planners.bounds.step_bound import step_lower_bound_s
from des import DiLoCo, Link, Placement, Plan, StreamingDiLoCo, Topology, read_topology

JOB = TrainingJob(model="llama2_7b", num_sequences=64)


def joined(rates: dict[str, float]) -> Topology:
    """Equal domains of two letters' links at these rates each way; all others at 1e6 bytes/s."""
    names = sorted(set("".join(rates)))
    east = replace(read_topology("four_uneven").domains[0], gpu_memory_bytes=1e12)
    links = [
        Link(
            source=a,
            target=b,
            bandwidth_bytes_per_s=rates.get(a + b, rates.get(b + a, 1e6)),
            latency_s=0.01,
        )
        for a, b in permutations(names, 2)
    ]
    return Topology.of([replace(east, name=name) for name in names], links)


def test_windows_by_hand():
    """Six layers in two fragments, due in steps 2 and 4 of four.

    The second is waited for in step 1 of the next period, the first in step 3.
    """
    layer_bytes = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    mode = StreamingDiLoCo(steps_between=4, overlap_steps=1)
    assert Windows.of(mode, layer_bytes) == (2, 2, 63.0)
    assert Windows.of(replace(mode, overlap_steps=2), layer_bytes) == (2, 4, 63.0)
    # Of three steps only the one that begins with the period is within it.
    assert Windows.of(replace(mode, overlap_steps=3), layer_bytes) == (1, 3, 42.0)
    assert Windows.of(DiLoCo(steps_between=4), layer_bytes) == (0, 0, 0.0)


def test_linked_sets_by_hand():
    """A and B by 8, C and D by 4, both pairs by 2, E to all by 1."""
    rates = {"AB": 8e9, "CD": 4e9, "BC": 2e9, "AE": 1e9}
    problem = WholeProblem(topology=joined(rates), job=JOB, space=PlanSpace())
    sets = LinkedSets.of(JobFigures.of(problem, problem.workloads[0]))

    found = ["".join(np.array(list("ABCDE"))[own]) for own in sets.is_member]
    assert found == ["AB", "CD", "ABCD", "ABCDE"]
    assert sets.rate_bytes_per_s.tolist() == [8e9, 4e9, 2e9, 1e9]


@pytest.mark.parametrize("bandwidth", [1e8, 1e9, 1e10])
def test_two_streaming_copies_on_a_slow_link_are_on_the_bound(bandwidth):
    """Eleven exchanges of a period of 100 steps that one step each hides; C is far from both."""
    space = PlanSpace(families=("streaming_diloco",), bits=(16.0,))
    problem = WholeProblem(topology=joined({"AB": bandwidth, "BC": 1e6}), job=JOB, space=space)
    workload = problem.workloads[0]
    here, there = (Placement.contiguous([each], [workload.num_layers]) for each in (0, 1))
    (mode,) = space.modes("streaming_diloco")
    half = workload.num_microbatches // 2
    plan = Plan(placement=here, replicas=(there,), shares=(half, half), synchronisation=mode)

    (step_s,) = step_times_s(problem.topology, workload, [plan])
    bound_s = step_lower_bound_s(problem).step_s
    assert bound_s <= step_s
    assert bound_s == pytest.approx(step_s, rel=0.02)
