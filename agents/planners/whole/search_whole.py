"""The search over all families of plans: whether to split a job over domains, and how."""

import numpy as np

from agents.decision.plan_space import PlanSpace
from agents.decision.problem import PlanningProblem
from agents.decision.whole_plan import ProposeGroups, WholeFound, WholeProblem
from agents.planners.whole.family_search import FamilySearch
from des import Plan


def search_whole(
    problem: WholeProblem,
    *,
    max_judged: int | None = None,
    propose: ProposeGroups | None = None,
) -> WholeFound:
    """Find the plan of least step time among all that the space of a problem allows.

    Parameters
    ----------
    max_judged
        Plans that are judged of pipelines, and of groups of domains, for each size of microbatches
        and compression, seeds aside; None: `default_budget`.
    propose
        Proposes plans that the search begins from too, for each size of microbatches; None: none.

    Raises
    ------
    InfeasiblePlacementError
        If no plan of any family allowed fits, naming what the nearest one lacks.
    """
    return FamilySearch(
        problem.topology,
        problem.workloads,
        problem.space,
        problem.corrections,
        max_judged=max_judged,
        propose=propose,
    ).run()


def whole(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Choose among the families that leave the arithmetic unchanged; draws nothing.

    Microbatches stay as large as the problem has them, schedules are all that a `PlanSpace` allows.

    Raises
    ------
    InfeasiblePlacementError
        See `search_whole`.
    """
    standing = problem.topology.at_start()
    found = FamilySearch(standing, (problem.workload,), PlanSpace(), problem.corrections)
    return found.run().best.plan
