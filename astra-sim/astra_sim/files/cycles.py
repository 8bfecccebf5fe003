"""Cycles of a dependency graph, without recursion: traces are longer than Python's stack."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping


def dependency_cycles(dependencies: Mapping[int, Collection[int]]) -> list[tuple[int, ...]]:
    """One cycle for each set of nodes that wait for each other.

    Parameters
    ----------
    dependencies
        Nodes and what each of them waits for; what is not a key itself is left out.

    Returns
    -------
    list
        Shortest cycle through the lowest node of each such set, beginning with that node; every
        node waits for the one after it, the last for the first. In ascending order.

    Examples
    --------
    >>> dependency_cycles({1: [2], 2: [3], 3: [1, 2], 4: [3], 7: [7]})
    [(1, 2, 3), (7,)]
    """
    cycles = []
    for component in _strong_components(dependencies):
        lowest = min(component)
        if len(component) > 1 or lowest in dependencies[lowest]:
            cycles.append(_shortest_cycle(dependencies, frozenset(component), lowest))
    return sorted(cycles)


def _strong_components(dependencies: Mapping[int, Collection[int]]) -> Iterator[list[int]]:
    """Sets of nodes that reach each other.

    References
    ----------
    .. [1] R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972.
    """
    number: dict[int, int] = {}  # in the order of discovery
    lowest: dict[int, int] = {}
    opened: list[int] = []
    closed: set[int] = set()
    for root in dependencies:
        path = [] if root in number else [(root, iter(dependencies[root]))]
        while path:
            node, targets = path[-1]
            if node not in number:
                number[node] = lowest[node] = len(number)
                opened.append(node)
            for target in targets:
                if target not in dependencies or target in closed:
                    continue
                if target not in number:
                    path.append((target, iter(dependencies[target])))
                    break
                lowest[node] = min(lowest[node], number[target])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == number[node]:
                    component = [opened.pop()]
                    while component[-1] != node:
                        component.append(opened.pop())
                    closed.update(component)
                    yield component


def _shortest_cycle(
    dependencies: Mapping[int, Collection[int]], within: frozenset[int], start: int
) -> tuple[int, ...]:
    """Breadth first from ``start`` back to it."""
    reached_from: dict[int, int] = {}
    waiting = deque([start])
    while start not in reached_from:
        node = waiting.popleft()
        for target in sorted(within.intersection(dependencies[node])):
            if target not in reached_from:
                reached_from[target] = node
                waiting.append(target)
    cycle = [start]
    while reached_from[cycle[-1]] != start:
        cycle.append(reached_from[cycle[-1]])
    return (start, *reversed(cycle[1:]))
