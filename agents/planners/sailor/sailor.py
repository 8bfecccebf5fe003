"""Sailor's planner: a formula for the iteration time, minimised over stages, domains and layers.

References
----------
.. [1] F. Strati et al., "Sailor: Automating Distributed Training over Dynamic, Heterogeneous, and
   Geo-distributed Clusters", SOSP 2025, arXiv 2504.17096.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.sailor.sailor_lists import (
    Order,
    lists_in_turn,
    no_plan_fits,
    quickest_of,
    standing_still,
)
from agents.planners.sailor.sailor_model import WholeDomains
from agents.planners.sailor.sailor_parallel import search_parallel
from des import Placement, Plan
from des.base.checks import require_count
from des.plan.plan import split_evenly

MOST_LISTS = 4_000
"""Default maximum of ordered lists of domains; over six domains there are 1,956."""

MOST_LISTS_WITH_PARALLELISM = 64
"""The same where GPUs are divided, for each number of stages; over four domains there are 64."""

TIED_FRACTION = 0.05
"""Excess over the least estimate up to which the simulator decides between plans."""

MOST_JUDGED = 16
"""Default maximum of plans that the simulator decides between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SailorFound:
    """Result of Sailor's search.

    Attributes
    ----------
    estimate_s
        Iteration time of the plan by Sailor's own formula, with 1F1B and without queues. [s]
    num_considered
        Ordered lists of domains looked at, once for every number of stages and of replicas.
    is_complete
        Whether these were all there are; else the budget cut the search short.
    """

    plan: Plan
    estimate_s: float
    num_considered: int
    is_complete: bool


def sailor(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Plan as Sailor does, a domain being one device, as it is for all other planners."""
    return sailor_search(problem).plan


def sailor_overlapped(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Plan as Sailor would if its formula knew that messages travel while stages work."""
    return sailor_search(problem, is_overlapped=True).plan


def sailor_with_parallelism(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Plan as Sailor does in full: tensor, data and pipeline parallelism inside the domains."""
    return sailor_search(problem, is_whole_domain=False).plan


def sailor_search(
    problem: PlanningProblem,
    *,
    is_whole_domain: bool = True,
    is_overlapped: bool = False,
    max_lists: int | None = None,
    max_judged: int = MOST_JUDGED,
) -> SailorFound:
    """Minimise Sailor's formula, then let the simulator choose the schedule.

    Parameters
    ----------
    is_whole_domain
        All GPUs of a domain work as one device, whose attainable fraction covers tensor
        parallelism. Without it they are divided, and pay for every exchange.
    is_overlapped
        Messages do not hold up the stages next to them, as in `des` by default, so the
        slowest stage counts without them, or the slowest wire alone. Sailor's runtime blocks, so
        its formula does not have this; whole domains only.
    max_lists
        Ordered lists of domains to look at; None means `MOST_LISTS`, or
        `MOST_LISTS_WITH_PARALLELISM` for each number of stages.
    max_judged
        Plans of about the least estimate that the simulator judges; 1 is the formula alone.

    Raises
    ------
    ValueError
        If messages are to overlap where GPUs are divided.
    InfeasiblePlacementError
        If no plan was found that fits.

    Notes
    -----
    The formula: slowest stage with the message that it sends, activations to the stage behind it or
    gradients to the one before it, whichever is slower, times the microbatches less one; plus the
    sum of all stages and messages; plus the slowest exchange of gradients [1]_. The update is free,
    as it is in `des`. Lists of every size come with the best bottleneck link first, in turn. Over
    the domains of a list the recursion goes from the output to the input: what is best behind a
    stage is chosen by the formula of that part alone, as in [1]_, so it is no exact minimum.

    With whole domains any number of Sailor's stages in a row in one domain are one stage, so its
    stages are single layers and the recursion chooses how many a domain gets. Equal stages, one in
    each domain of a list, are candidates too, as Sailor's own are equal.

    The formula knows 1F1B alone and is a few per cent off, so its least estimates are a tie: of the
    plans within `TIED_FRACTION` of the least, `max_judged` at most, the simulator takes the best
    with the best of the schedules to choose from.
    """
    require_count("sailor", "max_judged", max_judged)
    if max_lists is not None:
        require_count("sailor", "max_lists", max_lists)
    if is_overlapped and not is_whole_domain:
        raise ValueError("sailor: is_overlapped must be False without whole domains, got True")
    still = standing_still(problem)
    if not is_whole_domain:
        most = MOST_LISTS_WITH_PARALLELISM if max_lists is None else max_lists
        candidates, num_considered, is_complete = search_parallel(still, most)
    else:
        most = MOST_LISTS if max_lists is None else max_lists
        candidates, num_considered, is_complete = _search_whole(still, most, is_overlapped)
    chosen = _judge(still, candidates, max_judged)
    if chosen is None:
        raise no_plan_fits(problem, "sailor")
    return SailorFound(
        plan=chosen[1],
        estimate_s=chosen[0],
        num_considered=num_considered,
        is_complete=is_complete,
    )


def _judge(
    problem: PlanningProblem, candidates: Iterable[tuple[float, Plan]], max_judged: int
) -> tuple[float, Plan] | None:
    """Estimate and plan of the quickest of the first candidates that fit; None if none does."""
    chosen: tuple[float, Plan] | None = None
    least_s, quickest_s, num_judged = math.inf, math.inf, 0
    for estimate, plan in candidates:
        if num_judged == max_judged or estimate > (1.0 + TIED_FRACTION) * least_s:
            break
        best = quickest_of(problem, [plan])
        if best is None:
            continue
        num_judged += 1
        least_s = min(least_s, estimate)
        if best[1] < quickest_s:
            quickest_s, chosen = best[1], (estimate, best[0])
    return chosen


def estimate_s(
    problem: PlanningProblem, placement: Placement, *, is_overlapped: bool = False
) -> float:
    """Sailor's formula for a placement with one stage per domain. [s]

    Raises
    ------
    ValueError
        If a domain has more than one stage.
    """
    order = tuple(stage.domain for stage in placement.stages)
    if len(set(order)) < len(order):
        raise ValueError(f"sailor: a placement must have one stage per domain, got {placement}")
    model = WholeDomains(standing_still(problem), is_overlapped=is_overlapped)
    return model.estimate_s(order, [stage.num_layers for stage in placement.stages])


def _search_whole(
    problem: PlanningProblem, max_lists: int, is_overlapped: bool
) -> tuple[list[tuple[float, Plan]], int, bool]:
    """Plans by their estimates, lists looked at, and whether there are no others."""
    model = WholeDomains(problem, is_overlapped=is_overlapped)
    most_stages = min(problem.topology.num_domains, problem.workload.num_layers)
    found: list[tuple[float, int, Order, list[int]]] = []
    count, is_complete = 0, True
    for order in lists_in_turn(model.bandwidths, most_stages):
        if count == max_lists:
            is_complete = False
            break
        count += 1
        best = model.best_split(order)
        if best is None:
            continue
        found.append((best[0], count, order, best[1]))
        even = list(split_evenly(problem.workload.num_layers, len(order)))
        if even != best[1]:
            found.append((model.estimate_s(order, even), count, order, even))
    found.sort()
    plans = [
        (least_s, problem.plan(Placement.contiguous(order, counts)))
        for least_s, _, order, counts in found
    ]
    return plans, count, is_complete
