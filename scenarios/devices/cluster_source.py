"""Cluster of a subcommand: read from a file, its format found from the text or named."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from des import read_topology
from des.base.flags import option
from des.devices.cluster import Cluster
from des.devices.cluster_files.table import read_cluster
from des.world.clusters import cluster_of_domains

FormatName = Literal[
    "slurm-tree",
    "slurm-block",
    "slurm-conf",
    "slurm-yaml",
    "hypernodes",
    "node-labels",
]
"""Names of `des.devices.cluster_files.table.CLUSTER_FORMATS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFlags:
    """Settings of the one cluster that a subcommand is about; subcommands inherit the flags."""

    cluster: Path | None = option(
        None, "file of the cluster; one of --cluster and --network must be given", is_file=True
    )
    network: str | None = option(
        None, "topology whose domains, racks and servers are the cluster: a name or a file"
    )
    format: FormatName | None = option(
        None, "format of --cluster", default_text="found from the text"
    )


def cluster_of(config: ClusterFlags) -> Cluster:
    """Read the cluster that the flags name.

    Raises
    ------
    ValueError
        If not exactly one is given, or the file cannot be read, naming it.
    """
    if (config.cluster is None) == (config.network is None):
        given = "neither" if config.cluster is None else "both"
        raise ValueError(f"one of --cluster and --network must be given, got {given}")
    if config.network is not None:
        return cluster_of_domains(read_topology(config.network))
    assert config.cluster is not None
    return read_cluster(config.cluster, config.format)
