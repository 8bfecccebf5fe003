"""Node agent: describe the GPUs of a node on its Node object, again and again.

The labels and the annotation are those of ``python -m scenarios.devices labels --to patch``; the
extender reads the annotation. The manifest ``agent`` runs this on every node with GPUs.
"""

import logging
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from des.base.checks import require_positive
from des.base.command import UsageError
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from des.devices.files.pci_list import with_pcie_roots
from des.devices.k8s.node_text import node_patch
from scenarios.devices.sources import ServerFlags, server_of
from scenarios.frame.log_lines import log_to_stderr

with lazy_imports(__name__):
    from scenarios.k8s import api_server

LOG = logging.getLogger("scenarios.k8s")

EXAMPLES = """\
examples:
  python -m scenarios.k8s agent --nvml --sysfs /sys --node gpu-a --in-cluster
  python -m scenarios.k8s agent --file topo.txt,pci.txt --node gpu-a --kubeconfig ~/.kube/config \\
    --every-s 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ServerFlags):
    """Flags of the agent."""

    node: str | None = option(None, "name of the node", default_text="name of this machine")
    prefix: str = option("topology.example.com", "prefix of labels and annotation")
    sysfs: Path | None = option(
        None, "root of the sysfs tree with the PCIe roots of the GPUs, for --nvml"
    )
    kubeconfig: Path | None = option(None, "access to the API server", is_file=True)
    in_cluster: bool = option(False, "access to the API server by this pod's service account")
    every_s: float = option(300.0, "time between two readings; 0 ends after the first [s]")
    api_timeout_s: float = option(10.0, "time for an answer of the API server [s]")

    def __post_init__(self) -> None:
        if self.every_s:
            require_positive("agent", "every_s", self.every_s)
        require_positive("agent", "api_timeout_s", self.api_timeout_s)
        if (self.kubeconfig is None) != self.in_cluster:
            raise UsageError("one of --kubeconfig and --in-cluster must be given")


def run(config: Config) -> None:
    """Read the server and patch the node, until told to stop, or once."""
    log_to_stderr(logging.INFO)
    api = api_server.reach(config.kubeconfig, config.in_cluster, config.api_timeout_s)
    assert api is not None
    name = config.node or platform.node()
    while True:
        error = _patch_node(config, api, name)
        if not config.every_s:
            if error:
                raise ValueError(error)
            return
        if error:
            LOG.warning("%s; again in %g s", error, config.every_s)
        with SPEAKER.resting():
            time.sleep(config.every_s)


def _patch_node(config: Config, api: "api_server.ApiServer", name: str) -> str:
    """Read the server and patch the node; returns the error, empty if there was none."""
    try:
        server = server_of(config)
        if config.sysfs is not None:
            server = with_pcie_roots(server, config.sysfs)
        error = api.patch(
            f"/api/v1/nodes/{quote(name, safe='')}", node_patch(server, config.prefix)
        )
    except ValueError as failure:
        return f"node {name}: {failure}"
    if error:
        return f"node {name}: {error}"
    LOG.info("node %s: %d GPUs described", name, server.num_gpus)
    return ""
