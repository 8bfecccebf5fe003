"""Planners that look at the domains only, never at the links."""

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.choice.choosing import share_out
from des import Placement, Plan


def uniform(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Give every domain the same number of layers, in the order of the topology."""
    return problem.plan(Placement.even(problem.topology.num_domains, problem.workload.num_layers))


def proportional(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Give layers in proportion to attainable FLOP/s, in the order of the topology.

    Shares are rounded by largest remainders; the earlier domain wins a tie.
    """
    speeds = [domain.attainable_flops_per_s for domain in problem.topology.domains]
    counts = share_out(problem.workload.num_layers, speeds)
    return problem.plan(Placement.contiguous(range(len(counts)), counts))


def round_robin(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Deal the layers out one by one: layer ``i`` to domain ``i mod K``."""
    num_domains = problem.topology.num_domains
    dealt = tuple(layer % num_domains for layer in range(problem.workload.num_layers))
    return problem.plan(Placement(domain_of_layer=dealt))


def random(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Draw a contiguous placement: any order of the domains, any split points."""
    num_domains, num_layers = problem.topology.num_domains, problem.workload.num_layers
    order = rng.permutation(num_domains)
    cuts = np.sort(rng.integers(0, num_layers + 1, size=num_domains - 1))
    counts = np.diff([0, *cuts, num_layers])
    return problem.plan(Placement.contiguous(order.tolist(), counts.tolist()))
