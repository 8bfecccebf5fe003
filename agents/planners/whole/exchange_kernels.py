"""Times of exchanges between groups of domains, of many partitions at once."""

import math
from typing import NamedTuple

from des.base.jit import lean_kernel
from des.compiled.many.layout import Real, Whole
from des.compiled.many.steady import Plans

MOST_FOR_ALL_RINGS = 6
"""Most groups of which all rings are looked at: 120."""


class GradientWays(NamedTuple):
    """Times of gradients of L layers from domain to domain, of K.

    Attributes
    ----------
    s_per_byte, flight_s
        Of a byte a parameter, and latency, from the domain of a row to that of a column, (K, K).
    parameters_before
        Of all layers before one, (L + 1,).
    """

    s_per_byte: Real
    flight_s: Real
    parameters_before: Real


@lean_kernel
def write_edges(
    ways: GradientWays, plans: Plans, rows: Whole, cost_s: Real, latency_s: Real
) -> None:
    """Write what a byte a parameter takes from every group to every other, and its latency. [s]

    Layers that two groups hold in the same two domains pass together; the slowest pair counts.

    Parameters
    ----------
    rows
        Pipelines of the groups in ``plans``, (R,).
    cost_s, latency_s
        From the group of a row to that of a column, at least (R, R). [s]
    """
    for one in range(rows.size):
        for other in range(rows.size):
            cost_s[one, other] = latency_s[one, other] = 0.0
            if one == other:
                continue
            here, there, begin = 0, 0, 0
            while here < plans.num_stages[rows[one]] and there < plans.num_stages[rows[other]]:
                ends = plans.end_layer[rows[one], here], plans.end_layer[rows[other], there]
                end = min(ends[0], ends[1])
                passed = ways.parameters_before[end] - ways.parameters_before[begin]
                if passed > 0.0:
                    source = plans.domain[rows[one], here]
                    target = plans.domain[rows[other], there]
                    byte_s = passed * ways.s_per_byte[source, target]
                    cost_s[one, other] = max(cost_s[one, other], byte_s)
                    own_s = ways.flight_s[source, target]
                    latency_s[one, other] = max(latency_s[one, other], own_s)
                begin = end
                here += ends[0] == end
                there += ends[1] == end


@lean_kernel
def exchanges_s(
    ways: GradientWays,
    plans: Plans,
    rows: Whole,
    sizes: Whole,
    num_chunks: int,
    room: Real,
    ring_s: Real,
    star_s: Real,
) -> None:
    """Write times of the best ring and of a good tree of partitions of at most R groups. [s]

    Parameters
    ----------
    rows
        Pipelines of the groups of each partition in ``plans``, (N, R).
    sizes
        How many groups each has, (N,).
    room
        For edges and for rings, (4, R, R), or (4, 32, 5) if that is more.
    """
    cost_s, latency_s, step_s, best_s = room
    for partition in range(sizes.size):
        size = sizes[partition]
        own = rows[partition, :size]
        write_edges(ways, plans, own, cost_s, latency_s)
        for one in range(size):
            for other in range(size):
                step_s[one, other] = cost_s[one, other] / size + latency_s[one, other]
        if size <= MOST_FOR_ALL_RINGS:
            slowest_s = _quickest_ring_s(step_s, size, best_s)
        else:
            slowest_s = math.inf
            for start in range(size):
                slowest_s = min(slowest_s, grown_ring(step_s, size, start, best_s[0])[0])
        ring_s[partition] = 2 * (size - 1) * slowest_s
        tree_s = widest_tree_s(cost_s, latency_s, size, num_chunks, best_s[0])
        star_s[partition] = min(tree_s, best_star_s(cost_s, latency_s, size, num_chunks))


