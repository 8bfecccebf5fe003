"""A cluster: servers below switches and racks, and the NVLink domains that join some of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from des.base.checks import require_count, require_non_negative, require_optional_positive
from des.base.extras import require_extra
from des.base.lazy import lazy_imports
from des.base.names import require_name
from des.devices.cluster_levels import ANY, NVLINK, Level, tree_levels
from des.devices.server import Server

with lazy_imports(__name__):
    import networkx as nx

Labels = tuple[tuple[str, str], ...]
"""Keys and values that a file gives, in its order."""

RACK = "rack"
"""Level of the racks, where a file has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A server of a cluster and its place.

    Attributes
    ----------
    switch
        Lowest switch, or rack, above it; None if it is below none.
    block
        NVLink domain that it is in; None if in none, or not known.
    server
        Its devices, or the name of its kind; None if not known.
    num_gpus
        GPUs of it; None if not known.
    uplink_bytes_per_s, uplink_latency_s
        Bandwidth to ``switch``, all cards together, None if not known; and its latency.
    """

    name: str
    switch: str | None = None
    block: str | None = None
    server: Server | str | None = None
    num_gpus: int | None = None
    uplink_bytes_per_s: float | None = None
    uplink_latency_s: float = 0.0
    labels: Labels = ()

    def __post_init__(self) -> None:
        owner = f"node {self.name}"
        _require_name("node", self.name)
        if self.num_gpus is not None and self.num_gpus != 0:
            require_count(owner, "num_gpus", self.num_gpus)
        if isinstance(self.server, Server) and self.num_gpus not in (None, self.server.num_gpus):
            raise ValueError(
                f"{owner}: num_gpus must be {self.server.num_gpus}, those of its server "
                f"{self.server.name}, got {self.num_gpus}"
            )
        require_optional_positive(owner, "uplink_bytes_per_s", self.uplink_bytes_per_s)
        require_non_negative(owner, "uplink_latency_s", self.uplink_latency_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A switch, rack, zone or other unit that holds nodes, or units of a finer level.

    ``level`` names its kind, such as ``leaf``, ``rack`` or ``zone``; ``parent`` is the unit above.
    """

    name: str
    level: str
    parent: str | None = None
    uplink_bytes_per_s: float | None = None
    uplink_latency_s: float = 0.0
    labels: Labels = ()

    def __post_init__(self) -> None:
        _require_name("switch", self.name)
        if self.level in ("", NVLINK, ANY):
            raise ValueError(
                f"switch {self.name}: level must be a name other than {NVLINK} and {ANY}, "
                f"got {self.level!r}"
            )
        owner = f"switch {self.name}"
        require_optional_positive(owner, "uplink_bytes_per_s", self.uplink_bytes_per_s)
        require_non_negative(owner, "uplink_latency_s", self.uplink_latency_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """An NVLink domain: nodes whose GPUs reach each other over NVLinks, such as a GB200 NVL72."""

    name: str
    bandwidth_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        _require_name("block", self.name)
        width = self.bandwidth_bytes_per_s
        require_optional_positive(f"block {self.name}", "bandwidth_bytes_per_s", width)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Nodes, the tree of switches above them, and NVLink domains.

    Attributes
    ----------
    block_sizes
        Numbers of nodes that Slurm hands out together, within and across blocks.
    labels
        Names that a file gives to the whole, such as that of a topology.

    Examples
    --------
    >>> cluster = Cluster(
    ...     nodes=tuple(ClusterNode(name=f"n{i}", switch=f"s{i // 2}") for i in range(4)),
    ...     switches=(
    ...         Switch(name="s0", level="leaf", parent="top"),
    ...         Switch(name="s1", level="leaf", parent="top"),
    ...         Switch(name="top", level="spine"),
    ...     ),
    ... )
    >>> cluster.nearest_common("n0", "n1"), cluster.nearest_common("n0", "n2")
    (('leaf', 's0'), ('spine', 'top'))
    >>> cluster.hops("n0", "n1"), cluster.hops("n0", "n2")
    (2, 4)
    """

    nodes: tuple[ClusterNode, ...]
    switches: tuple[Switch, ...] = ()
    blocks: tuple[Block, ...] = ()
    block_sizes: tuple[int, ...] = ()
    labels: Labels = ()

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ValueError("cluster: nodes must be at least one, got none")
        for kind in ("nodes", "switches", "blocks"):
            _require_unique(kind, [each.name for each in getattr(self, kind)])
        known = {block.name for block in self.blocks}
        for node in self.nodes:
            if node.switch is not None and node.switch not in self.switch_named:
                raise ValueError(f"node {node.name}: unknown switch {node.switch!r}")
            if node.block is not None and node.block not in known:
                raise ValueError(f"node {node.name}: unknown block {node.block!r}")
        for size in self.block_sizes:
            require_count("cluster", "block_sizes", size)
        _ = self.levels  # parents exist, no circles, one order of levels

    @cached_property
    def node_named(self) -> Mapping[str, ClusterNode]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def switch_named(self) -> Mapping[str, Switch]:
        """Switches by name."""
        return {switch.name: switch for switch in self.switches}

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Levels of the switches, coarse to fine."""
        return tree_levels(
            (node.switch for node in self.nodes),
            {switch.name: switch.level for switch in self.switches},
            {switch.name: switch.parent for switch in self.switches},
        )

    @cached_property
    def nvlink(self) -> Level:
        """Level of the NVLink domains."""
        units = tuple(block.name for block in self.blocks)
        place: dict[str | None, int] = {name: at for at, name in enumerate(units)}
        places = [place.get(node.block, -1) for node in self.nodes]
        return Level(name=NVLINK, units=units, unit_of_node=np.array(places, dtype=np.int64))

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels, coarse to fine, then that of NVLink domains where there are any."""
        return (*(level.name for level in self.levels), *([NVLINK] if self.blocks else []))

    def level(self, name: str) -> Level:
        """Find a level by name: ``any`` is the whole, ``switch`` the finest that is no rack.

        Raises
        ------
        ValueError
            If the cluster has no such level; the message lists those that it has.
        """
        if name == ANY:
            everywhere = np.zeros(len(self.nodes), dtype=np.int64)
            return Level(name=ANY, units=("cluster",), unit_of_node=everywhere)
        if name == NVLINK and self.blocks:
            return self.nvlink
        for level in reversed(self.levels):
            if level.name == name or (name == "switch" and level.name != RACK):
                return level
        allowed = ", ".join((ANY, *self.level_names))
        raise ValueError(f"cluster: level must be one of {allowed}; got {name!r}")

    def ancestors(self, node: str) -> tuple[str, ...]:
        """Switches above a node, lowest first."""
        found = []
        switch = self._node(node).switch
        while switch is not None:
            found.append(switch)
            switch = self.switch_named[switch].parent
        return tuple(found)

    def nearest_common(self, one: str, other: str) -> tuple[str, str] | None:
        """Level and name of the closest unit that holds both nodes; None if there is none."""
        block = self._node(one).block
        if block is not None and block == self._node(other).block:
            return NVLINK, block
        above = set(self.ancestors(other))
        for switch in self.ancestors(one):
            if switch in above:
                return self.switch_named[switch].level, switch
        return None

    def hops(self, one: str, other: str) -> int | None:
        """Links on the way between two nodes over switches; None if nothing joins them."""
        if one == other:
            return 0
        here, there = self.ancestors(one), self.ancestors(other)
        for up, switch in enumerate(here):
            if switch in there:
                return up + 1 + there.index(switch) + 1
        return None

    def graph(self) -> "nx.Graph[tuple[str, str]]":
        """Nodes, switches and NVLink domains as a graph; edges are links.

        Vertices are pairs of kind (``node``, ``switch``, ``block``) and name; an edge has
        ``bandwidth_bytes_per_s`` where it is known.

        Raises
        ------
        ValueError
            If the extra ``networkx`` is not installed.
        """
        require_extra("graph", "networkx")
        graph: nx.Graph[tuple[str, str]] = nx.Graph()
        for switch in self.switches:
            graph.add_node(("switch", switch.name), level=switch.level)
            if switch.parent is not None:
                upper = ("switch", switch.parent)
                _join(graph, ("switch", switch.name), upper, switch.uplink_bytes_per_s)
        width = {block.name: block.bandwidth_bytes_per_s for block in self.blocks}
        graph.add_nodes_from(("block", name) for name in width)
        for node in self.nodes:
            graph.add_node(("node", node.name))
            if node.switch is not None:
                _join(graph, ("node", node.name), ("switch", node.switch), node.uplink_bytes_per_s)
            if node.block is not None:
                _join(graph, ("node", node.name), ("block", node.block), width[node.block])
        return graph

    def _node(self, name: str) -> ClusterNode:
        if name not in self.node_named:
            raise ValueError(f"cluster: unknown node {name!r}")
        return self.node_named[name]


def _join(
    graph: "nx.Graph[tuple[str, str]]",
    lower: tuple[str, str],
    upper: tuple[str, str],
    width: float | None,
) -> None:
    graph.add_edge(lower, upper, **({} if width is None else {"bandwidth_bytes_per_s": width}))


def _require_name(kind: str, name: str) -> None:
    require_name(kind, "name", name)
    if name != name.strip():
        raise ValueError(f"{kind}: name must be text without blanks around it, got {name!r}")


def _require_unique(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"cluster: {kind} must have different names, got {name!r} twice")
        seen.add(name)
