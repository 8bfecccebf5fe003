"""The size of microbatches as a choice of any planner."""

import numpy as np
import pytest
from strategies import free_world, unit_domain, unit_workload

from agents.decision.problem import PlanningProblem
from agents.decision.training_job import regrouped
from agents.planners.choice.microbatches import best_grouping
from agents.planners.rules.static import uniform
from agents.planners.sailor.sailor import sailor
from des import InfeasiblePlacementError, Topology, build_workload


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_on_free_links_the_smallest_microbatches_leave_the_least_bubble():
    """Two equal stages: (2 + 1) x 4 sequences in two microbatches, 8 + 1 in eight."""
    coarse = build_workload("llama2_7b", num_layers=4, num_microbatches=2, microbatch_size=4)
    problem = PlanningProblem(topology=free_world(2), workload=coarse)
    best = best_grouping(uniform, problem, rng())

    assert best.workload.num_microbatches == 8
    assert best.workload.tokens_per_iteration == coarse.tokens_per_iteration
    as_given_s = problem.judge(uniform(problem, rng())).makespan_s
    assert best.step_s == pytest.approx(as_given_s * 9 / 12, rel=1e-3)


def test_no_size_is_quicker_than_the_one_that_is_kept():
    workload = build_workload("llama2_7b", num_layers=4, num_microbatches=4)
    problem = PlanningProblem(topology=free_world(2), workload=workload)
    best = best_grouping(uniform, problem, rng())

    for each in regrouped(workload):
        asked = PlanningProblem(topology=problem.topology, workload=each)
        assert best.step_s <= asked.judge(uniform(asked, rng())).makespan_s


def test_a_workload_without_a_shape_keeps_its_microbatches_and_misfits_are_raised():
    workload = unit_workload([(1, 1)] * 4, num_microbatches=8)
    problem = PlanningProblem(topology=free_world(2), workload=workload)
    assert best_grouping(uniform, problem, rng()).workload == workload

    full = Topology.of([unit_domain("A", memory_bytes=1.0)], [])
    with pytest.raises(InfeasiblePlacementError, match="sailor: no plan was found"):
        best_grouping(sailor, PlanningProblem(topology=full, workload=workload), rng())
