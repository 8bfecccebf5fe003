"""The best plans of a job over perfect devices, to plan without GPUs."""

from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import given_job
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.trainers.ideal import IDEAL
from des import NO_CORRECTIONS, Corrections, Topology, Workload


def ideal_plans(
    topology: Topology,
    workload: Workload,
    space: PlanSpace,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    every_family: bool = False,
) -> tuple[BoundPlan, ...]:
    """Return the best plans of the families of a space, the quickest step first.

    Microbatches are those of the workload. Families of copies that are far from the best are left
    out, but with ``every_family``; tokens that changed training needs more have no price.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits.
    """
    request = PlanRequest(
        topology=topology.at_start(),
        job=given_job(workload),
        trainer=IDEAL,
        corrections=corrections,
        schedules=space.schedules,
        microbatch_sizes=(1,),
        token_factor=1.0,
        recomputations=("flash",),
        families=space.families,
        every_family=every_family,
        outer_modes=space.outer_modes,
    )
    found = [row.bound for row in search_bound(request).rows]
    return tuple(sorted(found, key=lambda one: one.step_s))
