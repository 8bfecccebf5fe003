"""Order of GPUs in a ring whose slowest hop is as fast as in any other."""

from collections.abc import Sequence

from des.devices.gpus import MOST_GPUS

Hop = tuple[float, float]
"""Bandwidth [bytes/s] and latency [s] between two GPUs."""


def hop_speed(hop: Hop) -> Hop:
    """Key that is larger for the faster of two hops: by bandwidth, then by latency."""
    return hop[0], -hop[1]


def best_ring_order(hops: Sequence[Sequence[Hop]]) -> tuple[int, ...]:
    """Order of a ring over all GPUs, from the first one on.

    Of the rings whose slowest hop is the fastest, the one that goes to the closest GPU first, and
    to the lowest number among equals.

    Parameters
    ----------
    hops
        Square and symmetric; the diagonal is not used.

    Raises
    ------
    ValueError
        If there are more GPUs than orders can be searched for, and they are not all joined alike.

    Examples
    --------
    Two bridged pairs, 0 with 2 and 1 with 3:

    >>> near, far = (80.0, 0.0), (20.0, 0.0)
    >>> best_ring_order([[near, far, near, far], [far, near, far, near]] * 2)
    (0, 2, 1, 3)
    """
    count = len(hops)
    speeds = {hop_speed(hops[one][other]) for one in range(count) for other in range(one)}
    if len(speeds) <= 1:
        return tuple(range(count))
    if count > MOST_GPUS:
        raise ValueError(
            f"ring: there must be at most {MOST_GPUS} GPUs where they are joined by several kinds "
            f"of links, got {count}"
        )
    for slowest in sorted(speeds, reverse=True):
        order = _ring_within(hops, slowest)
        if order is not None:
            return order
    raise AssertionError("the slowest links join all GPUs")


def rings_at_once(num_links: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Links that rings over all GPUs use at once, ring by ring; no link is in two of them.

    Rings are taken off one after the other, the one of most links first, until none is left. GPUs
    that are joined one by one, not at a switch, pass messages round each both ways.

    Parameters
    ----------
    num_links
        Counts of links of every two GPUs, square and symmetric.

    Examples
    --------
    A square of double links with a diagonal has one ring, of two links.

    >>> rings_at_once([[0, 2, 1, 2], [2, 0, 2, 0], [1, 2, 0, 2], [2, 0, 2, 0]])
    (2,)
    """
    left = [list(row) for row in num_links]
    found: list[int] = []
    while True:
        order = best_ring_order([[(float(count), 0.0) for count in row] for row in left])
        pairs = list(zip(order, (*order[1:], order[0]), strict=True))
        least = min(left[one][other] for one, other in pairs)
        if least == 0:
            return tuple(found)
        found.append(least)
        for one, other in pairs:
            left[one][other] -= least
            left[other][one] -= least


def slowest_hop(hops: Sequence[Sequence[Hop]], order: Sequence[int]) -> Hop:
    """Slowest hop of a ring; of two GPUs it goes there and back."""
    onward = (*order[1:], order[0])
    return min((hops[one][other] for one, other in zip(order, onward, strict=True)), key=hop_speed)


def _ring_within(hops: Sequence[Sequence[Hop]], slowest: Hop) -> tuple[int, ...] | None:
    """Ring of hops that are no slower, None without one: depth first, no end visited twice."""
    count = len(hops)
    allowed = [_closest_first(row, one, slowest) for one, row in enumerate(hops)]
    if count > 2 and any(len(near) < 2 for near in allowed):
        return None
    dead: set[tuple[int, int]] = set()  # set of GPUs on the path, and its end

    def onward(path: tuple[int, ...], mask: int) -> tuple[int, ...] | None:
        last = path[-1]
        if len(path) == count:
            return path if 0 in allowed[last] else None
        if (mask, last) in dead:
            return None
        for other in allowed[last]:
            if not mask >> other & 1:
                found = onward((*path, other), mask | 1 << other)
                if found is not None:
                    return found
        dead.add((mask, last))
        return None

    return onward((0,), 1)


def _closest_first(row: Sequence[Hop], one: int, slowest: Hop) -> list[int]:
    """GPUs that a GPU reaches over hops that are no slower, the closest and lowest ones first."""
    near = [
        (-row[other][0], row[other][1], other)
        for other in range(len(row))
        if other != one and hop_speed(row[other]) >= slowest
    ]
    return [other for _, _, other in sorted(near)]
