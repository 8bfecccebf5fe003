"""The whole job in one domain: what multi-domain training has to beat."""

import numpy as np

from agents.decision.problem import PlanningProblem
from des import Placement, Plan


def single_domain(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Put all layers in the domain that finishes first.

    Where the job does not fit into one domain's memory it is judged as if it did, in this
    planner's favour; `IterationResult.fits_memory` of the outcome tells.
    """
    num_layers = problem.workload.num_layers
    candidates = [
        problem.plan(Placement(domain_of_layer=(domain,) * num_layers))
        for domain in range(problem.topology.num_domains)
    ]
    return min(candidates, key=problem.makespan_s)
