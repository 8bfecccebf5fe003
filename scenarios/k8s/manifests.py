"""Manifests: scheduler with its extender, node agent, kubelet, gang, DRA objects, rules."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import yaml

from des.base.atomic_write import write_together
from des.base.checks import require_count, require_known, require_positive
from des.base.command import UsageError
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.base.names import counted
from scenarios.devices.sources import server_of
from scenarios.k8s import (
    agent_manifests,
    gang_manifests,
    node_manifests,
    rules_manifest,
    scheduler_manifests,
)
from scenarios.k8s.manifest_models import check_configuration
from scenarios.k8s.manifest_settings import Manifest, ManifestSettings
from scenarios.k8s.pod_flags import PodFlags, pod_settings, size_bytes
from scenarios.k8s.weights_file import read_weights

with lazy_imports(__name__):
    from scenarios.k8s import api_server, cluster_check, schema_check

_API_TIMEOUT_S = 10.0
_CPU_OPTIONS = (
    *("full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket"),
    *("distribute-cpus-across-cores", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"),
)

MANIFESTS: Mapping[str, Callable[[ManifestSettings], Manifest | list[Manifest]]] = MappingProxyType(
    {
        "namespace": scheduler_manifests.namespace,
        "scheduler-config": scheduler_manifests.scheduler_config,
        "config-map": scheduler_manifests.config_map,
        "rights": scheduler_manifests.rights,
        "extender": scheduler_manifests.extender_deployment,
        "service": scheduler_manifests.service,
        "scheduler": scheduler_manifests.scheduler_deployment,
        "agent": agent_manifests.agent,
        "kubelet": node_manifests.kubelet_config,
        "gpu-topology": node_manifests.gpu_topology,
        "resource-slice": node_manifests.resource_slice,
        "resource-claim": node_manifests.resource_claim,
        "gang": gang_manifests.gang,
        "pods": gang_manifests.pods,
        "rules": rules_manifest.prometheus_rule,
    }
)
"""Maker of each file of manifests, by name."""

EXAMPLES = f"""\
manifests: {", ".join(MANIFESTS)}

examples:
  python -m scenarios.k8s manifests --simulate dgx-h100 --node gpu-a --out manifests
  python -m scenarios.k8s manifests --file topo.txt,numactl.txt,pci.txt --only kubelet
  python -m scenarios.k8s manifests --simulate dgx-a100 --kubernetes 1.36 --validate
  python -m scenarios.k8s manifests --simulate dgx-a100 --check --kubeconfig ~/.kube/config
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(PodFlags):
    """Flags of manifests."""

    only: tuple[str, ...] = option((), "manifests to write", default_text="all")
    out: Path | None = option(
        None, "folder, made if need be, for a file each; else they are printed"
    )
    validate: bool = option(
        False, "check by Kubernetes' JSON schemas (extra k8s: kubernetes-validate)"
    )
    check: bool = option(False, "ask the API server of --kubeconfig whether it has all kinds")
    kubeconfig: Path | None = option(None, "access to the API server, for --check", is_file=True)
    kubernetes: Literal["1.34", "1.35", "1.36", "1.37"] = option("1.37", "version of Kubernetes")
    node: str = option("gpu-a", "name of the node of the server")
    namespace: str = option("topology", "namespace of everything")
    image: str = option("eastwest:latest", "image of extender, agent and pods")
    resource: tuple[str, ...] = option(
        ("nvidia.com/gpu",),
        "extended resources that are GPUs, such as huawei.com/Ascend910B; pods ask for the first",
    )
    prefix: str = option("topology.example.com", "prefix of annotations and labels")
    scheduler: str = option("topology-scheduler", "name of the scheduler")
    weight: int = option(
        3,
        "weight of the extender; it adds up to 100 times this, where all in-tree plugins "
        "with their default weights add up to 1,200",
    )
    weights: str | None = option(
        None,
        "weights of a score, as of the extender: a file, or profile",
        default_text="topology 40, numa 30, balance 20, preference 10",
    )
    http_timeout_s: float = option(5.0, "time that kube-scheduler waits for the extender [s]")
    tls: bool = option(True, "TLS with client certificates, from secrets NAME-tls")
    gang_size: int = option(2, "pods of the gang")
    topology_policy: Literal["none", "best-effort", "restricted", "single-numa-node"] = option(
        "restricted", "policy of the kubelet's topology manager"
    )
    cpu_manager_options: tuple[str, ...] = option(
        (), f"options of the kubelet's CPU manager: {', '.join(_CPU_OPTIONS)}", default_text="none"
    )
    kube_reserved: str = option("1GiB", "memory kept for kubelet and runtime")
    system_reserved: str = option("1GiB", "memory kept for the system")
    eviction: str = option("100MiB", "free memory below which pods are evicted")
    dra_driver: str = option("gpu.nvidia.com", "DRA driver and device class of the GPUs")
    gpu_nodes: tuple[str, ...] = option(
        ("nvidia.com/gpu.present=true",), "labels of the nodes that the node agent runs on"
    )
    runtime_class: str = option(
        "nvidia", "RuntimeClass in which the node agent sees the GPUs; empty for the default one"
    )
    all_reduce_bound_s: float = option(
        0.02, "predicted all-reduce of 100 MB from which a pod is an alert [s]"
    )

    def __post_init__(self) -> None:
        owner = "manifests"
        for name in self.only:
            require_known("--only: unknown", name, MANIFESTS, UsageError)
        for name in ("weight", "gang_size"):
            require_count(owner, name, getattr(self, name))
        for name in self.cpu_manager_options:
            require_known("--cpu-manager-options: unknown", name, _CPU_OPTIONS, UsageError)
        for label in self.gpu_nodes:
            if not all(label.partition("=")):
                raise UsageError(f"--gpu-nodes must be KEY=VALUE, got {label!r}")
        if self.check != (self.kubeconfig is not None):
            raise UsageError("--check and --kubeconfig must be given together")
        for name in ("http_timeout_s", "all_reduce_bound_s"):
            require_positive(owner, name, getattr(self, name))


