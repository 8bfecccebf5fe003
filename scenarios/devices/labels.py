"""Print labels of the nodes of a cluster, its tree, or the cluster in another system's format."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from des.base.atomic_write import write_atomically
from des.base.flags import option
from des.devices.cluster import Cluster
from des.devices.cluster_files.features import FEATURES
from des.devices.cluster_files.node_labels import places_of
from des.devices.cluster_files.table import CLUSTER_FORMATS, write_cluster
from scenarios.devices.cluster_source import ClusterFlags, FormatName, cluster_of
from scenarios.devices.cluster_tree import cluster_text

_WIDTH = max(map(len, CLUSTER_FORMATS))
_FORMATS = "".join(f"  {name:{_WIDTH}}  {row.about}\n" for name, row in CLUSTER_FORMATS.items())

EXAMPLES = f"""\
formats:
{_FORMATS}
features that --leave-out may name: {", ".join(FEATURES)}

examples:
  python -m scenarios.devices labels --cluster topology.conf
  python -m scenarios.devices labels --cluster topology.conf --to tree
  python -m scenarios.devices labels --cluster model.yaml --to slurm-tree --leave-out labels,blocks
  kubectl get nodes -o json >nodes.json; python -m scenarios.devices labels --cluster nodes.json \\
    --to kueue --out kueue.yaml
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ClusterFlags):
    """Settings of what is printed; the fields are the flags."""

    to: Literal["labels", "tree"] | FormatName = option(
        "labels", "labels of every node, tree of switches, or a format to write"
    )
    leave_out: tuple[str, ...] = option(
        (), "features that --to cannot express and may lose", default_text="none"
    )
    out: Path | None = option(None, "file to write (default: print)")


def run(config: Config) -> int:
    """Print or write the cluster."""
    cluster = cluster_of(config)
    if config.to == "tree":
        text = cluster_text(cluster)
    elif config.to == "labels":
        text = _labels_text(cluster)
    else:
        text = write_cluster(cluster, config.to, config.leave_out)
    if config.out is None:
        sys.stdout.write(text)
    else:
        write_atomically(config.out, text.encode())
        sys.stdout.write(f"{config.out}: {len(cluster.nodes)} nodes as {config.to}\n")
    return 0


def _labels_text(cluster: Cluster) -> str:
    """Nodes with the labels of their places, one a line, as ``kubectl label node`` takes them."""
    lines = []
    for node in cluster.nodes:
        places = places_of(cluster, node)
        lines.append(" ".join((node.name, *(f"{key}={value}" for key, value in places.items()))))
    return "".join(f"{line}\n" for line in lines)
