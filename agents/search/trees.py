"""Trees along which groups of domains sum up gradients: good ones, and about how long they take."""

from typing import NamedTuple

import numpy as np

from des.compiled.many.layout import Real

_Edges = list[list[float]]
"""Times from every group to every other. [s]"""


class Tree(NamedTuple):
    """Groups from the root down, the place above each but the first, and about how long. [s]"""

    order: tuple[int, ...]
    above: tuple[int, ...]
    exchange_s: float


def best_tree(cost_s: Real, latency_s: Real, num_chunks: int) -> Tree:
    """Return the quickest of the shortest-path and the widest trees of all roots.

    A chunk goes up the longest path and down again, and the slowest link passes all others behind
    it; ways of different links do not delay each other.

    Parameters
    ----------
    cost_s, latency_s
        Of all bytes from the group of a row to that of a column, (R, R). [s]

    Examples
    --------
    >>> far = np.array([[0.0, 2.0, 2.0], [2.0, 0.0, 9.0], [2.0, 9.0, 0.0]])
    >>> best_tree(far, np.zeros((3, 3)), 1)
    Tree(order=(0, 1, 2), above=(0, 0), exchange_s=4.0)
    """
    chunks_s = cost_s / num_chunks
    hops_s = chunks_s + latency_s
    hop_s: _Edges = hops_s.tolist()
    both_s: _Edges = (hops_s + hops_s.T).tolist()
    slower_s: _Edges = np.maximum(chunks_s, chunks_s.T).tolist()
    found = []
    for root in range(len(cost_s)):
        for is_widest in (False, True):
            order, above = _grow(slower_s if is_widest else both_s, root, is_widest)
            up_s, down_s, slowest_s = [0.0], [0.0], 0.0
            for group, place in zip(order[1:], above, strict=True):
                parent = order[place]
                up_s.append(up_s[place] + hop_s[group][parent])
                down_s.append(down_s[place] + hop_s[parent][group])
                slowest_s = max(slowest_s, slower_s[group][parent])
            time_s = max(up_s) + max(down_s) + (num_chunks - 1) * slowest_s
            found.append(Tree(order, above, time_s))
    return min(found, key=lambda one: one.exchange_s)


def _grow(edge_s: _Edges, root: int, is_widest: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Grow a tree by the nearest group: by the sum of its path, or by its last edge alone."""
    order, above = [root], []
    nearest_s, place_of = edge_s[root].copy(), [0] * len(edge_s)
    left = [group for group in range(len(edge_s)) if group != root]
    while left:
        group = min(left, key=nearest_s.__getitem__)
        left.remove(group)
        before_s = 0.0 if is_widest else nearest_s[group]
        above.append(place_of[group])
        order.append(group)
        for other in left:
            through_s = before_s + edge_s[group][other]
            if through_s < nearest_s[other]:
                nearest_s[other], place_of[other] = through_s, len(order) - 1
    return tuple(order), tuple(above)
