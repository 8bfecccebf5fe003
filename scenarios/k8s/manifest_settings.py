"""Settings of manifests: names, versions, sizes, and the server that they are for."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from des.devices.server import Server

Manifest = dict[str, Any]

GANG_APIS: Mapping[str, str | None] = MappingProxyType(
    {"1.34": None, "1.35": "v1alpha1", "1.36": "v1alpha2", "1.37": "v1beta1"}
)
"""Version of ``scheduling.k8s.io`` with gangs, by version of Kubernetes; None before there was."""

GANG_GATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "1.35": ("GenericWorkload", "GangScheduling"),
        "1.36": ("GenericWorkload", "GangScheduling"),
        "1.37": ("GenericWorkload",),
    }
)
"""Feature gates that kinds of gangs need, off by default, by version of Kubernetes.

Source: kubernetes, pkg/features/kube_features.go.
"""

USER_ID = GROUP_ID = 10001
"""User and group of the image, as in Dockerfile."""

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """Settings of each pod of the gang.

    ``spread`` are topology keys with the most pods by which their units may differ. With
    ``shows_gpus`` CUDA sees the GPUs that the binding's annotation names.
    """

    image: str
    num_gpus: int
    num_cpus: int
    memory: str
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, str], ...]
    spread: Mapping[str, int]
    shows_gpus: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestSettings:
    """Settings that manifests are made from.

    Attributes
    ----------
    server, node
        Devices of a node, and its name.
    resources
        Extended resources of GPUs; pods ask for the first.
    gang
        Name of the gang in the example, of which pods have numbers.
    weight
        Weight of the extender: at most 100 times it is added to the in-tree scores.
    weights
        Weights of the parts of a score.
    kube_reserved_bytes, system_reserved_bytes, eviction_bytes
        Memory that the kubelet keeps from pods.
    gpu_nodes, runtime_class
        Labels of the nodes with GPUs, and the class of container runtime that shows GPUs to pods,
        empty for the default one.
    all_reduce_bound_s
        Predicted all-reduce of 100 MB above which a pod raises an alert. [s]
    """

    server: Server
    node: str
    kubernetes: str
    namespace: str
    image: str
    resources: tuple[str, ...]
    prefix: str
    scheduler: str
    weight: int
    weights: Mapping[str, float]
    http_timeout_s: float
    is_tls: bool
    gang: str
    gang_size: int
    pod: PodSettings
    topology_policy: str
    cpu_manager_options: tuple[str, ...]
    kube_reserved_bytes: int
    system_reserved_bytes: int
    eviction_bytes: int
    dra_driver: str
    gpu_nodes: Mapping[str, str]
    runtime_class: str
    all_reduce_bound_s: float

    def __post_init__(self) -> None:
        if self.kubernetes not in GANG_APIS:
            raise ValueError(
                f"manifests: kubernetes must be one of {', '.join(GANG_APIS)}, "
                f"got {self.kubernetes!r}"
            )
        for name in ("kube_reserved_bytes", "system_reserved_bytes", "eviction_bytes"):
            value = getattr(self, name)
            if value < MIB or value % MIB:
                raise ValueError(f"manifests: {name} must be whole MiB, at least one, got {value}")

    @property
    def gang_api(self) -> str | None:
        """``apiVersion`` of Workload and PodGroup; None where Kubernetes has none."""
        version = GANG_APIS[self.kubernetes]
        return None if version is None else f"scheduling.k8s.io/{version}"


def metadata(name: str, settings: ManifestSettings, **more: Any) -> Manifest:
    """Metadata of an object in the namespace of the settings."""
    return {"name": name, "namespace": settings.namespace, **more}


def cluster_role_binding(
    name: str, role: str, account: str, settings: ManifestSettings
) -> Manifest:
    """Binding of a role of the whole cluster to an account of the namespace."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        },
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": settings.namespace}],
    }
