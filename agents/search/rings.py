"""Rings of copies of the model: the one whose slowest edge is quickest."""

from itertools import permutations

import numpy as np

from des.base.jit import lean_kernel
from des.compiled.many.layout import Real

_MOST_FOR_ALL_RINGS = 6
"""Most copies of which all rings are looked at: 120."""


def quickest_ring(step_s: Real) -> tuple[int, ...]:
    """Ring whose slowest edge is quickest: of a few copies the best, of more a grown one."""
    count = len(step_s)
    if count <= _MOST_FOR_ALL_RINGS:
        rings = [(0, *rest) for rest in permutations(range(1, count))]
        edges_s = step_s.tolist()
        return min(rings, key=lambda ring: _ring_key(edges_s, ring))
    found = []
    for start in range(count):
        order = np.empty(count)
        found.append((grow_ring(step_s, count, start, order), order))
    best = min(found, key=lambda each: each[0])[1]
    return tuple(best.astype(int).tolist())


def _ring_key(step_s: list[list[float]], ring: tuple[int, ...]) -> tuple[float, float]:
    steps = [step_s[here][there] for here, there in zip(ring, ring[1:] + ring[:1], strict=True)]
    return max(steps), sum(steps)


@lean_kernel
def grow_ring(step_s: Real, size: int, start: int, order: Real) -> tuple[float, float]:
    """Grow a ring by the nearest copy; returns its slowest edge and the sum of all. [s]

    ``order`` (R,) is overwritten by the copies in turn.
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
