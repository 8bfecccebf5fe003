"""Print labels of a cluster's nodes, its tree, or the cluster in another system's format.

With --file, --simulate or --nvml: labels and annotation of one Kubernetes node from its server.
"""

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from des.base.atomic_write import write_atomically
from des.base.command import UsageError
from des.base.flags import option
from des.base.names import counted
from des.devices.cluster import Cluster
from des.devices.cluster_files.features import FEATURES
from des.devices.cluster_files.label_keys import level_of_key
from des.devices.cluster_files.node_labels import place_labels
from des.devices.cluster_files.table import CLUSTER_FORMATS, write_cluster
from des.devices.k8s.node_text import node_patch, server_labels
from scenarios.devices.cluster_source import ClusterFlags, FormatName, cluster_of
from scenarios.devices.cluster_tree import cluster_text
from scenarios.devices.sources import ServerFlags, server_of

_WIDTH = max(map(len, CLUSTER_FORMATS))
_FORMATS = "".join(f"  {name:{_WIDTH}}  {row.about}\n" for name, row in CLUSTER_FORMATS.items())

EXAMPLES = f"""\
formats:
{_FORMATS}
features that --leave-out may name: {", ".join(FEATURES)}

examples:
  python -m scenarios.devices labels --cluster topology.conf
  python -m scenarios.devices labels --cluster topology.conf --to tree
  python -m scenarios.devices labels --cluster nodes.yaml --to slurm-tree --leave-out labels,blocks
  python -m scenarios.devices labels --cluster topology.conf --to node-labels \\
    --label-keys spine=cloud.provider.com/topology-block,leaf=cloud.provider.com/topology-rack
  kubectl get nodes -o json >nodes.json; python -m scenarios.devices labels --cluster nodes.json \\
    --to hypernodes --leave-out labels,gpus --out hypernodes.yaml
  nvidia-smi topo -m >topo.txt; nvidia-smi --query-gpu=index,pci.bus_id --format=csv >pci.txt
  python -m scenarios.devices labels --file topo.txt,pci.txt --node gpu-a --to patch --out a.json
  kubectl patch node gpu-a --type merge --patch-file a.json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ClusterFlags):
    """Flags of what is printed."""

    to: Literal["labels", "tree", "patch"] | FormatName = option(
        "labels",
        "labels of every node, tree of switches, or a format to write; patch: of one server, the "
        "merge patch with labels and annotation of its node",
    )
    file: tuple[Path, ...] = option(
        (), "files about one server, as those of show, in place of a cluster", default_text="none"
    )
    simulate: str | None = option(None, "kind of server, in place of a cluster")
    nvml: bool = option(False, "read the GPUs of this machine by NVML, in place of a cluster")
    node: str | None = option(
        None, "of one server: name of its node", default_text="name of this machine"
    )
    prefix: str = option("topology.example.com", "of one server: prefix of labels and annotation")
    leave_out: tuple[str, ...] = option(
        (), "features that --to cannot express and may lose", default_text="none"
    )
    label_keys: tuple[str, ...] = option(
        (),
        "labels of levels, as leaf=cloud.provider.com/topology-rack",
        default_text="those of docs/cluster.md",
    )
    out: Path | None = option(None, "file to write", default_text="print")


def run(config: Config) -> int:
    """Print or write the cluster."""
    if config.file or config.simulate is not None or config.nvml:
        return _written(config, _server_text(config), "1 node")
    if config.to == "patch":
        raise UsageError("--to patch needs one server: --file, --simulate or --nvml")
    cluster = _label(cluster_of(config), config.label_keys)
    if config.to == "tree":
        text = cluster_text(cluster)
    elif config.to == "labels":
        text = _labels_text(cluster)
    else:
        text = write_cluster(cluster, config.to, config.leave_out)
    return _written(config, text, counted(len(cluster.nodes), "node"))


def _written(config: Config, text: str, what: str) -> int:
    """Print a text, or write it to the file that is named."""
    if config.out is None:
        sys.stdout.write(text)
    else:
        write_atomically(config.out, text.encode())
        sys.stdout.write(f"{config.out}: {what} as {config.to}\n")
    return 0


def _server_text(config: Config) -> str:
    """Labels of one server's node, or the patch with labels and annotation."""
    if config.cluster is not None or config.network is not None:
        raise UsageError("a server and a cluster cannot both be given")
    server = server_of(ServerFlags(file=config.file, simulate=config.simulate, nvml=config.nvml))
    node = config.node or platform.node()
    if config.to == "labels":
        labels = server_labels(server, config.prefix)
        return _line(node, labels)
    if config.to != "patch":
        raise UsageError(f"--to must be labels or patch for one server, got {config.to}")
    return json.dumps(node_patch(server, config.prefix), indent=2) + "\n"


def _label(cluster: Cluster, keys: Sequence[str]) -> Cluster:
    """Cluster whose levels are those of the labels that the user gives them."""
    level_of: dict[str, str] = {}
    for text in keys:
        level, _, key = text.partition("=")
        if not level or not key:
            raise UsageError(
                f"--label-keys must be LEVEL=KEY, as leaf=example.com/rack, got {text!r}"
            )
        level_of[cluster.level(level).name] = level_of_key(key)
    switches = (
        replace(switch, level=level_of.get(switch.level, switch.level))
        for switch in cluster.switches
    )
    return replace(cluster, switches=tuple(switches))


def _labels_text(cluster: Cluster) -> str:
    """Nodes with the labels of their places, one a line, as ``kubectl label node`` takes them."""
    return "".join(_line(node.name, place_labels(cluster, node)) for node in cluster.nodes)


def _line(node: str, labels: Mapping[str, str]) -> str:
    return " ".join((node, *(f"{key}={value}" for key, value in labels.items()))) + "\n"
