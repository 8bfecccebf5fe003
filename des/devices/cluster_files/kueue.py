"""Kueue's Topology, levels by labels of nodes, together with the nodes.

Keys are those of Kueue's page on topologies (kueue.sigs.k8s.io/docs/concepts/topology). The object
alone has no nodes: ``kubectl get topologies,nodes -o yaml`` prints both.
"""

from collections.abc import Mapping
from typing import Any

from des.devices.cluster import Cluster
from des.devices.cluster_files.documents import (
    kubernetes_items,
    list_in,
    mapping_in,
    read_documents,
    text_in,
    write_documents,
)
from des.devices.cluster_files.label_keys import HOSTNAME, key_of_level
from des.devices.cluster_files.node_labels import (
    LabelledNode,
    cluster_of_labels,
    labelled_node,
    written_nodes,
)

KUEUE_NAME = "kueue.topology"
"""Key of a cluster's label that holds the name of its Topology."""

_VERSION = "kueue.x-k8s.io/v1beta2"
_MOST_LEVELS = 16


def read_kueue(text: str) -> Cluster:
    """Read a Topology and nodes.

    Raises
    ------
    ValueError
        If either is missing, a level comes twice, or a node lacks the label of a level.
    """
    topologies: list[tuple[str, list[str]]] = []
    nodes: list[LabelledNode] = []
    for item in kubernetes_items(read_documents(text)):
        if item["kind"] == "Topology":
            topologies.append(_topology(item))
        elif item["kind"] == "Node":
            nodes.append(labelled_node(item))
        else:
            raise ValueError(f"kind must be Topology or Node, got {item['kind']!r}")
    if len(topologies) != 1:
        names = ", ".join(name for name, _ in topologies) or "none"
        raise ValueError(f"Topology must be given once, got {names}")
    if not nodes:
        raise ValueError(
            "nodes must be given with the Topology, got none: "
            "kubectl get topologies,nodes -o yaml prints both"
        )
    (name, keys), *_ = topologies
    for node in nodes:
        for key in keys:
            if key not in node.labels:
                raise ValueError(f"Node {node.name}: label {key}, a level of {name}, must be given")
    switches = [key for key in keys if key != HOSTNAME]
    return cluster_of_labels(nodes, switches, labels=((KUEUE_NAME, name),), repeats=True)


def _topology(item: Mapping[str, Any]) -> tuple[str, list[str]]:
    metadata = mapping_in("Topology: metadata", item.get("metadata"))
    name = text_in("Topology: metadata.name", metadata.get("name"))
    owner = f"Topology {name}: levels"
    spec = mapping_in(f"Topology {name}: spec", item.get("spec"), ("levels",))
    keys = [
        text_in(owner, mapping_in(owner, level, ("nodeLabel",)).get("nodeLabel"))
        for level in list_in(owner, spec.get("levels"))
    ]
    if not 1 <= len(keys) <= _MOST_LEVELS or len(set(keys)) < len(keys):
        raise ValueError(f"{owner} must be 1 to {_MOST_LEVELS} different labels, got {keys}")
    if HOSTNAME in keys[:-1]:
        raise ValueError(f"{owner}: {HOSTNAME} must be the last")
    return name, keys


def write_kueue(cluster: Cluster) -> str:
    """Topology and nodes; hosts are its last level where every node has their label."""
    keys = [key_of_level(level.name) for level in cluster.levels]
    if all(HOSTNAME in dict(node.labels) for node in cluster.nodes):
        keys.append(HOSTNAME)
    name = dict(cluster.labels).get(KUEUE_NAME, "default")
    topology = {
        "apiVersion": _VERSION,
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [{"nodeLabel": key} for key in keys]},
    }
    return write_documents([topology, *written_nodes(cluster)])
