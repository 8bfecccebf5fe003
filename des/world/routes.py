"""Routes of messages where no direct link joins two domains."""

from fractions import Fraction
from functools import lru_cache

from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    import networkx as nx


@lru_cache(maxsize=4096)
def lowest_latency_path(
    hops: tuple[tuple[int, int], ...], latencies_s: tuple[float, ...], source: int, target: int
) -> tuple[int, ...] | None:
    """Domains on the way from one to another, or None; exact arithmetic makes ties real ties."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    for (start, end), latency_s in zip(hops, latencies_s, strict=True):
        # Whole numbers: a double times 2**1074 is one, and a hop counts less than any latency.
        units = int(Fraction(latency_s) * 2**1074)
        graph.add_edge(start, end, weight=units * 2**32 + 1)
    if source not in graph or target not in graph:
        return None
    to_target = nx.single_source_dijkstra_path_length(graph.reverse(copy=False), target)
    if source not in to_target:
        return None
    path = [source]
    while path[-1] != target:
        here = path[-1]
        onward = (
            there
            for there, edge in graph[here].items()
            if there in to_target and to_target[here] == edge["weight"] + to_target[there]
        )
        path.append(min(onward))
    return tuple(path)
