"""Slurm's topology.conf: switches with their nodes (tree), blocks of nodes (block).

Keys and forms are those of the manual page topology.conf(5).
"""

import re
from collections.abc import Iterator

from des.base.checks import prefixed_errors
from des.base.grouping import grouped
from des.devices.cluster import Block, Cluster, ClusterNode
from des.devices.cluster_files.hostlist import compress_hosts, expand_hosts, require_host
from des.devices.cluster_files.members import Members, switches_by_height

LINK_SPEED = "LinkSpeed"
"""Label of a switch that holds Slurm's number, whose unit is not defined."""

_KEYS = {
    "switchname": ("switches", "nodes", "linkspeed"),
    "blockname": ("nodes",),
    "blocksizes": (),
}


class SlurmTree:
    """Switches and blocks as Slurm lists them, which become a cluster at the end."""

    def __init__(self) -> None:
        self._switch_of = Members("node", "switch")
        self._block_of = Members("node", "block")
        self._parent_of = Members("switch", "switch")
        self._labels: dict[str, tuple[tuple[str, str], ...]] = {}
        self._blocks: list[str] = []
        self.block_sizes: tuple[int, ...] = ()

    def add_switch(self, name: str, switches: str, nodes: str, link_speed: str = "") -> None:
        """Take a switch, with its children as lists of hosts."""
        if name in self._labels:
            raise ValueError(f"switch {name} is given twice")
        self._labels[name] = ((LINK_SPEED, link_speed),) if link_speed else ()
        self._parent_of.add(name, expand_hosts(switches) if switches else ())
        self._switch_of.add(name, expand_hosts(nodes) if nodes else ())

    def add_block(self, name: str, nodes: str) -> None:
        """Take a block, with its nodes as a list of hosts."""
        if name in self._blocks:
            raise ValueError(f"block {name} is given twice")
        self._blocks.append(name)
        self._block_of.add(name, expand_hosts(nodes) if nodes else ())

    def cluster(self, labels: tuple[tuple[str, str], ...] = ()) -> Cluster:
        """Cluster of all that was taken."""
        switch_of, block_of = self._switch_of.parent_of, self._block_of.parent_of
        return Cluster(
            nodes=tuple(
                ClusterNode(name=name, switch=switch_of.get(name), block=block_of.get(name))
                for name in dict.fromkeys((*switch_of, *block_of))
            ),
            switches=switches_by_height(self._labels, self._parent_of.parent_of, self._labels),
            blocks=tuple(Block(name=name) for name in self._blocks),
            block_sizes=self.block_sizes,
            labels=labels,
        )


def read_slurm_conf(text: str) -> Cluster:
    """Read a topology.conf with switches, blocks or both.

    Raises
    ------
    ValueError
        If a line or key is unknown, naming the line, or the cluster is not sound.
    """
    tree = SlurmTree()
    for number, fields in _lines(text):
        with prefixed_errors(f"line {number}: "):
            _take(tree, fields)
    return tree.cluster()


def _take(tree: SlurmTree, fields: dict[str, str]) -> None:
    first = next(iter(fields))
    if first not in _KEYS:
        raise ValueError(f"must begin with SwitchName, BlockName or BlockSizes, got {first!r}")
    for key in [*fields][1:]:
        if key not in _KEYS[first]:
            allowed = ", ".join(_KEYS[first]) or "nothing"
            raise ValueError(f"allowed after {first} are {allowed}; got {key!r}")
    value = fields[first]
    if first == "blocksizes":
        sizes = value.split(",")
        if not all(size.strip().isdecimal() for size in sizes) or tree.block_sizes:
            raise ValueError(f"BlockSizes must be given once, like 4,16, got {value!r}")
        tree.block_sizes = tuple(int(size) for size in sizes)
    elif "[" in value or "," in value:
        raise ValueError(f"{first} must be one name, got {value!r}")
    elif first == "switchname":
        children, nodes = fields.get("switches", ""), fields.get("nodes", "")
        tree.add_switch(value, children, nodes, fields.get("linkspeed", ""))
    else:
        tree.add_block(value, fields.get("nodes", ""))


def _lines(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Number and fields of each line; keys in small letters, a backslash joins two lines."""
    held, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start if held else number
        held += re.sub(r"#.*", "", line).strip()
        if held.endswith("\\"):
            held = held[:-1] + " "
            continue
        fields: dict[str, str] = {}
        for word in held.split():
            key, equals, value = word.partition("=")
            if not equals or not value or key.lower() in fields:
                raise ValueError(f"line {start}: must be KEY=VALUE, each key once, got {word!r}")
            fields[key.lower()] = value
        held = ""
        if fields:
            yield start, fields


def write_slurm_conf(cluster: Cluster) -> str:
    """Switches, then blocks, then their sizes."""
    return write_slurm_tree(cluster) + write_slurm_block(cluster)


def write_slurm_tree(cluster: Cluster) -> str:
    """Switches as a topology.conf for topology/tree."""
    lines = []
    for name, switches, nodes in list_switches(cluster):
        speed = dict(cluster.switch_named[name].labels).get(LINK_SPEED)
        lines.append(
            f"SwitchName={name}"
            + (f" Switches={switches}" if switches else "")
            + (f" Nodes={nodes}" if nodes else "")
            + (f" LinkSpeed={speed}" if speed else "")
        )
    return "".join(f"{line}\n" for line in lines)


def write_slurm_block(cluster: Cluster) -> str:
    """Blocks and their sizes as a topology.conf for topology/block."""
    lines = [f"BlockName={name} Nodes={nodes}" for name, nodes in list_blocks(cluster)]
    if cluster.block_sizes:
        lines.append(f"BlockSizes={','.join(map(str, cluster.block_sizes))}")
    return "".join(f"{line}\n" for line in lines)


def list_switches(cluster: Cluster) -> list[tuple[str, str, str]]:
    """Name, child switches and nodes of every switch, children as lists of hosts."""
    for switch in cluster.switches:
        require_host(switch.name)
    below = grouped((switch.parent, switch.name) for switch in cluster.switches)
    nodes = grouped((node.switch, node.name) for node in cluster.nodes)
    return [
        (switch.name, compress_hosts(below[switch.name]), compress_hosts(nodes[switch.name]))
        for switch in cluster.switches
    ]


def list_blocks(cluster: Cluster) -> list[tuple[str, str]]:
    """Name and nodes of every block, nodes as a list of hosts."""
    for block in cluster.blocks:
        require_host(block.name)
    nodes = grouped((node.block, node.name) for node in cluster.nodes)
    return [(block.name, compress_hosts(nodes[block.name])) for block in cluster.blocks]
