"""Tree of a cluster as text: zones, switches and racks, and the nodes below each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from des.base.grouping import grouped
from des.base.names import counted
from des.devices.cluster import Cluster, ClusterNode
from des.devices.cluster_files.hostlist import compress_hosts
from des.devices.server import Server

Branch = tuple[str, Sequence["Branch"]]
"""A line, and the branches below it."""


def cluster_text(cluster: Cluster, nodes: Iterable[str] | None = None) -> str:
    """Return a tree of one line per switch, and the nodes of each as a list of hosts.

    ``nodes`` limits it to the switches above some nodes.
    """
    wanted = None if nodes is None else set(nodes)
    shown = [node for node in cluster.nodes if wanted is None or node.name in wanted]
    counts = Counter(name for node in shown for name in cluster.ancestors(node.name))
    below = grouped(
        (switch.parent, switch)
        for switch in cluster.switches
        if wanted is None or switch.name in counts
    )
    leaves = grouped((node.switch, node) for node in shown)

    def branches(parent: str | None) -> list[Branch]:
        units: list[Branch] = [
            (f"{unit.level} {unit.name}: {counted(counts[unit.name], 'node')}", branches(unit.name))
            for unit in below[parent]
        ]
        return units + [(text, []) for text in _by_block(leaves[parent])]

    return "".join(f"{line}\n" for line in (_title(cluster, shown), *tree_lines(branches(None))))


def tree_lines(branches: Sequence[Branch]) -> Iterator[str]:
    """Yield the lines of a tree, a line and what is below it for each branch."""
    for number, (text, below) in enumerate(branches, start=1):
        head, stem = ("└─ ", "   ") if number == len(branches) else ("├─ ", "│  ")
        yield head + text
        for line in tree_lines(below):
            yield stem + line


def _title(cluster: Cluster, nodes: Sequence[ClusterNode]) -> str:
    blocks = {node.block for node in nodes} - {None}
    parts = [counted(len(nodes), "node")]
    gpus = [gpus_of(node) for node in nodes]
    if None not in gpus:
        parts.append(counted(sum(count or 0 for count in gpus), "GPU"))
    if blocks:
        parts.append(counted(len(blocks), "NVLink domain"))
    levels = [level.name for level in cluster.levels]
    return ", ".join(parts) + (f"; levels {', '.join(levels)}" if levels else "")


def gpus_of(node: ClusterNode) -> int | None:
    """Return the GPUs of a node, its own figure or its server's; None if neither is known."""
    return node.server.num_gpus if isinstance(node.server, Server) else node.num_gpus


def _by_block(nodes: Sequence[ClusterNode]) -> list[str]:
    """Nodes below one switch as lists of hosts, one for each NVLink domain."""
    groups = grouped((node.block, node.name) for node in nodes)
    return [
        compress_hosts(names) + ("" if block is None else f" (NVLink domain {block})")
        for block, names in groups.items()
    ]
