"""Quickest bound plans of a job whose microbatches are given."""

import pytest
from bound_cases import job, site, sites

from agents.search.bind import PlanBinder
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.search.sketches import quickest_bound, sketch_of
from agents.trainers.plan_checks import check_plan
from agents.trainers.table import trainer_named
from des import InfeasiblePlacementError, Topology, Workload, build_workload, simulate

JOBS = {
    "one sequence": job(),
    "four sequences": job(num_microbatches=8, microbatch_size=4),
    "recomputed": job(recomputation="full"),
}


def rebound_s(topology: Topology, workload: Workload, trainer_name: str) -> float:
    """The quickest of the plans in microbatches of any size, bound again to those given. [s]"""
    trainer = trainer_named(trainer_name)
    binder = PlanBinder(topology=topology, workload=workload, trainer=trainer)
    rows = search_bound(PlanRequest(topology=topology, job=binder.job, trainer=trainer)).rows
    found = [sketch_of(row.bound.plan) for row in rows if not row.bound.plan.replicas]
    return min(binder.bind(one).step_s for one in found)


@pytest.mark.parametrize("trainer_name", ["megatron", "torchtitan"])
@pytest.mark.parametrize("name", JOBS)
def test_plans_are_searched_in_the_microbatches_given(name, trainer_name):
    """Plans found in other microbatches and bound to these are no quicker, and may be slower."""
    topology, workload = sites(site("A"), site("B", 8)), JOBS[name]
    found = quickest_bound(topology, workload, trainer_named(trainer_name))

    assert found.workload == workload
    assert found.step_s == simulate(topology, workload, found.plan).makespan_s
    assert found.step_s <= rebound_s(topology, workload, trainer_name)
    check_plan(trainer_named(trainer_name), topology, workload, found.plan)


def test_a_job_that_fits_nowhere_names_what_a_gpu_lacks():
    """70 billion parameters and their state are 1.26 TB, a site of eight has 640 GB."""
    large = build_workload("llama2_70b", num_microbatches=4, gradient_precision="fp32")
    with pytest.raises(InfeasiblePlacementError, match=r"a GPU lacks \d+\.\d GB"):
        quickest_bound(sites(site("A", 8)), large, trainer_named("megatron"))
