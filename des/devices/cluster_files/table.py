"""Formats of clusters, one row each: reader, writer, and the features that it can express."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from des.base.checks import prefixed_errors
from des.base.text_files import read_text
from des.devices.cluster import Cluster
from des.devices.cluster_files.features import FEATURES, excess, leave_out
from des.devices.cluster_files.hypernodes import read_hypernodes, write_hypernodes
from des.devices.cluster_files.node_labels import read_node_labels, write_node_labels
from des.devices.cluster_files.slurm_conf import (
    read_slurm_conf,
    write_slurm_block,
    write_slurm_conf,
    write_slurm_tree,
)
from des.devices.cluster_files.slurm_yaml import read_slurm_yaml, write_slurm_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFormat:
    """A format: ``sign`` is a pattern that its files alone have, ``expresses`` names features.

    ``needs`` is the feature without which a file of it would be empty.
    """

    about: str
    read: Callable[[str], Cluster]
    write: Callable[[Cluster], str]
    expresses: frozenset[str]
    needs: str | None = None
    sign: str | None = None


_LABELS = {"switches", "blocks", "ragged", "unswitched", "unblocked"}
_PLACES = _LABELS | {"other-levels"}
_LABELLED = _LABELS | {"levels", "labels", "gpus", "nvlink-label"}

CLUSTER_FORMATS: Mapping[str, ClusterFormat] = MappingProxyType(
    {
        "slurm-tree": ClusterFormat(
            about="Slurm's topology.conf, switches (topology/tree)",
            read=read_slurm_conf,
            write=write_slurm_tree,
            expresses=frozenset({"switches", "other-levels", "ragged", "link-speeds"}),
            needs="switches",
        ),
        "slurm-block": ClusterFormat(
            about="Slurm's topology.conf, blocks (topology/block)",
            read=read_slurm_conf,
            write=write_slurm_block,
            expresses=frozenset({"blocks", "block-sizes"}),
            needs="blocks",
        ),
        "slurm-conf": ClusterFormat(
            about="Slurm's topology.conf, switches and blocks",
            read=read_slurm_conf,
            write=write_slurm_conf,
            expresses=frozenset(_PLACES | {"block-sizes", "link-speeds"}),
            sign=r"(?im)^\s*(SwitchName|BlockName|BlockSizes)\s*=",
        ),
        "slurm-yaml": ClusterFormat(
            about="Slurm's topology.yaml, a tree and blocks",
            read=read_slurm_yaml,
            write=write_slurm_yaml,
            expresses=frozenset(_PLACES | {"block-sizes", "slurm-names"}),
            sign=r"(?m)^\s*-\s+topology\s*:",
        ),
        "hypernodes": ClusterFormat(
            about="Volcano's HyperNodes (YAML)",
            read=read_hypernodes,
            write=write_hypernodes,
            expresses=frozenset(
                {"switches", "levels", "other-levels", "ragged", "loose", "empty", "labels", "gpus"}
                | {"tiers"}
            ),
            needs="switches",
            sign=r"""(?m)["']?kind["']?\s*:\s*["']?HyperNode\b""",
        ),
        "node-labels": ClusterFormat(
            about="Kubernetes nodes with labels, kubectl get nodes -o yaml or json",
            read=read_node_labels,
            write=write_node_labels,
            expresses=frozenset(_LABELLED | {"loose"}),
            sign=r"""(?m)["']?kind["']?\s*:\s*["']?Node\b""",
        ),
    }
)
"""Formats by name; of several whose sign a text has, the first counts."""

_NOT_READ: Mapping[str, str] = MappingProxyType(
    {
        r"""(?m)["']?kind["']?\s*:\s*["']?Topology\b""": "kind: Topology, an object of Kueue",
        r"(?m)^(switches|nodes|capacity_blocks|blocks)\s*:": "a model of topograph",
        r'^\s*\{\s*"instances"\s*:': "instances, a graph of topograph",
        r"(?im)^\s*NodeName\s*=": "nodes of slurm.conf, whose switches are in topology.conf",
    }
)
"""Texts that are known and not read, by their signs."""


def format_of_text(text: str) -> str:
    """Name of the format that a text is in.

    Raises
    ------
    ValueError
        If it has the sign of none, or of a known form that is not read; the message lists the
        formats.
    """
    formats = ", ".join(CLUSTER_FORMATS)
    for sign, form in _NOT_READ.items():
        if re.search(sign, text):
            raise ValueError(f"format must be one of {formats}; got {form}, which is not read")
    for name, row in CLUSTER_FORMATS.items():
        if row.sign is not None and re.search(row.sign, text):
            return name
    raise ValueError(f"format is not clear from the text: name one of {formats}")


def read_cluster(path: Path, format_name: str | None = None) -> Cluster:
    """Read a cluster from a file; without a name of a format, that of its text.

    Raises
    ------
    ValueError
        If the file cannot be read or is not sound, naming it.
    """
    text = read_text(path)
    if not re.sub(r"#.*", "", text).strip():
        raise ValueError(
            f"{path}: no SwitchName or NodeName in {path.name}, nor a list of "
            "Kubernetes nodes: comments alone"
        )
    with prefixed_errors(f"{path}: "):
        return CLUSTER_FORMATS[format_name or format_of_text(text)].read(text)


def write_cluster(cluster: Cluster, format_name: str, without: Iterable[str] = ()) -> str:
    """Text of a cluster in a format.

    Parameters
    ----------
    cluster, format_name
        Cluster and the name of the format.
    without
        Names of features that may be lost.

    Raises
    ------
    ValueError
        If the cluster has a feature that the format cannot express, or lacks what it needs.
    """
    row = CLUSTER_FORMATS[format_name]
    cluster = leave_out(cluster, without)
    if row.needs is not None and FEATURES[row.needs].find(cluster) is None:
        raise ValueError(f"{format_name} needs {row.needs}, and the cluster has none")
    lost = excess(format_name, cluster, row.expresses)
    if lost:
        examples = ", ".join(f"{name} ({example})" for name, example in lost.items())
        raise ValueError(
            f"{format_name} cannot express {examples}; leave out {','.join(lost)} to write the rest"
        )
    return row.write(cluster)
