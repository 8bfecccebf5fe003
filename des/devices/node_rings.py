"""Ways between the nodes of a cluster, and the slowest hop of rings that share its links."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from des.base.node_arithmetic import way_over_links
from des.devices.cluster import Cluster
from des.devices.cluster_levels import NVLINK

_Link = tuple[str, str, str, float, float]
"""Kind of its lower end, name of that, direction; bandwidth [bytes/s], latency [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHop:
    """A way between two nodes: its links, the narrowest of them, and all their latencies.

    The bandwidth is infinite where none of the links is known.
    """

    num_links: int
    bandwidth_bytes_per_s: float
    latency_s: float


def ring_hops(cluster: Cluster, rings: Sequence[Sequence[str]]) -> tuple[NodeHop | None, ...]:
    """Find the slowest hop of each of several rings over nodes that exchange at once.

    A ring visits its nodes in the order of the tree, so that it enters and leaves each unit once.
    Rings that cross a link in one direction share it evenly; the latency is that of the farthest
    hop. None of a ring whose nodes nothing joins, or of a single node.

    Examples
    --------
    >>> from des.devices.cluster import ClusterNode, Switch
    >>> cluster = Cluster(
    ...     nodes=tuple(
    ...         ClusterNode(
    ...             name=f"n{i}",
    ...             switch=f"r{i // 2}",
    ...             uplink_bytes_per_s=12.5e9,
    ...             uplink_latency_s=5e-5,
    ...         )
    ...         for i in range(4)
    ...     ),
    ...     switches=(
    ...         Switch(name="spine", level="spine"),
    ...         *(
    ...             Switch(
    ...                 name=name,
    ...                 level="rack",
    ...                 parent="spine",
    ...                 uplink_bytes_per_s=6.25e9,
    ...                 uplink_latency_s=2e-4,
    ...             )
    ...             for name in ("r0", "r1")
    ...         ),
    ...     ),
    ... )
    >>> (near,), (far,) = (ring_hops(cluster, [("n0", name)]) for name in ("n1", "n2"))
    >>> near.bandwidth_bytes_per_s, far.bandwidth_bytes_per_s
    (12500000000.0, 6250000000.0)
    >>> round(near.latency_s * 1e3, 6), round(far.latency_s * 1e3, 6)
    (0.1, 0.5)
    """
    place = {node.name: at for at, node in enumerate(cluster.nodes)}
    pairs_of_rings = []
    for ring in rings:
        names = sorted(
            ring, key=lambda name: (tuple(reversed(cluster.ancestors(name))), place[name])
        )
        pairs_of_rings.append([*pairwise(names), (names[-1], names[0])] if len(names) > 1 else [])
    return hops_at_once(cluster, pairs_of_rings)


def hops_at_once(
    cluster: Cluster, flows_of_groups: Iterable[Iterable[tuple[str, str]]]
) -> tuple[NodeHop | None, ...]:
    """Slowest hop of each group of flows from node to node, as all of them are under way."""
    ways: list[list[list[_Link]] | None] = []
    for pairs in flows_of_groups:
        found = [_links(cluster, one, other) for one, other in pairs]
        known = [links for links in found if links is not None]
        ways.append(known if known and len(known) == len(found) else None)
    flows = Counter(link[:3] for way in ways if way is not None for links in way for link in links)
    return tuple(None if way is None else _slowest(way, flows) for way in ways)


def _slowest(way: list[list[_Link]], flows: "Counter[tuple[str, str, str]]") -> NodeHop:
    hops = [way_over_links((link[3], link[4], flows[link[:3]]) for link in links) for links in way]
    return NodeHop(
        num_links=max(map(len, way)),
        bandwidth_bytes_per_s=min(width for width, _ in hops),
        latency_s=max(latency_s for _, latency_s in hops),
    )


def _links(cluster: Cluster, one: str, other: str) -> list[_Link] | None:
    """Links on the way: over the NVLink domain of both, which has no latency, or the switches."""
    if one == other:
        raise ValueError(f"cluster: nodes of a hop must be two, got {one!r} twice")
    common = cluster.nearest_common(one, other)
    if common is None:
        return None
    level, top = common
    if level == NVLINK:
        width = next(each for each in cluster.blocks if each.name == top).bandwidth_bytes_per_s
        return [("block", one, "up", width or float("inf"), 0.0)]
    return _climb(cluster, one, top, "up") + _climb(cluster, other, top, "down")


def _climb(cluster: Cluster, node: str, top: str, direction: str) -> list[_Link]:
    """Links from a node up to a switch, in a direction."""
    own = cluster.node_named[node]
    known = [("node", node, own.uplink_bytes_per_s, own.uplink_latency_s)]
    for name in cluster.ancestors(node):
        if name == top:
            break
        switch = cluster.switch_named[name]
        known.append(("switch", name, switch.uplink_bytes_per_s, switch.uplink_latency_s))
    return [
        (kind, name, direction, float("inf") if width is None else width, latency_s)
        for kind, name, width, latency_s in known
    ]
