"""Labels of Kubernetes nodes that name places: which level each of them is.

Sources: Kubernetes' well-known labels (kubernetes.io/docs/reference/node/node-labels), Kueue's page
on topologies, topograph's page on node labels (docs/reference/node-labels.md), which lists those of
cloud providers as well.
"""

import re

LEVEL_OF_KEY = {
    "topology.kubernetes.io/region": "region",
    "topology.kubernetes.io/zone": "zone",
    "network.topology.nvidia.com/core": "core",
    "network.topology.nvidia.com/spine": "spine",
    "network.topology.nvidia.com/leaf": "leaf",
    "topology.k8s.aws/network-node-layer-1": "aws-layer-1",
    "topology.k8s.aws/network-node-layer-2": "aws-layer-2",
    "topology.k8s.aws/network-node-layer-3": "aws-layer-3",
    "oci.oraclecloud.com/host.network_block_id": "oci-block",
    "oci.oraclecloud.com/host.rack_id": "oci-rack",
    "cloud.google.com/gce-topology-block": "gce-block",
    "cloud.google.com/gce-topology-subblock": "gce-subblock",
    "cloud.provider.com/topology-block": "block",
    "cloud.provider.com/topology-rack": "rack",
}
"""Level of every known key, coarse to fine."""

KEY_OF_LEVEL = {level: key for key, level in LEVEL_OF_KEY.items()}

NVLINK_KEYS = (
    "network.topology.nvidia.com/accelerator",
    "accelerator.topograph.run/domain",
    "nvidia.com/gpu.clique",
)
"""Keys that name the NVLink domain; the first that a list of nodes has counts."""

REPEATED = ("block", "rack", "oci-block", "oci-rack", "gce-block", "gce-subblock")
"""Levels whose names may come again below another parent, as ``r1`` in two blocks."""

_TIER = re.compile(r"fabric\.topograph\.run/tier-(\d+)")
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def level_of_key(key: str) -> str:
    """Level that a label names: a short name, or the key itself where there is none.

    Examples
    --------
    >>> level_of_key("cloud.provider.com/topology-rack"), level_of_key("example.com/row")
    ('rack', 'example.com/row')
    """
    tier = _TIER.fullmatch(key)
    return f"fabric-tier-{tier[1]}" if tier else LEVEL_OF_KEY.get(key, key)


def key_of_level(level: str) -> str:
    """Label that names a level.

    Raises
    ------
    ValueError
        If the level has no label; the message lists those that have.
    """
    if level in KEY_OF_LEVEL:
        return KEY_OF_LEVEL[level]
    if level.startswith("fabric-tier-"):
        return f"fabric.topograph.run/tier-{level.removeprefix('fabric-tier-')}"
    if "/" in level:
        return level
    known = ", ".join(KEY_OF_LEVEL)
    raise ValueError(f"level {level} has no label of nodes; those of {known} have")


def known_keys(keys: set[str]) -> list[str]:
    """Keys among some that name levels of places, coarse to fine."""
    tiers = sorted((key for key in keys if _TIER.fullmatch(key)), key=_tier_number, reverse=True)
    return [key for key in LEVEL_OF_KEY if key in keys] + tiers


def _tier_number(key: str) -> int:
    return int(key.rpartition("-")[2])


def label_value(kind: str, name: str) -> str:
    """Name as the value of a label: that of a unit without the parent in front.

    Raises
    ------
    ValueError
        If Kubernetes does not allow it.
    """
    value = name.rpartition("/")[2]
    if not _VALUE.fullmatch(value):
        raise ValueError(
            f"{kind} {name}: a label must be at most 63 letters, digits, '-', '_' and '.', "
            f"got {value!r}"
        )
    return value
