"""Features of a cluster that a format may lack, and the cluster without them."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from des.devices.cluster import Cluster, ClusterNode, Labels
from des.devices.cluster_files.hypernodes import TIER
from des.devices.cluster_files.label_keys import key_of_level
from des.devices.cluster_files.node_labels import NVLINK_NAME
from des.devices.cluster_files.slurm_conf import LINK_SPEED
from des.devices.cluster_files.slurm_yaml import NAME_PREFIX
from des.devices.cluster_levels import height_levels
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A fact that some clusters have: how to find the first example, and how to leave it out."""

    find: Callable[[Cluster], str | None]
    leave_out: Callable[[Cluster], Cluster]


def _first(names: Iterable[str]) -> str | None:
    return next(iter(names), None)


def _of_nodes(has: Callable[[ClusterNode], object]) -> Callable[[Cluster], str | None]:
    return lambda cluster: _first(f"node {node.name}" for node in cluster.nodes if has(node))


def _nodes_with(**changes: object) -> Callable[[Cluster], Cluster]:
    return lambda cluster: replace(
        cluster,
        nodes=tuple(replace(node, **changes) for node in cluster.nodes),  # type: ignore[arg-type]
    )


def _without_nodes(has: Callable[[Cluster, ClusterNode], bool]) -> Feature:
    """Feature of single nodes, which are left out themselves."""
    return Feature(
        find=lambda cluster: _first(
            f"node {node.name}" for node in cluster.nodes if has(cluster, node)
        ),
        leave_out=lambda cluster: replace(
            cluster, nodes=tuple(node for node in cluster.nodes if not has(cluster, node))
        ),
    )


def _without_switches(cluster: Cluster) -> Cluster:
    bare = _nodes_with(switch=None, uplink_bytes_per_s=None)(cluster)
    return replace(bare, switches=())


def _height_names(cluster: Cluster) -> dict[str, str]:
    return height_levels({switch.name: switch.parent for switch in cluster.switches})


def _odd_level(cluster: Cluster) -> str | None:
    names = _height_names(cluster)
    return _first(
        f"{switch.level} of switch {switch.name}"
        for switch in cluster.switches
        if switch.level != names[switch.name]
    )


def _level_without_label(cluster: Cluster) -> str | None:
    for level in cluster.levels:
        try:
            key_of_level(level.name)
        except ValueError:
            return level.name
    return None


def _with_height_names(cluster: Cluster) -> Cluster:
    names = _height_names(cluster)
    switches = (replace(switch, level=names[switch.name]) for switch in cluster.switches)
    return replace(cluster, switches=tuple(switches))


def _empty(cluster: Cluster) -> list[str]:
    """Switches and blocks without nodes below."""
    used = {name for node in cluster.nodes for name in cluster.ancestors(node.name)}
    blocks = {node.block for node in cluster.nodes}
    return [f"switch {each.name}" for each in cluster.switches if each.name not in used] + [
        f"block {each.name}" for each in cluster.blocks if each.name not in blocks
    ]


def _without_empty(cluster: Cluster) -> Cluster:
    empty = set(_empty(cluster))
    return replace(
        cluster,
        switches=tuple(each for each in cluster.switches if f"switch {each.name}" not in empty),
        blocks=tuple(each for each in cluster.blocks if f"block {each.name}" not in empty),
    )


def _switch_labels(goes: Callable[[str], bool]) -> Feature:
    """Feature of labels of switches with some keys."""

    def kept(labels: Labels) -> Labels:
        return tuple(pair for pair in labels if not goes(pair[0]))

    return Feature(
        find=lambda cluster: _first(
            f"switch {each.name}" for each in cluster.switches if kept(each.labels) != each.labels
        ),
        leave_out=lambda cluster: replace(
            cluster,
            switches=tuple(replace(each, labels=kept(each.labels)) for each in cluster.switches),
        ),
    )


def _name(prefix: str) -> Feature:
    return Feature(
        find=lambda cluster: _first(key for key, _ in cluster.labels if key.startswith(prefix)),
        leave_out=lambda cluster: replace(
            cluster,
            labels=tuple(pair for pair in cluster.labels if not pair[0].startswith(prefix)),
        ),
    )


def _bandwidth(cluster: Cluster) -> str | None:
    return _first(
        [f"node {each.name}" for each in cluster.nodes if each.uplink_bytes_per_s]
        + [f"switch {each.name}" for each in cluster.switches if each.uplink_bytes_per_s]
        + [f"block {each.name}" for each in cluster.blocks if each.bandwidth_bytes_per_s]
    )


def _without_bandwidths(cluster: Cluster) -> Cluster:
    return replace(
        _nodes_with(uplink_bytes_per_s=None)(cluster),
        switches=tuple(replace(each, uplink_bytes_per_s=None) for each in cluster.switches),
        blocks=tuple(replace(each, bandwidth_bytes_per_s=None) for each in cluster.blocks),
    )


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
        "empty": Feature(find=lambda cluster: _first(_empty(cluster)), leave_out=_without_empty),
        "switches": Feature(
            find=lambda cluster: _first(f"switch {each.name}" for each in cluster.switches),
            leave_out=_without_switches,
        ),
        "levels": Feature(find=_odd_level, leave_out=_with_height_names),
        "other-levels": Feature(find=_level_without_label, leave_out=_with_height_names),
        "blocks": Feature(
            find=lambda cluster: _first(f"block {each.name}" for each in cluster.blocks),
            leave_out=lambda cluster: replace(_nodes_with(block=None)(cluster), blocks=()),
        ),
        "block-sizes": Feature(
            find=lambda cluster: _first(str(size) for size in cluster.block_sizes),
            leave_out=lambda cluster: replace(cluster, block_sizes=()),
        ),
        "kinds": Feature(
            find=_of_nodes(lambda node: isinstance(node.server, str)),
            leave_out=_nodes_with(server=None),
        ),
        "servers": Feature(
            find=_of_nodes(lambda node: isinstance(node.server, Server)),
            leave_out=_nodes_with(server=None),
        ),
        "gpus": Feature(
            find=_of_nodes(lambda node: node.num_gpus is not None),
            leave_out=_nodes_with(num_gpus=None),
        ),
        "bandwidths": Feature(find=_bandwidth, leave_out=_without_bandwidths),
        "labels": Feature(
            find=_of_nodes(lambda node: node.labels), leave_out=_nodes_with(labels=())
        ),
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