def run(config: Config) -> None:
    """Make, check and write the manifests."""
    settings = _settings(config)
    made = {name: MANIFESTS[name](settings) for name in config.only or MANIFESTS}
    files = {name: each if isinstance(each, list) else [each] for name, each in made.items()}
    for document in (document for documents in files.values() for document in documents):
        if not check_configuration(document) and config.validate:
            schema_check.check_schema(document, config.kubernetes)
    if config.kubeconfig is not None:
        api = api_server.reach(config.kubeconfig, in_cluster=False, timeout_s=_API_TIMEOUT_S)
        assert api is not None
        cluster_check.require_kinds(api, [each for own in files.values() for each in own], settings)
    texts = {
        name: yaml.safe_dump_all(documents, sort_keys=False, width=100)
        for name, documents in files.items()
        if documents
    }
    if config.out is None:
        sys.stdout.write("---\n".join(texts.values()))
        return
    config.out.mkdir(parents=True, exist_ok=True)
    write_together({config.out / f"{name}.yaml": text.encode() for name, text in texts.items()})
    checked = "by their schemas" if config.validate else "configurations alone"
    checked += ", kinds by the API server" if config.check else ""
    sys.stdout.write(f"{config.out}: {counted(len(texts), 'file')}, checked: {checked}\n")


def _settings(config: Config) -> ManifestSettings:
    return ManifestSettings(
        server=server_of(config),
        node=config.node,
        kubernetes=config.kubernetes,
        namespace=config.namespace,
        image=config.image,
        resources=config.resource,
        prefix=config.prefix,
        scheduler=config.scheduler,
        weight=config.weight,
        weights=asdict(read_weights(config.weights)),
        http_timeout_s=config.http_timeout_s,
        is_tls=config.tls,
        gang=config.pod_name,
        gang_size=config.gang_size,
        pod=pod_settings(config, config.image),
        topology_policy=config.topology_policy,
        cpu_manager_options=config.cpu_manager_options,
        kube_reserved_bytes=size_bytes("--kube-reserved", config.kube_reserved),
        system_reserved_bytes=size_bytes("--system-reserved", config.system_reserved),
        eviction_bytes=size_bytes("--eviction", config.eviction),
        dra_driver=config.dra_driver,
        gpu_nodes=dict(label.split("=", 1) for label in config.gpu_nodes),
        runtime_class=config.runtime_class,
        all_reduce_bound_s=config.all_reduce_bound_s,
    )
