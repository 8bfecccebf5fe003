"""Cluster of a subcommand: read from a file, its format found from the text or named."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from des.base.flags import option, required
from des.devices.cluster import Cluster
from des.devices.cluster_files.table import read_cluster

FormatName = Literal[
    "slurm-tree",
    "slurm-block",
    "slurm-conf",
    "slurm-yaml",
    "topograph",
    "topograph-graph",
    "kueue",
    "hypernodes",
    "node-labels",
]
"""Names of `des.devices.cluster_files.table.CLUSTER_FORMATS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFlags:
    """Settings of the one cluster that a subcommand is about; subcommands inherit the flags."""

    cluster: Path = required("file of the cluster", is_file=True)
    format: FormatName | None = option(
        None, "format of --cluster", default_text="found from the text"
    )


def cluster_of(config: ClusterFlags) -> Cluster:
    """Read the cluster that the flags name.

    Raises
    ------
    ValueError
        If the file cannot be read, naming it.
    """
    return read_cluster(config.cluster, config.format)
