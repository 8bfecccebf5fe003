"""The size of microbatches as a choice: a step is a number of sequences, however grouped."""

from dataclasses import replace

import numpy as np

from agents.decision.problem import Planner, PlanningProblem
from agents.decision.training_job import MICROBATCH_SIZES, regrouped
from agents.decision.whole_plan import JudgedPlan
from agents.planners.choice.choosing import quick_simulator
from des import InfeasiblePlacementError


def best_grouping(
    planner: Planner,
    problem: PlanningProblem,
    rng: np.random.Generator,
    sizes: tuple[int, ...] = MICROBATCH_SIZES,
) -> JudgedPlan:
    """Plan the step in microbatches of every size that divides it, and keep the quickest.

    Plans that fit into memory come before those that do not, and of equal ones that of the earlier
    size; the problem's own size comes first. The planner gets the same draws for each size. A
    workload without the shape of a layer has its own size alone.

    Raises
    ------
    InfeasiblePlacementError
        If the planner raises it for all sizes.
    """
    seed, judge = int(rng.integers(2**63)), quick_simulator(problem)
    best: tuple[float, JudgedPlan] | None = None
    misfit: InfeasiblePlacementError | None = None
    for workload in regrouped(problem.workload, sizes):
        asked = replace(problem, workload=workload)
        try:
            plan = planner(asked, np.random.default_rng(seed))
        except InfeasiblePlacementError as error:
            misfit = error
            continue
        result = judge(problem.topology, workload, plan, problem.corrections)
        overflow = max(memory.overflow_fraction for memory in result.memory)
        judged = JudgedPlan(workload=workload, plan=plan, step_s=result.makespan_s)
        if best is None or (overflow, judged.step_s) < (best[0], best[1].step_s):
            best = overflow, judged
    if best is None:
        assert misfit is not None
        raise misfit
    return best[1]
