"""Features of a cluster that a format may lack, and the cluster without them."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from des.devices.cluster import Block, Cluster, ClusterNode, Labels, Switch
from des.devices.cluster_files.hypernodes import TIER
from des.devices.cluster_files.label_keys import key_of_level
from des.devices.cluster_files.node_labels import NVLINK_NAME
from des.devices.cluster_files.slurm_conf import LINK_SPEED
from des.devices.cluster_files.slurm_yaml import NAME_PREFIX
from des.devices.cluster_levels import height_levels
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A fact that some clusters have: examples of it, and how to leave it out."""

    examples: Callable[[Cluster], Iterable[str]]
    leave_out: Callable[[Cluster], Cluster]

    def find(self, cluster: Cluster) -> str | None:
        """First example; None where a cluster has none."""
        return next(iter(self.examples(cluster)), None)


_SINGULAR = {"nodes": "node", "switches": "switch", "blocks": "block"}


def _named(
    cluster: Cluster, kind: str, has: Callable[[Any], object] = lambda _: True
) -> Iterator[str]:
    """Nodes, switches or blocks of a cluster for which something holds."""
    return (f"{_SINGULAR[kind]} {each.name}" for each in getattr(cluster, kind) if has(each))


def _changed(cluster: Cluster, **changes: Mapping[str, Any]) -> Cluster:
    """Cluster with fields of all its nodes, switches or blocks changed."""
    parts: dict[str, Any] = {
        kind: tuple(replace(each, **fields) for each in getattr(cluster, kind))
        for kind, fields in changes.items()
    }
    return replace(cluster, **parts)


def _of_nodes(has: Callable[[ClusterNode], object], **changes: Any) -> Feature:
    """Feature of nodes that is left out by changes of all nodes."""
    return Feature(
        examples=lambda cluster: _named(cluster, "nodes", has),
        leave_out=lambda cluster: _changed(cluster, nodes=changes),
    )


def _without_nodes(has: Callable[[Cluster, ClusterNode], bool]) -> Feature:
    """Feature of single nodes, which are left out themselves."""
    return Feature(
        examples=lambda cluster: _named(cluster, "nodes", partial(has, cluster)),
        leave_out=lambda cluster: replace(
            cluster, nodes=tuple(node for node in cluster.nodes if not has(cluster, node))
        ),
    )


def _height_names(cluster: Cluster) -> dict[str, str]:
    return height_levels({switch.name: switch.parent for switch in cluster.switches})


def _odd_levels(cluster: Cluster) -> Iterator[str]:
    names = _height_names(cluster)
    for switch in cluster.switches:
        if switch.level != names[switch.name]:
            yield f"{switch.level} of switch {switch.name}"


def _levels_without_label(cluster: Cluster) -> Iterator[str]:
    for level in cluster.levels:
        try:
            key_of_level(level.name)
        except ValueError:
            yield level.name


def _with_height_names(cluster: Cluster) -> Cluster:
    names = _height_names(cluster)
    switches = (replace(switch, level=names[switch.name]) for switch in cluster.switches)
    return replace(cluster, switches=tuple(switches))


def _used(cluster: Cluster) -> Callable[[Switch | Block], bool]:
    """Whether a switch or block has nodes below."""
    names = {name for node in cluster.nodes for name in cluster.ancestors(node.name)}
    blocks = {node.block for node in cluster.nodes}
    return lambda each: each.name in (names if isinstance(each, Switch) else blocks)


def _empty(cluster: Cluster) -> Iterator[str]:
    used = _used(cluster)
    for kind in ("switches", "blocks"):
        yield from _named(cluster, kind, lambda each: not used(each))


def _without_empty(cluster: Cluster) -> Cluster:
    return replace(
        cluster,
        switches=tuple(filter(_used(cluster), cluster.switches)),
        blocks=tuple(filter(_used(cluster), cluster.blocks)),
    )


def _switch_labels(goes: Callable[[str], bool]) -> Feature:
    """Feature of labels of switches with some keys."""

    def kept(labels: Labels) -> Labels:
        return tuple(pair for pair in labels if not goes(pair[0]))

    return Feature(
        examples=lambda cluster: _named(
            cluster, "switches", lambda each: kept(each.labels) != each.labels
        ),
        leave_out=lambda cluster: replace(
            cluster,
            switches=tuple(replace(each, labels=kept(each.labels)) for each in cluster.switches),
        ),
    )


