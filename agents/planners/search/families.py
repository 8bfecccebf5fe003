"""The search of `agents.search` as a planner of perfect devices."""

import numpy as np

from agents.decision.plan_space import PlanSpace
from agents.decision.problem import PlanningProblem
from agents.search.ideal_plans import ideal_plans
from des import Plan


def best_of_families(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Choose among the families that leave the arithmetic unchanged; draws nothing.

    Microbatches stay as large as the problem has them, schedules are all that a `PlanSpace` allows.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits.
    """
    space = PlanSpace()
    return ideal_plans(problem.topology, problem.workload, space, problem.corrections)[0].plan
