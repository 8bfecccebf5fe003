"""MAST: a job goes to one domain if one can hold it, and is not split.

References
----------
.. [1] A. Choudhury et al., "MAST: Global scheduling of ML training across geo-distributed
   datacenters at hyperscale", OSDI'24.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.choice.chains import Order, best_chain, mutual_links, sets_by_mutual_bandwidth
from agents.planners.choice.choosing import best_of, share_out
from des import DEFAULT_SCHEDULE, Placement, Plan, domain_memory


def mast(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Place a job as the fast path of MAST does, when nothing is known of other jobs.

    See `placed`; where no domains hold the job, all take part and it is judged as if it fitted. The
    training is that of one model: nothing changes in it.
    """
    everyone = tuple(range(problem.topology.num_domains))
    found = placed(problem, everyone, (0.0,) * len(everyone))
    return _spread(problem, everyone, problem.schedule) if found is None else found


def placed(
    problem: PlanningProblem, domains: Sequence[int], busy_fractions: Sequence[float]
) -> Plan | None:
    """Let the plans of the domains compete for a job, or of sets of domains if no one holds it.

    Parameters
    ----------
    domains
        Those that may bid.
    busy_fractions
        Share of each domain of the topology that other jobs take.

    Returns
    -------
    Plan or None
        None where even all domains that may bid do not hold the job.

    Notes
    -----
    A domain holds the job if it fits there under one of the schedules to choose from, or else under
    1F1B: whether to split a job is not a matter of the depth of its pipeline. Every domain that
    holds it bids with its best local plan. Over the splits that `Parallelism` knows that is the
    domain as one device, which loses nothing to sharing. Bids compete by the priority of the jobs
    that they pre-empt, which of one job is the same for all; then locality: the share of the layers
    that would have to come from elsewhere; then the load of the domain [1]_. The iteration time
    settles ties only: the scheduler looks at capacity, not at speed.

    A job that no domain holds takes the smallest set that holds it, of these the one with the
    fastest slowest link between any two, in the order of `chains.best_chain`, and layers in
    proportion to speed. A set holds the job if that plan fits.
    """
    bids = [(domain, plan) for domain in domains for plan in _bids(problem, (domain,))]
    if bids:
        ranks = [
            (_share_from_elsewhere(problem, domain), busy_fractions[domain]) for domain, _ in bids
        ]
        best = min(ranks)
        alike = [plan for (_, plan), rank in zip(bids, ranks, strict=True) if rank == best]
        return best_of(problem, alike)
    bandwidth, latency = mutual_links(problem.topology)
    for size in range(2, min(len(domains), problem.workload.num_layers) + 1):
        for members in _sets(problem, bandwidth, domains, size):
            chain = best_chain(bandwidth, latency, members)
            plans = [] if chain is None else _bids(problem, chain)
            if plans:
                return best_of(problem, plans)
    return None


def _sets(
    problem: PlanningProblem, bandwidth: np.ndarray, domains: Sequence[int], size: int
) -> Iterator[Order]:
    """Yield sets of domains that hold the model state, those of the best mutual bandwidth first."""
    state_bytes = problem.workload.state_bytes * math.fsum(problem.workload.num_parameters)
    for positions in sets_by_mutual_bandwidth(bandwidth[np.ix_(domains, domains)], size):
        members = tuple(domains[position] for position in positions)
        if sum(problem.topology.domains[each].memory_bytes for each in members) >= state_bytes:
            yield members


def _share_from_elsewhere(problem: PlanningProblem, domain: int) -> float:
    """Share of the layers that a domain does not hold; 0 before the first plan."""
    if problem.last_plan is None:
        return 0.0
    placements, num_layers = problem.last_plan.placements, problem.workload.num_layers
    num_held = sum(
        any(placement.domain_of_layer[layer] == domain for placement in placements)
        for layer in range(num_layers)
    )
    return 1.0 - num_held / num_layers


def _bids(problem: PlanningProblem, order: Order) -> list[Plan]:
    """Plans over some domains that fit: under the schedules to choose from, or else under 1F1B."""
    plans = [_spread(problem, order, schedule) for schedule in problem.choices]
    fitting = [plan for plan in plans if _fits(problem, plan)]
    if fitting:
        return fitting
    plain = _spread(problem, order, DEFAULT_SCHEDULE)
    return [plain] if _fits(problem, plain) else []


def _spread(problem: PlanningProblem, order: Order, schedule: str) -> Plan:
    speeds = [problem.topology.domains[domain].attainable_flops_per_s for domain in order]
    counts = share_out(problem.workload.num_layers, speeds)
    return problem.plan(Placement.contiguous(order, counts), schedule)


def _fits(problem: PlanningProblem, plan: Plan) -> bool:
    memories = domain_memory(problem.topology, problem.workload, plan)
    return all(memory.fits for memory in memories)
