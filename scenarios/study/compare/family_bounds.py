"""Bounds of the steps of all plans of some families, for the tables of comparisons."""

from collections.abc import Sequence
from dataclasses import replace

from agents.decision.families import Family
from agents.decision.plan_space import SPACE_MICROBATCH_SIZES, PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.planners.bounds.step_bound import StepBound, step_lower_bound_s
from des import Topology, Workload


def whole_problem(
    topology: Topology, workload: Workload, families: Sequence[Family]
) -> WholeProblem:
    """Return the whole decision of a workload, in microbatches of all sizes and of its own.

    Its gradients are of two bytes, so that bounds hold for longer ones too.

    Raises
    ------
    ValueError
        If `des.build_workload` did not make the workload, or the topology moves.
    """
    own = 1 if workload.shape is None else int(workload.shape.batch_size)
    sizes = tuple(sorted({*SPACE_MICROBATCH_SIZES, own}))
    return WholeProblem(
        topology=topology,
        job=TrainingJob.of(replace(workload, gradient_precision="bf16"), microbatch_size=own),
        space=PlanSpace(families=tuple(families), microbatch_sizes=sizes),
    )


def bound_of(
    topology: Topology, workload: Workload, families: Sequence[Family]
) -> StepBound | None:
    """Bound the steps of all plans of these families; None where the proof does not cover them.

    A workload without the shape of a layer is not covered.
    """
    if workload.shape is None:
        return None
    try:
        return step_lower_bound_s(whole_problem(topology, workload, families))
    except ValueError:  # refused: the page of the bound says what it covers
        return None
