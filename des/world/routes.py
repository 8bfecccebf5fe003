"""Routes of messages where no direct link joins two domains."""

from collections import defaultdict
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush


@lru_cache(maxsize=4096)
def lowest_latency_path(
    hops: tuple[tuple[int, int], ...], latencies_s: tuple[float, ...], source: int, target: int
) -> tuple[int, ...] | None:
    """Domains on the way from one to another, or None; exact arithmetic makes ties real ties."""
    onward, back = defaultdict[int, dict[int, int]](dict), defaultdict[int, dict[int, int]](dict)
    for (start, end), latency_s in zip(hops, latencies_s, strict=True):
        # Whole numbers: a double times 2**1074 is one, and a hop counts less than any latency.
        units = int(Fraction(latency_s) * 2**1074) * 2**32 + 1
        onward[start][end] = back[end][start] = units
    to_target: dict[int, int] = {}
    waiting = [(0, target)]
    while waiting:
        units, here = heappop(waiting)
        if here not in to_target:
            to_target[here] = units
            for start, hop in back[here].items():
                heappush(waiting, (units + hop, start))
    if source not in to_target or not (onward[source] or back[source]):
        return None
    path = [source]
    while path[-1] != target:
        here = path[-1]
        ways = onward[here].items()
        path.append(
            min(end for end, hop in ways if to_target.get(end, -1) + hop == to_target[here])
        )
    return tuple(path)