@lean_kernel
def _quickest_ring_s(step_s: Real, size: int, best_s: Real) -> float:
    """Slowest edge of the ring of R groups whose slowest edge is quickest. [s]

    ``best_s`` has the slowest edge of the best way from the first group through a set of others to
    one of them.
    """
    least_s = math.inf
    for others in range(1, 1 << (size - 1)):
        for last in range(size - 1):
            if not others >> last & 1:
                continue
            rest = others & ~(1 << last)
            found_s = step_s[0, last + 1] if rest == 0 else math.inf
            for before in range(size - 1):
                if rest >> before & 1:
                    edge_s = max(best_s[rest, before], step_s[before + 1, last + 1])
                    found_s = min(found_s, edge_s)
            best_s[others, last] = found_s
            if others == (1 << (size - 1)) - 1:
                least_s = min(least_s, max(found_s, step_s[last + 1, 0]))
    return least_s


@lean_kernel
def grown_ring(step_s: Real, size: int, start: int, order: Real) -> tuple[float, float]:
    """Grow a ring by the nearest group; returns its slowest edge and the sum of all. [s]

    ``order`` (R,) is overwritten by the groups in turn.
    """
    for place in range(size):
        order[place] = place
    order[0], order[start] = start, 0
    slowest_s = total_s = 0.0
    for place in range(1, size):
        here, nearest = int(order[place - 1]), place
        for other in range(place + 1, size):
            edge_s = step_s[here, int(order[other])]
            best_s = step_s[here, int(order[nearest])]
            if edge_s < best_s or (edge_s == best_s and order[other] < order[nearest]):
                nearest = other
        order[place], order[nearest] = order[nearest], order[place]
        edge_s = step_s[here, int(order[place])]
        slowest_s, total_s = max(slowest_s, edge_s), total_s + edge_s
    edge_s = step_s[int(order[size - 1]), start]
    return max(slowest_s, edge_s), total_s + edge_s


@lean_kernel
def best_star_s(cost_s: Real, latency_s: Real, size: int, num_chunks: int) -> float:
    """Time of the quickest tree of R groups whose root has all others below it. [s]

    A chunk goes up the longest way and down again, and the slowest link passes all others behind
    it, as in `agents.planners.whole.trees.best_tree`.
    """
    least_s = math.inf
    for root in range(size):
        up_s = down_s = slowest_s = 0.0
        for other in range(size):
            to_s, from_s = cost_s[other, root] / num_chunks, cost_s[root, other] / num_chunks
            up_s = max(up_s, to_s + latency_s[other, root])
            down_s = max(down_s, from_s + latency_s[root, other])
            slowest_s = max(slowest_s, to_s, from_s)
        least_s = min(least_s, up_s + down_s + (num_chunks - 1) * slowest_s)
    return least_s


@lean_kernel
def widest_tree_s(
    cost_s: Real, latency_s: Real, size: int, num_chunks: int, nearest_s: Real
) -> float:
    """About the time of the tree of R groups whose slowest link is quickest. [s]

    The slowest link passes all chunks, the first of which goes up two links and down again.
    ``nearest_s`` (R,) is overwritten: edges from what has grown of the tree, by the nearest group.
    """
    slowest_s = hop_s = 0.0
    for other in range(1, size):
        nearest_s[other] = max(cost_s[0, other], cost_s[other, 0])
    for _ in range(1, size):
        nearest, least_s = 0, math.inf
        for other in range(1, size):
            if 0.0 <= nearest_s[other] < least_s:
                nearest, least_s = other, nearest_s[other]
        if nearest == 0:
            return math.inf
        slowest_s = max(slowest_s, least_s)
        nearest_s[nearest] = -1.0
        way_s = math.inf
        for other in range(size):
            edge_s = max(cost_s[nearest, other], cost_s[other, nearest])
            if other == 0 or nearest_s[other] == -1.0:
                if other != nearest:
                    way_s = min(way_s, latency_s[nearest, other])
            else:
                nearest_s[other] = min(nearest_s[other], edge_s)
        hop_s = max(hop_s, way_s)
    return (num_chunks - 1) * slowest_s / num_chunks + 4.0 * (slowest_s / num_chunks + hop_s)
