"""A planner: all layers in the domain that computes fastest.

One row of the entry-point group ``eastwest.planners`` makes it known to every command:
``eastwest compare --planners search,fastest_domain``.
"""

import numpy as np

from agents.decision.problem import PlanningProblem
from des import Placement, Plan


def fastest_domain(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Place all layers in the domain with the most FLOP/s.

    Raises
    ------
    InfeasiblePlacementError
        If its memory is too small; tables then have a row with the reason.
    """
    speeds = [domain.attainable_flops_per_s for domain in problem.topology.domains]
    fastest = int(np.argmax(speeds))
    return problem.plan(Placement(domain_of_layer=(fastest,) * problem.workload.num_layers))
