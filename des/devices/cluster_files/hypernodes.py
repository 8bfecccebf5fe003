"""Volcano's HyperNodes: a tree of tiers, members by exact name, pattern or labels.

Keys are those of Volcano's design of scheduling by network topology and of its definition of
HyperNode. Patterns and labels need the nodes themselves, as objects of kind Node, in the same file.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from des.base.grouping import grouped
from des.devices.cluster import Cluster, ClusterNode, Switch
from des.devices.cluster_files.documents import (
    kubernetes_items,
    labels_in,
    list_in,
    mapping_in,
    number_in,
    read_documents,
    text_in,
    write_documents,
)
from des.devices.cluster_files.members import Members
from des.devices.cluster_files.node_labels import LabelledNode, object_of_node, read_node_object

_VERSION = "topology.volcano.sh/v1alpha1"
TIER = "tier"
"""Label of a switch that holds its tier, where that is not its level's place from below."""

_SELECTORS = ("exactMatch", "regexMatch", "labelMatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class _HyperNode:
    name: str
    tier: int
    tier_name: str
    members: list[Any]


def read_hypernodes(text: str) -> Cluster:
    """Read HyperNodes, and the nodes where the file has them.

    Raises
    ------
    ValueError
        If a selector is unknown or finds nothing, tiers do not go up, or a member has two parents.
    """
    hypernodes: dict[str, _HyperNode] = {}
    nodes: dict[str, LabelledNode] = {}
    for item in kubernetes_items(read_documents(text)):
        if item["kind"] == "HyperNode":
            hypernode = _hypernode(item)
            if hypernode.name in hypernodes:
                raise ValueError(f"HyperNode {hypernode.name} is given twice")
            hypernodes[hypernode.name] = hypernode
        elif item["kind"] == "Node":
            node = read_node_object(item)
            nodes[node.name] = node
        else:
            raise ValueError(f"kind must be HyperNode or Node, got {item['kind']!r}")
    switch_of, parent_of = Members("node", "HyperNode"), Members("HyperNode", "HyperNode")
    for name, hypernode in hypernodes.items():
        found: dict[str, dict[str, None]] = {"Node": {}, "HyperNode": {}}
        for member in hypernode.members:
            kind, names = _select(f"HyperNode {name}: members", member, hypernodes, nodes)
            found[kind].update(dict.fromkeys(names))
        for child in found["HyperNode"]:
            _check_tiers(hypernode, hypernodes.get(child), child)
        switch_of.add(name, found["Node"])
        parent_of.add(name, found["HyperNode"])
    return _cluster(hypernodes, nodes, switch_of.parent_of, parent_of.parent_of)


def _hypernode(item: Mapping[str, Any]) -> _HyperNode:
    metadata = mapping_in("HyperNode: metadata", item.get("metadata"))
    name = text_in("HyperNode: metadata.name", metadata.get("name"))
    owner = f"HyperNode {name}"
    spec = mapping_in(f"{owner}: spec", item.get("spec"), (TIER, "tierName", "members"))
    return _HyperNode(
        name=name,
        tier=number_in(f"{owner}: tier", spec.get(TIER)),
        tier_name=str(spec.get("tierName", "")),
        members=list_in(f"{owner}: members", spec.get("members")),
    )


def _check_tiers(upper: _HyperNode, lower: _HyperNode | None, child: str) -> None:
    if lower is None:
        raise ValueError(f"HyperNode {upper.name}: unknown HyperNode {child!r} among its members")
    if lower.tier >= upper.tier:
        raise ValueError(
            f"HyperNode {child}: tier must be below {upper.tier}, that of {upper.name}, "
            f"got {lower.tier}"
        )


def _select(
    owner: str,
    member: object,
    hypernodes: Mapping[str, _HyperNode],
    nodes: Mapping[str, LabelledNode],
) -> tuple[str, list[str]]:
    """Kind and names of what a member selects."""
    fields = mapping_in(owner, member, ("type", "selector"))
    kind = fields.get("type")
    if kind not in ("Node", "HyperNode"):
        raise ValueError(f"{owner}: type must be Node or HyperNode, got {kind!r}")
    selector = mapping_in(f"{owner}: selector", fields.get("selector"), _SELECTORS)
    if len(selector) != 1:
        raise ValueError(f"{owner}: selector must be one, got {', '.join(selector) or 'none'}")
    ((how, value),) = selector.items()
    if how == "exactMatch":
        name = text_in(f"{owner}: name", mapping_in(owner, value, ("name",)).get("name"))
        if kind == "Node" and nodes and name not in nodes:
            raise ValueError(f"{owner}: unknown Node {name!r}")
        return kind, [name]
    if kind == "Node" and not nodes:
        raise ValueError(
            f"{owner}: {how} needs the nodes in the same file, got none: "
            "kubectl get hypernodes,nodes -o yaml prints both"
        )
    if how == "regexMatch":
        found = _matching(owner, value, nodes if kind == "Node" else hypernodes)
    elif kind == "Node":
        found = [name for name, node in nodes.items() if _has_labels(owner, value, node.labels)]
    else:
        raise ValueError(f"{owner}: labelMatch must be of Nodes, got {kind}s")
    if not found:
        raise ValueError(f"{owner}: {how} finds no {kind}")
    return kind, found


def _matching(owner: str, value: object, names: Iterable[str]) -> list[str]:
    pattern = text_in(f"{owner}: pattern", mapping_in(owner, value, ("pattern",)).get("pattern"))
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{owner}: pattern {pattern!r} cannot be read: {error}") from None
    return [name for name in names if expression.search(name)]


def _has_labels(owner: str, value: object, labels: Mapping[str, str]) -> bool:
    """Whether labels fit a selector, as that of Kubernetes."""
    owner = f"{owner}: labelMatch"
    fields = mapping_in(owner, value, ("matchLabels", "matchExpressions"))
    fits = set(labels_in(owner, fields.get("matchLabels"))) <= set(labels.items())
    for each in list_in(owner, fields.get("matchExpressions")):
        expression = mapping_in(owner, each, ("key", "operator", "values"))
        operator, key = expression.get("operator"), text_in(owner, expression.get("key"))
        values = list_in(owner, expression.get("values"))
        holds = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if operator not in holds:
            raise ValueError(f"{owner}: operator must be {', '.join(holds)}; got {operator!r}")
        fits = fits and holds[operator]
    return fits


def _cluster(
    hypernodes: Mapping[str, _HyperNode],
    nodes: Mapping[str, LabelledNode],
    switch_of: Mapping[str, str],
    parent_of: Mapping[str, str],
) -> Cluster:
    cluster = Cluster(
        nodes=tuple(
            ClusterNode(
                name=name,
                switch=switch_of.get(name),
                num_gpus=nodes[name].num_gpus if nodes else None,
                labels=tuple(nodes[name].labels.items()) if nodes else (),
            )
            for name in (nodes or switch_of)
        ),
        switches=tuple(
            Switch(
                name=name, level=each.tier_name or f"tier{each.tier}", parent=parent_of.get(name)
            )
            for name, each in hypernodes.items()
        ),
    )
    ranks = _ranks(cluster)
    switches = tuple(
        switch
        if hypernodes[switch.name].tier == ranks[switch.level]
        else replace(switch, labels=((TIER, str(hypernodes[switch.name].tier)),))
        for switch in cluster.switches
    )
    return replace(cluster, switches=switches)


def _ranks(cluster: Cluster) -> dict[str, int]:
    """Number of every level, 1 the finest: its tier where a switch has no label of another."""
    return {level.name: rank for rank, level in enumerate(reversed(cluster.levels), 1)}


def write_hypernodes(cluster: Cluster) -> str:
    """HyperNodes with exact names; nodes too where these do not say all about them."""
    ranks = _ranks(cluster)
    nodes = ((node.switch, ("Node", node.name)) for node in cluster.nodes)
    units = ((switch.parent, ("HyperNode", switch.name)) for switch in cluster.switches)
    members = grouped(chain(nodes, units))
    documents: list[dict[str, Any]] = []
    for switch in cluster.switches:
        tier = int(dict(switch.labels).get(TIER, ranks[switch.level]))
        spec: dict[str, Any] = {TIER: tier}
        if switch.level != f"tier{tier}":
            spec["tierName"] = switch.level
        if members[switch.name]:
            spec["members"] = [
                {"type": kind, "selector": {"exactMatch": {"name": name}}}
                for kind, name in members[switch.name]
            ]
        head = {"apiVersion": _VERSION, "kind": "HyperNode", "metadata": {"name": switch.name}}
        documents.append({**head, "spec": spec})
    listed = [
        name for switch in cluster.switches for kind, name in members[switch.name] if kind == "Node"
    ]
    says_all = listed == [node.name for node in cluster.nodes] and not any(
        node.labels or node.num_gpus is not None for node in cluster.nodes
    )
    if not says_all:
        documents += [object_of_node(node, {}) for node in cluster.nodes]
    return write_documents(documents)
