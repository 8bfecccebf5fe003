"""Scheduling by the cost of messages: groups of domains by a genetic algorithm, then paths.

References
----------
.. [1] B. Yuan et al., "Decentralized training of foundation models in heterogeneous environments",
   NeurIPS 2022, arXiv 2206.01288.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.dtfm.dtfm_costs import Costs, Group
from agents.planners.sailor.sailor_lists import no_plan_fits, quickest_of, standing_still
from des import Placement, Plan
from des.base.checks import require_count
from des.plan.plan import split_evenly

NUM_INDIVIDUALS, NUM_TRIALS = 20, 50
"""Default budget for each shape."""

FULL_NUM_INDIVIDUALS, FULL_NUM_TRIALS = 100, 4_900
"""The budget of the authors."""

MOST_STAGES = 12
"""Paths over more groups are not looked at: the shortest is found over all sets of groups."""

Groups = tuple[Group, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DtfmFound:
    """Result of DT-FM's search.

    Attributes
    ----------
    cost_s
        Cost of messages of the plan, by which its groups were chosen. [s]
    num_stages, num_replicas
        Its shape.
    num_individuals, num_trials
        Budget that each shape got.
    """

    plan: Plan
    cost_s: float
    num_stages: int
    num_replicas: int
    num_individuals: int
    num_trials: int


def dtfm(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Plan by `dtfm_search` with its usual budget."""
    return dtfm_search(problem, rng).plan


def dtfm_search(
    problem: PlanningProblem,
    rng: np.random.Generator,
    *,
    num_individuals: int = NUM_INDIVIDUALS,
    num_trials: int = NUM_TRIALS,
) -> DtfmFound:
    """Find the groups of least cost for each number of stages and replicas; keep the quickest plan.

    Devices are whole domains, whose attainable fraction covers the parallelism inside: a domain
    serves one replica in `des`. A group holds the same layers, one domain a replica; a domain that
    is in no group stands idle.

    Parameters
    ----------
    num_individuals
        Groupings that are kept, for each shape.
    num_trials
        Groupings that are made of two others and improved, for each shape.

    Raises
    ------
    InfeasiblePlacementError
        If no plan was found that fits.

    Notes
    -----
    The cost of a grouping is the exchange of gradients of its worst group, and the shortest path
    over the groups, there and back [1]_. A domain exchanges a part of its gradients with every
    other one of its group, both ways. An edge of the path is the slowest border of the pairing of
    two groups whose slowest is quickest, with all microbatches of a replica as one message.

    A grouping is made of two: each domain has the group of the first or of the second, and what is
    too much in a group goes where there is room. Then two domains of different groups change
    places as long as that helps. It replaces the worst of those kept if it is better than that.

    The cost knows no computing, so the simulator chooses among the shapes, and between even layers,
    as in [1]_, and layers in proportion to the slowest domain of each group. It chooses the
    schedule too.
    """
    require_count("dtfm", "num_individuals", num_individuals)
    require_count("dtfm", "num_trials", num_trials)
    still = standing_still(problem)
    best: tuple[float, DtfmFound] | None = None
    for num_stages, num_replicas in _shapes(still):
        costs = Costs(still, num_stages, num_replicas)
        groups = best_groups(still.topology.num_domains, costs, rng, num_individuals, num_trials)
        cost_s = costs.total_s(groups)
        if not np.isfinite(cost_s):
            continue
        quickest = quickest_of(still, _plans(still, costs, groups))
        if quickest is not None and (best is None or quickest[1] < best[0]):
            found = DtfmFound(
                plan=quickest[0],
                cost_s=cost_s,
                num_stages=num_stages,
                num_replicas=num_replicas,
                num_individuals=num_individuals,
                num_trials=num_trials,
            )
            best = quickest[1], found
    if best is None:
        raise no_plan_fits(problem, "dtfm")
    return best[1]


