"""Ordered lists of domains by their bottleneck link, and which of some plans is quickest."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from agents.decision.problem import PlanningProblem
from agents.planners.choice.choosing import quick_simulator
from des import (
    InfeasiblePlacementError,
    Plan,
    Topology,
    UnreachableError,
    domain_memory,
)
from des.costs.feasibility import tightest_domain
from des.costs.message_times import quickest_message_s

Order = tuple[int, ...]
"""Domains from the input to the output, each once."""


def border_bandwidths(topology: Topology) -> np.ndarray:
    """Bandwidth of the slowest link between every two domains, the slower way of both. [bytes/s]

    Shaped (K, K); ``inf`` from a domain to itself, 0 where messages find no way there or back.
    """
    num_domains = topology.num_domains
    one_way = np.full((num_domains, num_domains), np.inf)
    for source in range(num_domains):
        for target in range(num_domains):
            if source == target:
                continue
            try:
                hops = topology.route(source, target)
            except UnreachableError:
                one_way[source, target] = 0.0
                continue
            one_way[source, target] = min(topology.links[hop].bandwidth_bytes_per_s for hop in hops)
    bandwidths: np.ndarray = np.minimum(one_way, one_way.T)
    return bandwidths


def one_way_messages_s(
    problem: PlanningProblem, bandwidths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Time of a message from every domain (row) to every other (column), shaped (K, K). [s]

    No queues are met; ``inf`` where `border_bandwidths` are 0. The second result is the time for
    which the slowest wire of the way is occupied.
    """
    times_s = np.where(bandwidths > 0.0, 0.0, np.inf)
    wires_s = times_s.copy()
    for source, target in np.argwhere(bandwidths > 0.0).tolist():
        if source != target:
            times_s[source, target], wires_s[source, target] = quickest_message_s(
                problem.topology,
                source,
                target,
                problem.workload.message_bytes,
                problem.corrections,
            )
    return times_s, wires_s


def lists_of_size(bandwidths: np.ndarray, size: int) -> Iterator[Order]:
    """Yield all ordered lists of ``size`` domains, that with the best bottleneck link first.

    Lists over domains that do not reach one another both ways are left out.
    """
    num_domains = len(bandwidths)
    most = _best_bottleneck(bandwidths, size)  # clip at the best bottleneck
    heap: list[tuple[float, int, int, Order]] = [
        (-most, -1, domain, (domain,)) for domain in range(num_domains)
    ]
    count = num_domains
    while heap:
        key, _, _, order = heapq.heappop(heap)
        if len(order) == size:
            yield order
            continue
        for domain in range(num_domains):
            bandwidth = float(bandwidths[order[-1], domain])
            if domain not in order and bandwidth > 0.0:
                longer = (*order, domain)
                heapq.heappush(heap, (max(key, -bandwidth), -len(longer), count, longer))
                count += 1


def _best_bottleneck(bandwidths: np.ndarray, size: int) -> float:
    """Largest bandwidth at which ``size`` domains are connected; no list has a better one."""
    if size == 1:
        return np.inf
    for bandwidth in np.unique(bandwidths[np.isfinite(bandwidths)])[::-1].tolist():
        _, part_of = connected_components(bandwidths >= bandwidth, directed=False)
        if np.bincount(part_of).max() >= size:
            return float(bandwidth)
    return 0.0


def lists_in_turn(bandwidths: np.ndarray, most_stages: int) -> Iterator[Order]:
    """Yield the lists of all sizes, a list of each size in turn as long as there are any."""
    sizes = [lists_of_size(bandwidths, size) for size in range(1, most_stages + 1)]
    while sizes:
        still: list[Iterator[Order]] = []
        for lists in sizes:
            order = next(lists, None)
            if order is not None:
                still.append(lists)
                yield order
        sizes = still


def standing_still(problem: PlanningProblem) -> PlanningProblem:
    """Return the problem on links that keep the figures of the topology."""
    return replace(problem, topology=replace(problem.topology, movement=None))


def quickest_of(problem: PlanningProblem, plans: Iterable[Plan]) -> tuple[Plan, float] | None:
    """Judge plans under all schedules to choose from; the best that fits, and its time. [s]

    The schedules of the plans themselves do not count. Of equal plans the first one is kept, under
    the first schedule. None if none fits.
    """
    judge = quick_simulator(problem)
    best: tuple[Plan, float] | None = None
    for plan in plans:
        for schedule in problem.choices:
            candidate = replace(plan, schedule=schedule)
            memory = domain_memory(problem.topology, problem.workload, candidate)
            if not tightest_domain(memory).fits:
                continue
            result = judge(problem.topology, problem.workload, candidate, problem.corrections)
            if best is None or result.makespan_s < best[1]:
                best = candidate, result.makespan_s
    return best


def no_plan_fits(problem: PlanningProblem, name: str) -> InfeasiblePlacementError:
    """Error of a planner that found no plan that fits, naming the job."""
    return InfeasiblePlacementError(
        f"{name}: no plan was found that fits {problem.workload.name} into the memory of "
        f"{problem.topology.num_domains} domains"
    )
