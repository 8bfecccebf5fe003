"""Lists of Kubernetes nodes with labels of their places, as ``kubectl get nodes`` prints them.

Read are names, labels, the GPUs ``nvidia.com/gpu`` that may be given to pods, and whether a node
takes new pods; the rest of a list is no topology.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from des.base.grouping import grouped
from des.base.speaking import SPEAKER
from des.devices.cluster import Block, Cluster, ClusterNode, Labels, Switch
from des.devices.cluster_files.documents import (
    kubernetes_items,
    labels_in,
    mapping_in,
    number_in,
    read_documents,
    text_in,
    write_documents,
)
from des.devices.cluster_files.label_keys import (
    NVLINK_KEYS,
    REPEATED,
    key_of_level,
    known_keys,
    label_value,
    level_of_key,
)

NVLINK_NAME = "kubernetes.nvlink"
"""Key of a cluster's label that holds the label of the NVLink domains, if not the first one."""

_GPU = "nvidia.com/gpu"
_REFUSED = ("NoSchedule", "NoExecute")
_PLACE = re.compile(r"\b(block|cell|fabric|hall|leaf|rack|region|room|row|spine|switch|zone)s?\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledNode:
    """A node of a list: its name, labels and GPUs."""

    name: str
    labels: Mapping[str, str]
    num_gpus: int | None


def read_node_labels(text: str) -> Cluster:
    """Read a list of nodes, without those that take no new pods.

    Notes name the nodes that are left out, and labels that seem to name a place but are not known.

    Raises
    ------
    ValueError
        If an object is no node, no node takes pods, or labels contradict each other, naming them.
    """
    nodes, left_out = [], []
    for item in kubernetes_items(read_documents(text)):
        if item["kind"] != "Node":
            raise ValueError(f"kind must be Node, got {item['kind']!r}")
        node, why = read_node_object(item), _why_closed(item)
        if why is None:
            nodes.append(node)
        else:
            left_out.append(f"node {node.name} is left out: {why}")
    if not nodes and left_out:
        raise ValueError(f"one node at least must take pods, got none: {'; '.join(left_out)}")
    every = {key for node in nodes for key in node.labels}
    keys = known_keys(every)
    unknown = sorted(key for key in every - {*keys, *NVLINK_KEYS} if _seems_a_place(key))
    named = [f"label {key} is of no known form, so it names no place" for key in unknown]
    SPEAKER.note([*left_out, *named])
    return cluster_of_labels(nodes, keys)


def _why_closed(item: Mapping[str, Any]) -> str | None:
    """Reason why a node takes no new pods that ask for GPUs; None if it does.

    Pods that ask for GPUs tolerate the taint of that resource, which clouds give to nodes of GPUs.
    """
    name = item["metadata"]["name"]
    spec = mapping_in(f"Node {name}: spec", item.get("spec"))
    if spec.get("unschedulable") == "true":
        return "unschedulable"
    for taint in spec.get("taints") or ():
        one = mapping_in(f"Node {name}: spec.taints", taint)
        if one.get("effect") in _REFUSED and one.get("key") != _GPU:
            return f"taint {one.get('key')}: {one.get('effect')}"
    return None


def _seems_a_place(key: str) -> bool:
    return _PLACE.search(re.sub(r"[^a-z0-9]+", " ", key.rpartition("/")[2].lower())) is not None


def read_node_object(item: Mapping[str, Any]) -> LabelledNode:
    """Node of an object of Kubernetes."""
    metadata = mapping_in("Node: metadata", item.get("metadata"))
    name = text_in("Node: metadata.name", metadata.get("name"))
    status = mapping_in(f"Node {name}: status", item.get("status"))
    given = [
        mapping_in(f"Node {name}: status.{part}", status.get(part))
        for part in ("allocatable", "capacity")
    ]
    gpus = next((one[_GPU] for one in given if one.get(_GPU) is not None), None)
    return LabelledNode(
        name=name,
        labels=dict(labels_in(f"Node {name}: metadata.labels", metadata.get("labels"))),
        num_gpus=None if gpus is None else number_in(f"Node {name}: {_GPU}", gpus),
    )


def cluster_of_labels(nodes: Sequence[LabelledNode], keys: Sequence[str]) -> Cluster:
    """Cluster of nodes by labels, whose keys stand coarse to fine.

    A node is below the unit of its finest key. Names of racks and blocks may come again below
    another unit and are other units then.

    Raises
    ------
    ValueError
        If a value has two units above it where it must be one.
    """
    found = [*dict.fromkeys(key for key in NVLINK_KEYS for node in nodes if key in node.labels)]
    nvlink = next((key for key in found if key not in keys), None)
    paths = {
        node.name: tuple((key, node.labels[key]) for key in keys if key in node.labels)
        for node in nodes
    }
    units = _units(paths.values())
    labels: Labels = ()
    if nvlink not in (None, NVLINK_KEYS[0]):
        labels = ((NVLINK_NAME, str(nvlink)),)
    taken = {*keys, nvlink}
    names = {path: unit.name for path, unit in units.items()}
    return Cluster(
        nodes=tuple(
            ClusterNode(
                name=node.name,
                switch=names.get(paths[node.name]),
                block=node.labels.get(nvlink) if nvlink else None,
                num_gpus=node.num_gpus,
                labels=tuple(each for each in node.labels.items() if each[0] not in taken),
            )
            for node in nodes
        ),
        switches=tuple(units.values()),
        blocks=tuple(
            Block(name=name)
            for name in dict.fromkeys(node.labels.get(nvlink or "") for node in nodes)
            if name
        ),
        labels=labels,
    )


_Path = tuple[tuple[str, str], ...]


def _units(paths: Iterable[_Path]) -> dict[_Path, Switch]:
    """Units by the path of labels that leads to them."""
    all_paths = dict.fromkeys(path[:end] for path in paths for end in range(1, len(path) + 1))
    by_value = grouped((path[-1][1], path) for path in all_paths)
    units: dict[_Path, Switch] = {}
    for path in all_paths:
        key, value = path[-1]
        same = [each for each in by_value[value] if each[-1][0] == key]
        if len(same) > 1 and level_of_key(key) not in REPEATED:
            above = ", ".join(
                " of ".join(unit for _, unit in each[-2::-1]) or "none" for each in same
            )
            raise ValueError(
                f"label {key}: {value} must be in one unit of a coarser level, got {above}"
            )
        parent = units[path[:-1]].name if len(path) > 1 else None
        is_repeated = len(by_value[value]) > 1 and parent is not None
        units[path] = Switch(
            name=f"{parent}/{value}" if is_repeated else value,
            level=level_of_key(key),
            parent=parent,
        )
    return units


def write_node_labels(cluster: Cluster) -> str:
    """List of nodes with labels, coarse to fine."""
    items = [object_of_node(node, place_labels(cluster, node)) for node in cluster.nodes]
    return write_documents([{"apiVersion": "v1", "kind": "List", "items": items}])


def object_of_node(node: ClusterNode, places: Mapping[str, str]) -> dict[str, Any]:
    """Node as an object of Kubernetes, with labels of its places and its own."""
    for key, value in node.labels:
        if places.get(key, value) != value:
            raise ValueError(f"node {node.name}: label {key} must be {places[key]}, got {value}")
    metadata: dict[str, Any] = {"name": node.name}
    if places or node.labels:
        metadata["labels"] = {**places, **dict(node.labels)}
    item: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    if node.num_gpus is not None:
        item["status"] = {"capacity": {_GPU: str(node.num_gpus)}}
    return item


def place_labels(cluster: Cluster, node: ClusterNode) -> dict[str, str]:
    """Labels of a node that name its places, coarse to fine, then its NVLink domain."""
    places = {
        key_of_level(cluster.switch_named[name].level): label_value("switch", name)
        for name in reversed(cluster.ancestors(node.name))
    }
    if node.block is not None:
        key = dict(cluster.labels).get(NVLINK_NAME, NVLINK_KEYS[0])
        places[key] = label_value("block", node.block)
    return places
