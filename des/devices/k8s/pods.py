"""Pods as an extender reads them: devices, policy for NUMA nodes, gang, preferred nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from des.devices.k8s.wire import (
    whole_quantity,
    wire_list,
    wire_object,
    wire_text,
    wire_texts,
)

GangKey = tuple[str, str]
"""Namespace and name of a gang."""

_POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""Label by which the coscheduling plugin of scheduler-plugins knows a gang."""

_HOST = "kubernetes.io/hostname"
"""Topology key of a single node."""

POLICY_OF_AFFINITY: Mapping[str, str] = MappingProxyType(
    {"required": "single-numa-node", "preferred": "best-effort", "none": "none"}
)
"""Policies by the values of the annotation ``numa-affinity``."""

FINISHED = frozenset({"Succeeded", "Failed"})
"""Phases of a pod that holds no devices any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodKeys:
    """Names of resources and annotations that are read from pods.

    Attributes
    ----------
    resources
        Extended resources that are GPUs, such as ``nvidia.com/gpu``.
    policy_annotation
        Annotation with the policy for NUMA nodes; the others have the prefix of this one.
    default_policy
        Policy of a pod without the annotation.
    """

    resources: tuple[str, ...] = ("nvidia.com/gpu",)
    policy_annotation: str = "topology.example.com/policy"
    default_policy: str = "best-effort"

    def __post_init__(self) -> None:
        if not self.resources or not all(self.resources):
            raise ValueError(f"pods: resources must be at least one name, got {self.resources!r}")
        prefix, slash, name = self.policy_annotation.partition("/")
        if not prefix or not slash or not name:
            raise ValueError(
                "pods: policy_annotation must be PREFIX/NAME, such as topology.example.com/policy, "
                f"got {self.policy_annotation!r}"
            )

    def annotation(self, name: str) -> str:
        """Full name of another annotation.

        Examples
        --------
        >>> PodKeys().annotation("gang")
        'topology.example.com/gang'
        """
        return f"{self.policy_annotation.partition('/')[0]}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAsk:
    """A pod's demand.

    Attributes
    ----------
    asks
        Managed resources with their counts, those above 0.
    gang
        Name of its gang in the namespace; None without one.
    gang_size
        Pods of the gang; None where the pod does not say it.
    gang_gpus
        Devices of each pod of the gang, where they differ; empty where the pod does not say it.
    preferred_nodes
        Names of nodes that it would rather have.
    is_apart
        Whether its anti-affinity keeps pods like it off its node.
    gpus
        Numbers of the devices that a bound pod was given; None where no annotation says.
    nominated
        Node that kube-scheduler has evicted pods from for it; empty without one.
    """

    uid: str
    namespace: str
    name: str
    asks: tuple[tuple[str, int], ...]
    policy: str
    gang: str | None = None
    gang_size: int | None = None
    gang_gpus: tuple[int, ...] = ()
    preferred_nodes: tuple[str, ...] = ()
    is_apart: bool = False
    node: str = ""
    phase: str = ""
    gpus: tuple[int, ...] | None = None
    nominated: str = ""

    @property
    def resource(self) -> str | None:
        """Managed resource that it asks for; None for none or several."""
        return self.asks[0][0] if len(self.asks) == 1 else None

    @property
    def num_gpus(self) -> int:
        """Devices of all managed resources."""
        return sum(count for _, count in self.asks)

    @property
    def gang_key(self) -> GangKey | None:
        """Namespace and name of its gang; None without one, or without devices."""
        return None if self.gang is None or not self.num_gpus else (self.namespace, self.gang)

    def with_gpus(self, count: int) -> "PodAsk":
        """Demand of a sibling that needs another number of the same devices."""
        return replace(self, asks=tuple((name, count) for name, _ in self.asks[:1]))


def read_pod(pod: object, keys: PodKeys) -> PodAsk:
    """Read a pod.

    Raises
    ------
    ValueError
        If it is no object, or a field that is read has another type than Kubernetes gives it.
    """
    pod = _object(pod, "Pod")
    metadata = wire_object(pod, "metadata", "Pod")
    spec = wire_object(pod, "spec", "Pod")
    annotations = wire_texts(metadata, "annotations", "Pod.metadata")
    status = wire_object(pod, "status", "Pod")
    gang_gpus = _gang_gpus(annotations, keys.annotation("gang-gpus"))
    preferred = annotations.get(keys.annotation("preferred-nodes"), "")
    return PodAsk(
        uid=wire_text(metadata, "uid", "Pod.metadata"),
        namespace=wire_text(metadata, "namespace", "Pod.metadata"),
        name=wire_text(metadata, "name", "Pod.metadata"),
        asks=_asks(spec, keys.resources),
        policy=_policy(annotations, keys),
        gang=_gang(metadata, spec, annotations, keys),
        gang_size=_gang_size(annotations, keys.annotation("gang-size"), gang_gpus),
        gang_gpus=gang_gpus,
        preferred_nodes=tuple(name.strip() for name in preferred.split(",") if name.strip()),
        is_apart=_is_apart(spec, wire_texts(metadata, "labels", "Pod.metadata")),
        node=wire_text(spec, "nodeName", "Pod.spec"),
        phase=wire_text(status, "phase", "Pod.status"),
        gpus=_numbers(annotations.get(keys.annotation("gpus"))),
        nominated=wire_text(status, "nominatedNodeName", "Pod.status"),
    )


def _policy(annotations: Mapping[str, str], keys: PodKeys) -> str:
    """Policy for NUMA nodes, else that of the pod's NUMA affinity, else the default one."""
    name = keys.annotation("numa-affinity")
    affinity = annotations.get(name)
    if affinity is not None and affinity not in POLICY_OF_AFFINITY:
        raise ValueError(
            f"Pod annotation {name}: must be one of {', '.join(POLICY_OF_AFFINITY)}, "
            f"got {affinity!r:.80}"
        )
    default = keys.default_policy if affinity is None else POLICY_OF_AFFINITY[affinity]
    return annotations.get(keys.policy_annotation, default)


