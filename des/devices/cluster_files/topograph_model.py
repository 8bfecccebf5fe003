"""NVIDIA topograph's model files: switches, nodes and capacity blocks (YAML).

Keys are those of topograph's page on modelling (docs/modeling.md): maps in newer files, lists with
``name`` in older ones, and ``blocks`` with ``switch`` and ``annotations`` in the newest.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from des.devices.cluster import Block, Cluster, ClusterNode, Labels
from des.devices.cluster_files.documents import (
    labels_in,
    list_in,
    mapping_in,
    read_documents,
    text_in,
    write_documents,
)
from des.devices.cluster_files.hostlist import compress_hosts, expand_hosts
from des.devices.cluster_files.members import Members, switches_by_height

_SWITCH_KEYS = ("name", "metadata", "labels", "switches", "nodes", "capacity_blocks")
_NODE_KEYS = ("id", "type", "capacity_block", "attributes")
_BLOCK_KEYS = ("name", "type", "nvlink", "nodes", "attributes", "switch", "annotations")


class _Model:
    """Parts of a model as they are read."""

    def __init__(self) -> None:
        self.switch_of = Members("node", "switch")
        self.block_of = Members("node", "capacity block")
        self.parent_of = Members("switch", "switch")
        self.switch_labels: dict[str, Labels] = {}
        self.block_labels: dict[str, Labels] = {}
        self.kind_of: dict[str, str] = {}
        self.node_labels: dict[str, Labels] = {}
        self.blocks_below: dict[str, list[str]] = {}


def read_topograph(text: str) -> Cluster:
    """Read a model.

    Raises
    ------
    ValueError
        If a key is unknown, a node has two places, or a switch names a node that the model lacks.
    """
    documents = read_documents(text)
    root = mapping_in(
        "model",
        documents[0] if documents else "",
        ("switches", "nodes", "capacity_blocks", "blocks"),
    )
    model = _Model()
    for name, fields in _entries("switches", root.get("switches"), _SWITCH_KEYS):
        _take_switch(model, name, fields)
    for name, fields in mapping_in("nodes", root.get("nodes")).items():
        _take_node(model, name, mapping_in(f"node {name}", fields, _NODE_KEYS))
    declared = bool(root.get("nodes"))
    for key in ("capacity_blocks", "blocks"):
        for name, fields in _entries(key, root.get(key), _BLOCK_KEYS):
            _take_block(model, name, fields, declared)
    for node in model.switch_of.parent_of:
        if node not in model.kind_of:
            raise ValueError(
                f"switch {model.switch_of.parent_of[node]}: node {node} must be in nodes or "
                "capacity_blocks, got neither"
            )
    return _cluster(model)


def _entries(
    section: str, value: object, keys: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and fields of a section that is a map, or a list with names."""
    if isinstance(value, list):
        for entry in value:
            fields = mapping_in(section, entry, keys)
            named = fields.get("name") or fields.get("switch")
            yield text_in(f"{section}: name", named), fields
    else:
        for name, inner in mapping_in(section, value).items():
            yield name, mapping_in(f"{section}: {name}", inner, keys)


def _hosts(owner: str, value: object) -> list[str]:
    return [host for each in list_in(owner, value) for host in expand_hosts(text_in(owner, each))]


def _take_switch(model: _Model, name: str, fields: dict[str, Any]) -> None:
    owner = f"switch {name}"
    model.switch_labels[name] = labels_in(owner, fields.get("metadata")) + labels_in(
        owner, fields.get("labels")
    )
    model.parent_of.add(name, _hosts(owner, fields.get("switches")))
    model.switch_of.add(name, _hosts(owner, fields.get("nodes")))
    model.blocks_below[name] = _hosts(owner, fields.get("capacity_blocks"))


