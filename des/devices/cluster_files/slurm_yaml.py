"""Slurm's topology.yaml: named topologies, each a tree, blocks or flat.

Keys and forms are those of the manual page topology.yaml(5).
"""

from collections.abc import Mapping
from typing import Any

from des.devices.cluster import Cluster
from des.devices.cluster_files.documents import (
    labels_in,
    list_in,
    mapping_in,
    number_in,
    read_documents,
    text_in,
    write_documents,
)
from des.devices.cluster_files.slurm_conf import SlurmTree, list_blocks, list_switches

NAME_PREFIX = "slurm."
"""Start of the keys of a cluster's labels that hold names of topologies."""

_KINDS = ("tree", "block", "flat")
_DEFAULT = f"{NAME_PREFIX}default"


def read_slurm_yaml(text: str) -> Cluster:
    """Read a topology.yaml with at most one tree, one topology of blocks and one that is flat.

    Raises
    ------
    ValueError
        If a key is unknown, or there are two topologies of a kind, naming both.
    """
    documents = read_documents(text)
    tree, names = SlurmTree(), dict[str, str]()
    for entry in list_in("topologies", documents[0] if documents else ""):
        fields = mapping_in("topology", entry, ("topology", "cluster_default", *_KINDS))
        name = text_in("topology", fields.get("topology"))
        kinds = [kind for kind in _KINDS if kind in fields]
        if len(kinds) != 1:
            raise ValueError(f"topology {name}: must be one of {', '.join(_KINDS)}; got {kinds}")
        key = NAME_PREFIX + kinds[0]
        if key in names:
            raise ValueError(
                f"a cluster has one {kinds[0]}, got topologies {names[key]} and {name}: "
                "keep one of them"
            )
        names[key] = name
        if str(fields.get("cluster_default", "")).lower() == "true" and _DEFAULT not in names:
            names[_DEFAULT] = name
        _READERS[kinds[0]](f"topology {name}", fields[kinds[0]], tree)
    return tree.cluster(() if _is_usual(names) else tuple(sorted(names.items())))


def _is_usual(names: Mapping[str, str]) -> bool:
    """Whether names are those that are written for a cluster without any."""
    kinds = [kind for kind in _KINDS if NAME_PREFIX + kind in names]
    usual = {NAME_PREFIX + kind: kind for kind in kinds}
    return "flat" not in kinds and names == usual | {_DEFAULT: next(iter(kinds), "")}


def _read_tree(owner: str, value: object, tree: SlurmTree) -> None:
    fields = mapping_in(owner, value, ("switches",))
    for entry in list_in(f"{owner}: switches", fields.get("switches")):
        mapping_in(f"{owner}: switches", entry, ("switch", "children", "nodes"))
        switch = dict(labels_in(f"{owner}: switches", entry))
        name = text_in(f"{owner}: switch", switch.get("switch"))
        tree.add_switch(name, switch.get("children", ""), switch.get("nodes", ""))


def _read_blocks(owner: str, value: object, tree: SlurmTree) -> None:
    fields = mapping_in(owner, value, ("block_sizes", "blocks"))
    sizes = list_in(f"{owner}: block_sizes", fields.get("block_sizes"))
    tree.block_sizes = tuple(number_in(f"{owner}: block_sizes", size) for size in sizes)
    for entry in list_in(f"{owner}: blocks", fields.get("blocks")):
        mapping_in(f"{owner}: blocks", entry, ("block", "nodes"))
        block = dict(labels_in(f"{owner}: blocks", entry))
        tree.add_block(text_in(f"{owner}: block", block.get("block")), block.get("nodes", ""))


def _read_flat(owner: str, value: object, tree: SlurmTree) -> None:
    if value not in ("true", "True"):
        raise ValueError(f"{owner}: flat must be true, got {value!r}")


_READERS = {"tree": _read_tree, "block": _read_blocks, "flat": _read_flat}


def write_slurm_yaml(cluster: Cluster) -> str:
    """Topologies tree and block (their own names, or those words), and flat if it was read."""
    names = dict(cluster.labels)
    parts: dict[str, Any] = {}
    if cluster.switches:
        parts["tree"] = {
            "switches": [
                _fill({"switch": name, "children": children, "nodes": nodes})
                for name, children, nodes in list_switches(cluster)
            ]
        }
    if cluster.blocks or cluster.block_sizes:
        blocks = [{"block": name, "nodes": nodes} for name, nodes in list_blocks(cluster)]
        parts["block"] = {"block_sizes": list(cluster.block_sizes), "blocks": blocks}
    if f"{NAME_PREFIX}flat" in names:
        parts["flat"] = True
    titled = {names.get(NAME_PREFIX + kind, kind): kind for kind in parts}
    if len(titled) < len(parts):
        raise ValueError(f"topologies must have different names, got {', '.join(titled)}")
    has_names = any(key.startswith(NAME_PREFIX) for key in names)
    default = names.get(_DEFAULT) if has_names else next(iter(titled), None)
    return write_documents(
        [
            [
                {"topology": title, "cluster_default": title == default, kind: parts[kind]}
                for title, kind in titled.items()
            ]
        ]
    )


def _fill(fields: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in fields.items() if value}