def _name(prefix: str) -> Feature:
    return Feature(
        examples=lambda cluster: (key for key, _ in cluster.labels if key.startswith(prefix)),
        leave_out=lambda cluster: replace(
            cluster,
            labels=tuple(pair for pair in cluster.labels if not pair[0].startswith(prefix)),
        ),
    )


_BANDWIDTHS = {
    "nodes": "uplink_bytes_per_s",
    "switches": "uplink_bytes_per_s",
    "blocks": "bandwidth_bytes_per_s",
}


def _bandwidths(cluster: Cluster) -> Iterator[str]:
    for kind, field in _BANDWIDTHS.items():
        yield from _named(cluster, kind, attrgetter(field))


def _is_ragged(cluster: Cluster, node: ClusterNode) -> bool:
    above = cluster.ancestors(node.name)
    return bool(above) and len(above) != len(cluster.levels)


FEATURES: Mapping[str, Feature] = MappingProxyType(
    {
        "loose": _without_nodes(lambda _, node: node.switch is None and node.block is None),
        "unswitched": _without_nodes(
            lambda cluster, node: (
                node.switch is None and node.block is not None and bool(cluster.switches)
            )
        ),
        "unblocked": _without_nodes(
            lambda cluster, node: (
                node.block is None and node.switch is not None and bool(cluster.blocks)
            )
        ),
        "ragged": _without_nodes(_is_ragged),
        "empty": Feature(examples=_empty, leave_out=_without_empty),
        "switches": Feature(
            examples=lambda cluster: _named(cluster, "switches"),
            leave_out=lambda cluster: replace(
                _changed(cluster, nodes={"switch": None, "uplink_bytes_per_s": None}), switches=()
            ),
        ),
        "levels": Feature(examples=_odd_levels, leave_out=_with_height_names),
        "other-levels": Feature(examples=_levels_without_label, leave_out=_with_height_names),
        "blocks": Feature(
            examples=lambda cluster: _named(cluster, "blocks"),
            leave_out=lambda cluster: replace(_changed(cluster, nodes={"block": None}), blocks=()),
        ),
        "block-sizes": Feature(
            examples=lambda cluster: map(str, cluster.block_sizes),
            leave_out=lambda cluster: replace(cluster, block_sizes=()),
        ),
        "kinds": _of_nodes(lambda node: isinstance(node.server, str), server=None),
        "servers": _of_nodes(lambda node: isinstance(node.server, Server), server=None),
        "gpus": _of_nodes(lambda node: node.num_gpus is not None, num_gpus=None),
        "bandwidths": Feature(
            examples=_bandwidths,
            leave_out=lambda cluster: _changed(
                cluster, **{kind: {field: None} for kind, field in _BANDWIDTHS.items()}
            ),
        ),
        "labels": _of_nodes(lambda node: node.labels, labels=()),
        "switch-labels": _switch_labels(lambda key: key not in (LINK_SPEED, TIER)),
        "link-speeds": _switch_labels(lambda key: key == LINK_SPEED),
        "tiers": _switch_labels(lambda key: key == TIER),
        "slurm-names": _name(NAME_PREFIX),
        "nvlink-label": _name(NVLINK_NAME),
    }
)
"""Features by the name under which a format has them, and a user leaves them out."""


def leave_out(cluster: Cluster, names: Iterable[str]) -> Cluster:
    """Cluster without some features, in the order of the table.

    Raises
    ------
    ValueError
        If there is no feature of a name, or no node is left.
    """
    wanted = set(names)
    for name in wanted - set(FEATURES):
        raise ValueError(f"leave out: must be of {', '.join(FEATURES)}; got {name!r}")
    for name, feature in FEATURES.items():
        if name in wanted:
            cluster = feature.leave_out(cluster)
    return cluster


def excess(owner: str, cluster: Cluster, expresses: Container[str]) -> dict[str, str]:
    """Features that a format lacks, each with an example; not those that go with an earlier one.

    Raises
    ------
    ValueError
        If no node is without one of them.
    """
    found: dict[str, str] = {}
    for name, feature in FEATURES.items():
        example = None if name in expresses else feature.find(cluster)
        if example is not None:
            found[name] = example
            try:
                cluster = feature.leave_out(cluster)
            except ValueError:
                raise ValueError(
                    f"{owner} cannot express {name} ({example}), which every node has"
                ) from None
    return found
