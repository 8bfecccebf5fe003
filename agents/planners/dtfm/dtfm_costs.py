"""Message cost of a grouping of domains: gradients inside groups, activations between them."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from agents.decision.problem import PlanningProblem
from des import UnreachableError
from des.costs.message_times import quickest_message_s
from des.plan.plan import split_evenly

Group = tuple[int, ...]
"""Domains that hold the same layers, one per replica, in rising order."""


def message_times_s(problem: PlanningProblem, num_bytes: float) -> np.ndarray:
    """Time of a message there and one back between every two domains, shaped (K, K). [s]

    0 from a domain to itself, ``inf`` where nothing leads there or back.
    """
    num_domains = problem.topology.num_domains
    times_s = np.zeros((num_domains, num_domains))
    for source in range(num_domains):
        for target in range(num_domains):
            if source == target:
                continue
            try:
                times_s[source, target] = quickest_message_s(
                    problem.topology, source, target, num_bytes, problem.corrections
                )[0]
            except UnreachableError:
                times_s[source, target] = np.inf
    both: np.ndarray = times_s + times_s.T
    return both


class Costs:
    """Costs of groupings into ``num_stages`` groups of ``num_replicas`` domains, remembered."""

    def __init__(self, problem: PlanningProblem, num_stages: int, num_replicas: int) -> None:
        workload = problem.workload
        self.num_stages, self.num_replicas = num_stages, num_replicas
        counts = split_evenly(workload.num_layers, num_stages)
        ends = np.cumsum(counts)
        before = np.array(workload.sums_before.num_parameters)
        most_parameters = float(np.max(before[ends] - before[ends - np.array(counts)]))
        self._part_s = message_times_s(
            problem, workload.gradient_bytes * most_parameters / num_replicas
        )
        share = split_evenly(workload.num_microbatches, num_replicas)[0]
        self._stream_s = message_times_s(problem, share * workload.message_bytes)
        self._matchings: dict[tuple[Group, Group], tuple[float, tuple[int, ...]]] = {}
        self._totals: dict[tuple[Group, ...], float] = {}

    def total_s(self, groups: tuple[Group, ...]) -> float:
        """Worst group's exchange of gradients, and the best path there and back. [s]"""
        if groups not in self._totals:
            exchange_s = max(self.exchange_s(group) for group in groups)
            self._totals[groups] = exchange_s + self.best_path(groups)[0]
        return self._totals[groups]

    def exchange_s(self, group: Group) -> float:
        """Time of the domain that exchanges its gradients slowest: a part with every other. [s]"""
        rows = self._part_s[np.ix_(group, group)]
        return float(rows.sum(axis=1).max())

    def matching(self, one: Group, other: Group) -> tuple[float, tuple[int, ...]]:
        """Slowest border of the best pairing of two groups, and the partners of the first. [s]"""
        if (one, other) not in self._matchings:
            times_s = self._stream_s[np.ix_(one, other)]
            slowest_s, partners = bottleneck_matching(times_s)
            self._matchings[one, other] = slowest_s, tuple(other[each] for each in partners)
        return self._matchings[one, other]

    def best_path(self, groups: Sequence[Group]) -> tuple[float, tuple[int, ...]]:
        """Shortest path over all groups, by their positions; there and back. [s]"""
        edges = np.zeros((len(groups), len(groups)))
        for here, one in enumerate(groups):
            for there, other in enumerate(groups):
                if here < there:
                    edges[here, there] = edges[there, here] = self.matching(one, other)[0]
        return shortest_path(edges)


def bottleneck_matching(costs: np.ndarray) -> tuple[float, tuple[int, ...]]:
    """Pair rows with columns so that the largest cost is least; returns it and the columns.

    By halving over the costs: a threshold is high enough where rows and columns pair up without
    going above it. Of the pairings at the threshold that of least sum is taken.

    Examples
    --------
    >>> bottleneck_matching(np.array([[1.0, 4.0], [2.0, 9.0]]))
    (4.0, (1, 0))
    """
    levels = np.unique(costs)
    low, high = 0, len(levels) - 1
    while low < high:
        middle = (low + high) // 2
        above = costs > levels[middle]
        rows, columns = linear_sum_assignment(above)
        if above[rows, columns].any():
            low = middle + 1
        else:
            high = middle
    level = float(levels[low])
    if not np.isfinite(level):
        return level, tuple(range(len(costs)))
    finite = costs[np.isfinite(costs)]
    barred = np.where(costs <= level, costs, len(costs) * (1.0 + 2.0 * float(finite.max())))
    _, columns = linear_sum_assignment(barred)
    return level, tuple(columns.tolist())


def shortest_path(edges: np.ndarray) -> tuple[float, tuple[int, ...]]:
    """Shortest path that visits every node once, with any ends, by dynamic programming.

    Over sets of nodes and the last of them, so it is for about a dozen nodes.

    Examples
    --------
    >>> shortest_path(np.array([[0.0, 5.0, 1.0], [5.0, 0.0, 2.0], [1.0, 2.0, 0.0]]))
    (3.0, (1, 2, 0))
    """
    num_nodes = len(edges)
    best = np.full((2**num_nodes, num_nodes), np.inf)
    before = np.zeros((2**num_nodes, num_nodes), dtype=np.int64)
    for node in range(num_nodes):
        best[1 << node, node] = 0.0
    for visited in range(1, 2**num_nodes):
        inside = [node for node in range(num_nodes) if visited >> node & 1]
        if len(inside) < 2:
            continue
        others = np.array([visited ^ (1 << node) for node in inside])
        lengths = best[others] + edges[:, inside].T
        before[visited, inside] = lengths.argmin(axis=1)
        best[visited, inside] = lengths.min(axis=1)
    visited = 2**num_nodes - 1
    node = int(best[visited].argmin())
    length = float(best[visited, node])
    path = [node]
    while len(path) < num_nodes:
        visited, node = visited ^ (1 << node), int(before[visited, node])
        path.append(node)
    return length, tuple(reversed(path))