def _is_apart(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a required anti-affinity of a pod, by node, is one to pods with its labels."""
    owner = "Pod.spec.affinity"
    rules = wire_object(wire_object(spec, "affinity", "Pod.spec"), "podAntiAffinity", owner)
    terms = wire_list(rules, "requiredDuringSchedulingIgnoredDuringExecution", owner)
    return any(
        isinstance(term, dict)
        and term.get("topologyKey") == _HOST
        and _selects(wire_object(term, "labelSelector", owner), labels)
        for term in terms
    )


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector that says anything selects some labels."""
    owner = "Pod.spec.affinity.labelSelector"
    wanted = wire_texts(selector, "matchLabels", owner)
    found = [labels.get(key) == value for key, value in wanted.items()]
    for each in wire_list(selector, "matchExpressions", owner):
        if not isinstance(each, dict):
            raise ValueError(f"{owner}: matchExpressions must be objects, got {each!r:.80}")
        value = labels.get(wire_text(each, "key", owner))
        is_in = value is not None and value in wire_list(each, "values", owner)
        meets = {"In": is_in, "NotIn": not is_in, "Exists": value is not None}
        found.append(meets.get(wire_text(each, "operator", owner), value is None))
    return bool(found) and all(found)


def _numbers(text: str | None) -> tuple[int, ...] | None:
    """Numbers of devices in an annotation; None where it is none that this project wrote."""
    words = [] if text is None else text.split(",")
    return tuple(map(int, words)) if words and all(map(str.isdecimal, words)) else None


def _gang_gpus(annotations: Mapping[str, str], name: str) -> tuple[int, ...]:
    """Devices of each pod of a gang, in falling order."""
    text = annotations.get(name)
    if text is None:
        return ()
    counts = [whole_quantity(word, f"Pod annotation {name}") for word in text.split(",")]
    if not all(counts):
        raise ValueError(f"Pod annotation {name}: must be numbers above 0, got {text!r:.80}")
    return tuple(sorted(counts, reverse=True))


def _gang_size(annotations: Mapping[str, str], name: str, gpus: tuple[int, ...]) -> int | None:
    text = annotations.get(name)
    if text is None:
        return len(gpus) or None
    size = max(1, whole_quantity(text, f"Pod annotation {name}"))
    if gpus and size != len(gpus):
        raise ValueError(
            f"Pod annotation {name}: must be {len(gpus)}, as gang-gpus has as many, got {size}"
        )
    return size


def _gang(
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    annotations: Mapping[str, str],
    keys: PodKeys,
) -> str | None:
    """Name of the gang: own annotation, PodGroup, Workload, or the label of coscheduling."""
    group = wire_object(spec, "schedulingGroup", "Pod.spec")
    workload = wire_object(spec, "workloadRef", "Pod.spec")
    parts = [wire_text(workload, key, "Pod.spec.workloadRef") for key in _WORKLOAD_KEYS]
    return (
        annotations.get(keys.annotation("gang"))
        or wire_text(group, "podGroupName", "Pod.spec.schedulingGroup")
        or "/".join(part for part in parts if part)
        or wire_texts(metadata, "labels", "Pod.metadata").get(_POD_GROUP_LABEL)
        or None
    )


_WORKLOAD_KEYS = ("name", "podGroup", "podGroupReplicaKey")


def _asks(spec: Mapping[str, Any], resources: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Devices of a pod: its containers together, or more where an init container needs more.

    Init containers run one after the other; those that keep running count with all that come later.
    """
    running = dict.fromkeys(resources, 0)
    most = dict.fromkeys(resources, 0)
    for container in wire_list(spec, "initContainers", "Pod.spec"):
        stays = wire_text(_object(container, "container"), "restartPolicy", "container") == "Always"
        for name in resources:
            count = _count(container, name)
            most[name] = max(most[name], running[name] + count)
            running[name] += count if stays else 0
    for container in wire_list(spec, "containers", "Pod.spec"):
        for name in resources:
            running[name] += _count(_object(container, "container"), name)
    found = ((name, max(running[name], most[name])) for name in resources)
    return tuple((name, count) for name, count in found if count)


def _object(value: object, owner: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{owner}: must be an object, got {type(value).__name__}")
    return value


def _count(container: Mapping[str, Any], resource: str) -> int:
    given = wire_object(container, "resources", "container")
    for part in ("requests", "limits"):  # the API server sets a request where a limit alone is
        value = wire_object(given, part, "container.resources").get(resource)
        if value is not None:
            return whole_quantity(value, f"container.resources.{part}.{resource}")
    return 0
