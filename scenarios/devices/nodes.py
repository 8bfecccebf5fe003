"""Choose a set of nodes of a cluster: close together, near the data, apart from other jobs."""

from dataclasses import asdict, dataclass

from agents.devices.node_request import ChosenNodes, NodeRequest
from agents.devices.node_sets import choose_nodes
from des.base.command import UsageError
from des.base.flags import option, required
from des.base.names import counted
from des.devices.cluster import Cluster
from des.devices.cluster_files.hostlist import compress_hosts, expand_hosts
from des.devices.cluster_files.label_keys import level_of_key
from scenarios.devices.cluster_source import ClusterFlags, cluster_of
from scenarios.devices.cluster_tree import cluster_text
from scenarios.devices.placement_flags import tell

EXAMPLES = """\
Nodes are lists of hosts such as n[001-064,70]. Levels are those of the cluster (labels --to tree
lists them) or their labels, as in Kubernetes, nvlink, switch (the finest that is no rack) and any
(the whole cluster).

examples:
  python -m scenarios.devices nodes --cluster topology.conf --count 6
  python -m scenarios.devices nodes --cluster topology.conf --count 6 --taken 'dev[0-2]' \\
    --required spine --preferred leaf --json
  python -m scenarios.devices nodes --cluster topology.conf --count 6 --spread leaf:2 --data-near s1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ClusterFlags):
    """Flags of the wish."""

    count: int = required("number of nodes")
    free: str | None = option(None, "free nodes", default_text="all")
    taken: str | None = option(None, "nodes that are not free", default_text="none")
    required: str | None = option(None, "level of which one unit must hold all nodes")
    preferred: str | None = option(
        None, "level of which one unit should hold all nodes", default_text="the finest"
    )
    prefer_nodes: str | None = option(None, "nodes to take first")
    data_near: str | None = option(None, "nodes, racks or switches that hold the data")
    spread: tuple[str, ...] = option(
        (), "limits: most nodes of the set in each unit of a level, as rack:2", default_text="none"
    )
    apart: str | None = option(None, "level whose units with nodes of --others are avoided")
    others: str | None = option(None, "nodes of other jobs")
    json: bool = option(False, "print the answer as JSON, and nothing else")


def run(config: Config) -> None:
    """Print the set."""
    cluster = cluster_of(config)
    free = _names(config.free) or [node.name for node in cluster.nodes]
    taken = set(_names(config.taken))
    unknown = taken - set(cluster.node_named)
    if unknown:
        raise UsageError(f"--taken: unknown node {min(unknown)!r}")
    request = NodeRequest(
        count=config.count,
        required=_level(config.required),
        preferred=_level(config.preferred),
        preferred_nodes=tuple(_names(config.prefer_nodes)),
        data=tuple(_names(config.data_near)),
        spread=tuple(_limit(text) for text in config.spread),
        apart=_level(config.apart),
        others=tuple(_names(config.others)),
    )
    found = choose_nodes(cluster, [name for name in free if name not in taken], request)
    facts = {"format": 1, **asdict(found), "num_units": dict(found.num_units)}
    tell(facts if config.json else _text(cluster, found))


def _names(hosts: str | None) -> list[str]:
    return [] if hosts is None else expand_hosts(hosts)


def _level(name: str | None) -> str | None:
    """Level by its name, or by the label that Kubernetes has for it."""
    return None if name is None else level_of_key(name)


def _limit(text: str) -> tuple[str, int]:
    level, _, number = text.rpartition(":")
    if not level or not number.isdecimal():
        raise UsageError(f"--spread must be LEVEL:NODES, as rack:2, got {text!r}")
    return level_of_key(level), int(number)


def _text(cluster: Cluster, found: ChosenNodes) -> str:
    units = ", ".join(f"{count} {level}" for level, count in found.num_units)
    lines = [
        compress_hosts(found.nodes),
        f"{counted(len(found.nodes), 'node')} in {found.level} {found.unit}"
        + (f" ({units})" if units else ""),
    ]
    if found.near_fraction is not None:
        lines.append(f"near the data: {found.near_fraction:.1%} of the nodes")
    if found.num_preferred:
        lines.append(f"preferred nodes: {found.num_preferred}")
    lines.append("exact" if found.is_exact else "greedy: a better set may exist")
    return "\n".join(lines) + "\n" + cluster_text(cluster, found.nodes)
