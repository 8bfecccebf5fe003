"""Course of the nodes: joins and changes at given times, and failures and repairs by a law."""

import math
from heapq import heappop, heappush
from typing import NamedTuple

from des.cluster.node_set import ChangeKind
from des.cluster.world import World
from des.dynamics.law import Path


class _NodeAsLink(NamedTuple):
    """A node as a law of links sees it."""

    source: str
    target: str
    bandwidth_bytes_per_s: float = 1.0
    latency_s: float = 0.0


class NodeCourse:
    """Changes of all nodes in order of time, equal times by node."""

    def __init__(self, world: World, seed: int) -> None:
        self._due: list[tuple[float, int, int, ChangeKind]] = []
        nodes = world.nodes.nodes
        for position, node in enumerate(nodes):
            heappush(self._due, (node.joins_at_s, position, 0, "join"))
        for number, change in enumerate(world.changes):
            heappush(self._due, (change.time_s, change.node, 1 + number, change.kind))
        self._path: Path | None = None
        self._is_up = [True] * len(nodes)
        if world.failures is not None:
            links = [_NodeAsLink(node.name, node.name) for node in nodes]
            world.failures.check_links(links)
            self._path = world.failures.path(links, seed)
            for position in range(len(nodes)):
                self._follow(position, 0.0)

    def next_s(self) -> float:
        """Time of the next change; infinite if there is none. [s]"""
        return self._due[0][0] if self._due else math.inf

    def changes_at(self, now_s: float) -> list[tuple[int, ChangeKind]]:
        """Changes that are due by now, in order."""
        found: list[tuple[int, ChangeKind]] = []
        while self._due and self._due[0][0] <= now_s:
            time_s, node, number, kind = heappop(self._due)
            found.append((node, kind))
            if number < 0:
                self._follow(node, time_s)
        return found

    def _follow(self, node: int, time_s: float) -> None:
        """Expect the next time at which the law lets a node fail or come back."""
        assert self._path is not None
        piece = self._path.piece_at(node, time_s)
        while (piece.bandwidth_factor > 0) == self._is_up[node]:
            if piece.end_s == math.inf:
                return
            time_s = piece.end_s
            piece = self._path.piece_at(node, time_s)
        self._is_up[node] = not self._is_up[node]
        heappush(self._due, (time_s, node, -1, "join" if self._is_up[node] else "fail"))