def _take_node(model: _Model, name: str, fields: dict[str, Any]) -> None:
    owner = f"node {name}"
    if fields.get("id", name) != name:
        raise ValueError(f"{owner}: id must be its name, got {fields['id']!r}")
    model.kind_of[name] = text_in(f"{owner}: type", fields["type"]) if "type" in fields else ""
    model.node_labels[name] = labels_in(f"{owner}: attributes", fields.get("attributes"))
    if fields.get("capacity_block"):
        block = text_in(f"{owner}: capacity_block", fields["capacity_block"])
        model.block_labels.setdefault(block, ())
        model.block_of.add(block, [name])


def _take_block(model: _Model, name: str, fields: dict[str, Any], declared: bool) -> None:
    owner = f"capacity block {name}"
    if model.block_labels.get(name):
        raise ValueError(f"{owner} is given twice")
    labels = [*labels_in(owner, fields.get("attributes"))]
    labels += [*labels_in(owner, fields.get("annotations"))]
    if fields.get("nvlink"):
        labels.append(("nvlink", text_in(f"{owner}: nvlink", fields["nvlink"])))
    model.block_labels[name] = tuple(labels)
    nodes = _hosts(owner, fields.get("nodes"))
    for node in nodes:
        if declared and node not in model.kind_of:
            raise ValueError(f"{owner}: node {node} must be in nodes")
        if "type" in fields:
            model.kind_of[node] = text_in(f"{owner}: type", fields["type"])
        model.kind_of.setdefault(node, "")
    here = model.block_of.parent_of
    model.block_of.add(name, [node for node in nodes if here.get(node) != name])
    above = [switch for switch, names in model.blocks_below.items() if name in names]
    above += [fields["switch"]] if "switch" in fields else []
    for switch in above:
        model.switch_of.add(text_in(f"{owner}: switch", switch), nodes)


def _cluster(model: _Model) -> Cluster:
    switch_of, block_of = model.switch_of.parent_of, model.block_of.parent_of
    nodes = tuple(
        ClusterNode(
            name=name,
            switch=switch_of.get(name),
            block=block_of.get(name),
            server=kind or None,
            labels=model.node_labels.get(name, ()),
        )
        for name, kind in model.kind_of.items()
    )
    names = dict.fromkeys((*model.switch_labels, *model.parent_of.parent_of))
    return Cluster(
        nodes=nodes,
        switches=switches_by_height(names, model.parent_of.parent_of, model.switch_labels),
        blocks=tuple(Block(name=name, labels=own) for name, own in model.block_labels.items()),
    )


def write_topograph(cluster: Cluster) -> str:
    """Model of maps; ``nodes`` only where capacity blocks do not say all of them."""
    model: dict[str, Any] = {}
    if cluster.switches:
        model["switches"] = _written_switches(cluster)
    in_block: dict[str | None, list[str]] = defaultdict(list)
    for node in cluster.nodes:
        in_block[node.block].append(node.name)
    by_block = [name for block in cluster.blocks for name in in_block[block.name]]
    is_plain = not any(node.labels or node.server for node in cluster.nodes)
    says_all = is_plain and by_block == [node.name for node in cluster.nodes]
    if not says_all:
        model["nodes"] = {node.name: _written_node(node) for node in cluster.nodes}
    if cluster.blocks:
        model["capacity_blocks"] = {
            block.name: _filled(nodes=_ranges(in_block[block.name]), attributes=dict(block.labels))
            for block in cluster.blocks
        }
    return write_documents([model])


def _written_switches(cluster: Cluster) -> dict[str, dict[str, Any]]:
    below: dict[str | None, list[str]] = defaultdict(list)
    for switch in cluster.switches:
        below[switch.parent].append(switch.name)
    nodes: dict[str | None, list[str]] = defaultdict(list)
    for node in cluster.nodes:
        nodes[node.switch].append(node.name)
    return {
        switch.name: _filled(
            metadata=dict(switch.labels),
            switches=below[switch.name],
            nodes=_ranges(nodes[switch.name]),
        )
        for switch in cluster.switches
    }


def _written_node(node: ClusterNode) -> dict[str, Any]:
    return _filled(type=node.server, capacity_block=node.block, attributes=dict(node.labels))


def _ranges(names: Iterable[str]) -> list[str]:
    hosts = compress_hosts(names)
    return [hosts] if hosts else []


def _filled(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}
