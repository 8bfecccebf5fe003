"""The fastest contiguous placement, by enumeration with a lower bound."""

from collections.abc import Iterator
from itertools import combinations, pairwise, permutations
from math import comb, perm

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.decision.simulator import Simulator
from agents.planners.exact.bounds import lower_bounds_s
from des import (
    DomainMemory,
    InfeasiblePlacementError,
    Placement,
    Plan,
    UnreachableError,
    domain_memory,
    simulate,
)
from des.compiled.simulate import simulate_compiled
from des.costs.feasibility import tightest_domain

MOST_WITH_BOUNDS = 2_000_000
"""More placements than this are refused: the planner is for small cases."""

MOST_WITHOUT_BOUNDS = 50_000
"""The same where no bound spares a simulation."""


def exact(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Find the plan of least iteration time among contiguous placements that fit in memory.

    Every ordered subset of domains and every split is bounded from below (see
    `agents.planners.exact.bounds`); the simulator judges them from the lowest bound up, until no
    bound is
    below the best time found. The bounds are those of `des.simulate`: under any other simulator all
    placements are judged. Where links move within an iteration it sees how, as no policy can.

    Raises
    ------
    ValueError
        If there are more placements than `most_placements` of the simulator.
    InfeasiblePlacementError
        If none fits in memory.
    """
    num_domains, num_layers = problem.topology.num_domains, problem.workload.num_layers
    num_placements = num_contiguous_placements(num_domains, num_layers)
    most = most_placements(problem.simulator)
    if num_placements > most:
        raise ValueError(
            f"exact: must have at most {most} contiguous placements to compare, got "
            f"{num_placements} ({num_domains} domains, {num_layers} layers)"
        )
    best, best_s = None, np.inf
    nearest: DomainMemory | None = None
    for bound_s, placement in _by_lower_bound(problem):
        if bound_s >= best_s:
            break
        plan = problem.plan(placement)
        tightest = tightest_domain(domain_memory(problem.topology, problem.workload, plan))
        if not tightest.fits:
            if nearest is None or tightest.overflow_fraction < nearest.overflow_fraction:
                nearest = tightest
            continue
        makespan_s = problem.makespan_s(plan)
        if makespan_s < best_s:
            best, best_s = plan, makespan_s
    if best is None:
        raise InfeasiblePlacementError(f"exact: no contiguous placement fits; at best, {nearest}")
    return best


def most_placements(simulator: Simulator) -> int:
    """Most placements to enumerate: fewer where the simulator has to judge every one."""
    return MOST_WITH_BOUNDS if _has_bounds(simulator) else MOST_WITHOUT_BOUNDS


def _has_bounds(simulator: Simulator) -> bool:
    return simulator in (simulate, simulate_compiled)


def num_contiguous_placements(num_domains: int, num_layers: int) -> int:
    """Count the ordered subsets of domains times the ways to split the layers over each.

    Examples
    --------
    >>> num_contiguous_placements(2, 3)  # two with one domain, 2 orders x 2 splits with both
    6
    """
    return sum(
        perm(num_domains, size) * comb(num_layers - 1, size - 1)
        for size in range(1, min(num_domains, num_layers) + 1)
    )


def _by_lower_bound(problem: PlanningProblem) -> Iterator[tuple[float, Placement]]:
    """Yield all contiguous placements with their bound, lowest bound first."""
    num_domains, num_layers = problem.topology.num_domains, problem.workload.num_layers
    orders: list[tuple[int, ...]] = []
    counts: list[np.ndarray] = []
    bounds: list[np.ndarray] = []
    for size in range(1, min(num_domains, num_layers) + 1):
        splits = _splits(num_layers, size)
        for order in permutations(range(num_domains), size):
            try:
                order_bounds = _bounds_s(problem, order, splits)
            except UnreachableError:
                continue
            orders.append(order)
            counts.append(splits)
            bounds.append(order_bounds)
    all_bounds = np.concatenate(bounds)
    starts = np.cumsum([0, *(len(split) for split in counts)])
    for position in np.argsort(all_bounds, kind="stable"):
        which = int(np.searchsorted(starts, position, side="right")) - 1
        num_each = counts[which][position - starts[which]].tolist()
        yield float(all_bounds[position]), Placement.contiguous(orders[which], num_each)


def _bounds_s(problem: PlanningProblem, order: tuple[int, ...], splits: np.ndarray) -> np.ndarray:
    """Lower bounds where they are known to hold; 0 is one for any simulator."""
    if _has_bounds(problem.simulator):
        return lower_bounds_s(problem, order, splits)
    for here, there in pairwise(order):
        problem.topology.route(here, there)
        problem.topology.route(there, here)
    return np.zeros(len(splits))


def _splits(num_layers: int, num_stages: int) -> np.ndarray:
    """All ways to give every stage at least one layer, shaped (ways, num_stages)."""
    cuts = combinations(range(1, num_layers), num_stages - 1)
    ways = [[end - start for start, end in pairwise((0, *cut, num_layers))] for cut in cuts]
    return np.array(ways, dtype=np.int64)
