"""Models of kinds that Kubernetes' JSON schemas lack, written from its reference of configurations.

Sources: kubernetes.io, "kube-scheduler Configuration (v1)", "Kubelet Configuration (v1beta1)";
prometheus-operator.dev, "API reference", PrometheusRule. Only fields that manifests here set are
known, so that a misspelt one is refused.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from des.base.quantities import SIZE_BYTES, parse_quantity
from des.base.strict_forms import form_errors

_DURATION = r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$"


class _Kind(BaseModel):
    """A part of a configuration: keys in Go's spelling, no others."""

    model_config = ConfigDict(
        extra="forbid", strict=True, alias_generator=to_camel, allow_inf_nan=False
    )


class _TlsConfig(_Kind):
    insecure: bool = False
    cert_file: str
    key_file: str
    ca_file: str


class _ManagedResource(_Kind):
    name: str = Field(pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")
    ignored_by_scheduler: bool


class _Extender(_Kind):
    url_prefix: str = Field(pattern=r"^https?://")
    filter_verb: str
    prioritize_verb: str
    preempt_verb: str
    bind_verb: str
    weight: int = Field(gt=0)
    enable_https: bool = Field(alias="enableHTTPS")
    tls_config: _TlsConfig | None = None
    http_timeout: str = Field(alias="httpTimeout", pattern=_DURATION)
    node_cache_capable: bool
    managed_resources: list[_ManagedResource]
    ignorable: bool


class _LeaderElection(_Kind):
    leader_elect: bool
    resource_name: str
    resource_namespace: str


class _Profile(_Kind):
    scheduler_name: str


class _KubeSchedulerConfiguration(_Kind):
    api_version: Literal["kubescheduler.config.k8s.io/v1"]
    kind: Literal["KubeSchedulerConfiguration"]
    leader_election: _LeaderElection
    profiles: list[_Profile] = Field(min_length=1)
    percentage_of_nodes_to_score: int = Field(ge=0, le=100)
    extenders: list[_Extender]

    @model_validator(mode="after")
    def _one_binds(self) -> Self:
        if sum(bool(each.bind_verb) for each in self.extenders) > 1:
            raise ValueError("extenders: at most one may bind")
        return self


class _MemoryReservation(_Kind):
    numa_node: int = Field(ge=0)
    limits: dict[str, str]


class _KubeletConfiguration(_Kind):
    api_version: Literal["kubelet.config.k8s.io/v1beta1"]
    kind: Literal["KubeletConfiguration"]
    cpu_manager_policy: Literal["none", "static"]
    memory_manager_policy: Literal["None", "Static"]
    cpu_manager_policy_options: dict[str, str] | None = None
    topology_manager_policy: Literal["none", "best-effort", "restricted", "single-numa-node"]
    topology_manager_scope: Literal["container", "pod"]
    topology_manager_policy_options: dict[str, str]
    kube_reserved: dict[str, str]
    system_reserved: dict[str, str]
    eviction_hard: dict[str, str]
    reserved_memory: list[_MemoryReservation]
    reserved_system_cpus: str | None = Field(
        default=None, alias="reservedSystemCPUs", pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$"
    )

    @model_validator(mode="after")
    def _memory_adds_up(self) -> Self:
        """Check what the kubelet checks when it starts with the Static policy."""
        wanted = sum(
            _memory_bytes(text)
            for text in (
                self.kube_reserved.get("memory", "0Mi"),
                self.system_reserved.get("memory", "0Mi"),
                self.eviction_hard.get("memory.available", "100Mi"),
            )
        )
        got = sum(_memory_bytes(each.limits.get("memory", "0Mi")) for each in self.reserved_memory)
        if self.memory_manager_policy == "Static" and got != wanted:
            raise ValueError(
                f"reservedMemory: must be {wanted:.0f} bytes, those of kubeReserved, "
                f"systemReserved and evictionHard together, got {got:.0f}"
            )
        return self


class _Rule(_Kind):
    alert: str = Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")
    expr: str = Field(min_length=1)
    for_: str = Field(alias="for", pattern=_DURATION)
    labels: dict[str, str]
    annotations: dict[str, str]


class _Group(_Kind):
    name: str
    interval: str = Field(pattern=_DURATION)
    rules: list[_Rule]


class _Groups(_Kind):
    groups: list[_Group]


class _Metadata(_Kind):
    name: str
    namespace: str


class _PrometheusRule(_Kind):
    api_version: Literal["monitoring.coreos.com/v1"]
    kind: Literal["PrometheusRule"]
    metadata: _Metadata
    spec: _Groups


MODELS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "KubeSchedulerConfiguration": _KubeSchedulerConfiguration,
        "KubeletConfiguration": _KubeletConfiguration,
        "PrometheusRule": _PrometheusRule,
    }
)
"""Models by kind."""


def check_configuration(manifest: Mapping[str, Any]) -> bool:
    """Check a manifest by its model; tells whether there is one.

    Raises
    ------
    ValueError
        If it does not obey the model, naming the field.
    """
    model = MODELS.get(str(manifest.get("kind")))
    if model is None:
        return False
    with form_errors(manifest["kind"]):
        model.model_validate(manifest)
    return True


def _memory_bytes(text: str) -> float:
    if not re.fullmatch(r"\d+[KMGT]i", text):
        raise ValueError(f"memory must be such as 1024Mi, got {text!r}")
    return parse_quantity(f"{text}B", SIZE_BYTES)
