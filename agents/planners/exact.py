"""The fastest contiguous placement, by enumeration with a lower bound."""

from collections.abc import Iterator
from itertools import combinations, pairwise, permutations
from math import comb, perm

import numpy as np

from agents.planners.bounds import lower_bounds_s
from agents.planners.problem import PlanningProblem
from des import InfeasiblePlacementError, Placement, check_memory

MAX_CANDIDATES = 2_000_000
"""More placements than this are refused: the planner is for small cases."""


def exact(problem: PlanningProblem, rng: np.random.Generator) -> Placement:
    """Find the placement of least iteration time among all contiguous ones that fit in memory.

    Every ordered subset of domains and every split is bounded from below (see
    `agents.planners.bounds`); the simulator judges them from the lowest bound up, until no bound is
    below the best time found.

    Raises
    ------
    ValueError
        If there are more than `MAX_CANDIDATES` placements.
    InfeasiblePlacementError
        If none fits in memory.
    """
    num_domains, num_layers = problem.topology.num_domains, problem.workload.num_layers
    num_candidates = num_contiguous_placements(num_domains, num_layers)
    if num_candidates > MAX_CANDIDATES:
        raise ValueError(
            f"exact: must have at most {MAX_CANDIDATES} contiguous placements to compare, got "
            f"{num_candidates} ({num_domains} domains, {num_layers} layers)"
        )
    best, best_s, shortfall = None, np.inf, ""
    for bound_s, placement in _by_lower_bound(problem):
        if bound_s >= best_s:
            break
        try:
            check_memory(problem.topology, problem.workload, problem.plan(placement))
        except InfeasiblePlacementError as error:
            shortfall = shortfall or str(error)
            continue
        makespan_s = problem.simulate(placement).makespan_s
        if makespan_s < best_s:
            best, best_s = placement, makespan_s
    if best is None:
        raise InfeasiblePlacementError(f"exact: no contiguous placement fits; {shortfall}")
    return best


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
            orders.append(order)
            counts.append(splits)
            bounds.append(lower_bounds_s(problem, order, splits))
    all_bounds = np.concatenate(bounds)
    starts = np.cumsum([0, *(len(split) for split in counts)])
    for position in np.argsort(all_bounds, kind="stable"):
        which = int(np.searchsorted(starts, position, side="right")) - 1
        num_each = counts[which][position - starts[which]].tolist()
        yield float(all_bounds[position]), Placement.contiguous(orders[which], num_each)


def _splits(num_layers: int, num_stages: int) -> np.ndarray:
    """All ways to give every stage at least one layer, shaped (ways, num_stages)."""
    cuts = combinations(range(1, num_layers), num_stages - 1)
    ways = [[end - start for start, end in pairwise((0, *cut, num_layers))] for cut in cuts]
    return np.array(ways, dtype=np.int64)
