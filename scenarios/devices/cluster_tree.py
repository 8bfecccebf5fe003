"""Tree of a cluster as text: zones, switches and racks, and the nodes below each."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from des.base.names import counted
from des.devices.cluster import Cluster, ClusterNode
from des.devices.cluster_files.hostlist import compress_hosts
from des.devices.server import Server


def cluster_text(cluster: Cluster, nodes: Iterable[str] | None = None) -> str:
    """Return a tree of one line per switch, and the nodes of each as a list of hosts.

    ``nodes`` limits it to the switches above some nodes.
    """
    wanted = None if nodes is None else set(nodes)
    shown = [node for node in cluster.nodes if wanted is None or node.name in wanted]
    kept = {name for node in shown for name in cluster.ancestors(node.name)}
    below: dict[str | None, list[str]] = defaultdict(list)
    for switch in cluster.switches:
        if wanted is None or switch.name in kept:
            below[switch.parent].append(switch.name)
    leaves: dict[str | None, list[ClusterNode]] = defaultdict(list)
    for node in shown:
        leaves[node.switch].append(node)
    counts: dict[str, int] = defaultdict(int)
    for node in shown:
        for name in cluster.ancestors(node.name):
            counts[name] += 1
    lines = [_title(cluster, shown)]
    lines += _branches(cluster, None, below, leaves, counts)
    return "".join(f"{line}\n" for line in lines)


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


def _branches(
    cluster: Cluster,
    parent: str | None,
    below: dict[str | None, list[str]],
    leaves: dict[str | None, list[ClusterNode]],
    counts: dict[str, int],
) -> Iterator[str]:
    entries = [*below[parent], *_by_block(leaves[parent])]
    for number, entry in enumerate(entries, start=1):
        is_last = number == len(entries)
        head, stem = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        if number > len(below[parent]):
            yield head + entry
            continue
        switch = cluster.switch_named[entry]
        yield f"{head}{switch.level} {entry}: {counted(counts[entry], 'node')}"
        for line in _branches(cluster, entry, below, leaves, counts):
            yield stem + line


def _by_block(nodes: Sequence[ClusterNode]) -> list[str]:
    """Nodes below one switch as lists of hosts, one for each NVLink domain."""
    groups: dict[str | None, list[str]] = defaultdict(list)
    for node in nodes:
        groups[node.block].append(node.name)
    return [
        compress_hosts(names) + ("" if block is None else f" (NVLink domain {block})")
        for block, names in groups.items()
    ]