def _shapes(problem: PlanningProblem) -> Iterator[tuple[int, int]]:
    """Stages and replicas that the domains, layers and microbatches allow."""
    num_domains, workload = problem.topology.num_domains, problem.workload
    for num_stages in range(1, min(num_domains, workload.num_layers, MOST_STAGES) + 1):
        for num_replicas in range(1, num_domains // num_stages + 1):
            if num_replicas <= workload.num_microbatches:
                yield num_stages, num_replicas


def best_groups(
    num_domains: int,
    costs: Costs,
    rng: np.random.Generator,
    num_individuals: int,
    num_trials: int,
) -> Groups:
    """Grouping of least cost that the budget finds."""
    kept = []
    for _ in range(num_individuals):
        groups = _improve(_drawn(rng.permutation(num_domains), costs), num_domains, costs)
        kept.append(groups)
    kept.sort(key=costs.total_s)
    for _ in range(num_trials):
        one, other = (kept[each] for each in rng.integers(len(kept), size=2).tolist())
        child = _improve(_child(one, other, num_domains, costs, rng), num_domains, costs)
        if child not in kept and costs.total_s(child) < costs.total_s(kept[-1]):
            kept[-1] = child
            kept.sort(key=costs.total_s)
    return kept[0]


def _drawn(order: np.ndarray, costs: Costs) -> Groups:
    """Cut an order of the domains into groups; what is left over is in none."""
    size = costs.num_replicas
    parts = [order[size * stage : size * (stage + 1)] for stage in range(costs.num_stages)]
    return _sort(parts)


def _sort(groups: "list[np.ndarray] | list[list[int]]") -> Groups:
    return tuple(sorted(tuple(sorted(int(domain) for domain in group)) for group in groups))


def _child(
    one: Groups, other: Groups, num_domains: int, costs: Costs, rng: np.random.Generator
) -> Groups:
    """Mix two groupings, see `dtfm_search`; groups are matched in the order of their domains."""
    rooms = [costs.num_replicas] * costs.num_stages
    rooms.append(num_domains - sum(rooms))  # of the domains in no group
    members: list[list[int]] = [[] for _ in rooms]
    homes = [_homes(groups, num_domains) for groups in (one, other)]
    which = rng.integers(2, size=num_domains)
    left = []
    for domain in rng.permutation(num_domains).tolist():
        home = homes[which[domain]][domain]
        if len(members[home]) < rooms[home]:
            members[home].append(domain)
        else:
            left.append(domain)
    for domain in left:
        home = next(each for each, room in enumerate(rooms) if len(members[each]) < room)
        members[home].append(domain)
    return _sort(members[:-1])


def _homes(groups: Groups, num_domains: int) -> list[int]:
    """Group of every domain; that after the last one for those in none."""
    homes = [len(groups)] * num_domains
    for position, group in enumerate(groups):
        for domain in group:
            homes[domain] = position
    return homes


def _improve(groups: Groups, num_domains: int, costs: Costs) -> Groups:
    """Let two domains of different groups change places, the best pair first, while it helps."""
    cost_s = costs.total_s(groups)
    while True:
        homes = _homes(groups, num_domains)
        best: Groups | None = None
        for one in range(num_domains):
            for other in range(one + 1, num_domains):
                if homes[one] == homes[other]:
                    continue
                swapped = _swap(groups, one, other)
                if costs.total_s(swapped) < cost_s:
                    best, cost_s = swapped, costs.total_s(swapped)
        if best is None:
            return groups
        groups = best


def _swap(groups: Groups, one: int, other: int) -> Groups:
    place = {one: other, other: one}
    return _sort([[place.get(domain, domain) for domain in group] for group in groups])


def _plans(problem: PlanningProblem, costs: Costs, groups: Groups) -> list[Plan]:
    """Pipelines along the path, a domain of each group, with layers even and in proportion."""
    _, path = costs.best_path(groups)
    columns = [groups[path[0]]]
    for position in path[1:]:
        before = columns[-1]
        ranked = sorted(before)
        _, partners = costs.matching(tuple(ranked), groups[position])
        partner_of = dict(zip(ranked, partners, strict=True))
        columns.append(tuple(partner_of[domain] for domain in before))
    domains = problem.topology.domains
    slowest = [
        min(domains[domain].attainable_flops_per_s for domain in column) for column in columns
    ]
    num_layers = problem.workload.num_layers
    plans = []
    for counts in (split_evenly(num_layers, len(columns)), _in_proportion(slowest, num_layers)):
        for way in (1, -1):  # a path has no direction
            pipelines = [
                Placement.contiguous(order[::way], counts[::way])
                for order in zip(*columns, strict=True)
            ]
            plans.append(replace(problem.plan(pipelines[0]), replicas=tuple(pipelines[1:])))
    return plans


def _in_proportion(speeds: list[float], num_layers: int) -> tuple[int, ...]:
    """Split layers by speeds, a layer at least each; what is over goes where it is done first."""
    counts = [1] * len(speeds)
    for _ in range(num_layers - len(speeds)):
        stage = min(range(len(speeds)), key=lambda each: (counts[each] + 1) / speeds[each])
        counts[stage] += 1
    return tuple(counts)
