"""NVIDIA topograph's graph output: instances with their network layers (JSON).

Keys are those of topograph's page on its graph engine (docs/engines/graph.md).
"""

import itertools
from typing import Any

from des.devices.cluster import Block, Cluster, ClusterNode, Labels
from des.devices.cluster_files.documents import (
    labels_in,
    list_in,
    mapping_in,
    read_documents,
    text_in,
    write_json_document,
)
from des.devices.cluster_files.members import Members, switches_by_height

_NVLINK = "nvlink"


def read_topograph_graph(text: str) -> Cluster:
    """Read instances; layers stand from the lowest switch up, ``nvlink`` is the NVLink domain.

    Raises
    ------
    ValueError
        If a key is unknown, or a switch has two switches above it.
    """
    documents = read_documents(text)
    root = mapping_in("graph", documents[0] if documents else "", ("instances",))
    parents = Members("switch", "switch")
    layers_of: dict[str, list[str]] = {}
    nodes: list[ClusterNode] = []
    for entry in list_in("instances", root.get("instances")):
        node = _node(mapping_in("instance", entry, ("id", "type", "network_layers", "attributes")))
        nodes.append(node)
        owner = f"instance {node.name}"
        layers = [text_in(owner, each) for each in list_in(owner, entry.get("network_layers"))]
        for lower, upper in itertools.pairwise(layers):
            if parents.parent_of.get(lower) != upper:
                parents.add(upper, [lower])
        layers_of.update(dict.fromkeys(layers, layers))
    return Cluster(
        nodes=tuple(nodes),
        switches=switches_by_height(layers_of, parents.parent_of, {}),
        blocks=tuple(
            Block(name=name) for name in dict.fromkeys(node.block for node in nodes) if name
        ),
    )


def _node(fields: dict[str, Any]) -> ClusterNode:
    name = text_in("instance: id", fields.get("id"))
    layers = list_in(f"instance {name}: network_layers", fields.get("network_layers"))
    attributes = dict(labels_in(f"instance {name}: attributes", fields.get("attributes")))
    block = attributes.pop(_NVLINK, None)
    return ClusterNode(
        name=name,
        switch=layers[0] if layers else None,
        block=block,
        server=fields.get("type") or None,
        labels=tuple(attributes.items()),
    )


def write_topograph_graph(cluster: Cluster) -> str:
    """Instances in the order of the nodes."""
    instances = []
    for node in cluster.nodes:
        attributes: Labels = node.labels
        if node.block is not None:
            attributes = ((_NVLINK, node.block), *attributes)
        instance: dict[str, Any] = {"id": node.name}
        if node.server is not None:
            instance["type"] = node.server
        instance["network_layers"] = list(cluster.ancestors(node.name))
        if attributes:
            instance["attributes"] = dict(attributes)
        instances.append(instance)
    return write_json_document({"instances": instances})
