"""Sizes of gangs in objects of a cluster: pods that must be placed together, by name of the gang.

Sources: Kubernetes API reference, ``Workload`` and ``PodGroup`` of ``scheduling.k8s.io``;
scheduler-plugins, ``PodGroup`` of ``scheduling.x-k8s.io``.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from des.devices.k8s.pods import GangKey
from des.devices.k8s.wire import whole_quantity, wire_list, wire_object, wire_text, wire_value

GangSizes = dict[GangKey, int]
"""Number of pods of each gang, by the namespace and name that its pods give."""


def pod_group_sizes(item: Mapping[str, Any]) -> GangSizes:
    """Least number of pods of a ``PodGroup`` of Kubernetes; empty without a gang.

    Raises
    ------
    ValueError
        If a field has another type than Kubernetes gives it.

    Examples
    --------
    >>> spec = {"schedulingPolicy": {"gang": {"minCount": 4}}}
    >>> pod_group_sizes({"metadata": {"name": "g", "namespace": "ml"}, "spec": spec})
    {('ml', 'g'): 4}
    """
    policy = wire_object(wire_object(item, "spec", "PodGroup"), "schedulingPolicy", "PodGroup.spec")
    return _sized(item, "", wire_object(policy, "gang", "PodGroup.spec"), "minCount")


def workload_sizes(item: Mapping[str, Any]) -> GangSizes:
    """Least numbers of pods of the groups in a ``Workload``, by ``WORKLOAD/GROUP``; errors alike.

    Examples
    --------
    >>> groups = [{"name": "a", "policy": {"gang": {"minCount": 2}}}, {"name": "b", "policy": {}}]
    >>> workload_sizes({"metadata": {"name": "w"}, "spec": {"podGroups": groups}})
    {('', 'w/a'): 2}
    """
    found: GangSizes = {}
    spec = wire_object(item, "spec", "Workload")
    for group in wire_list(spec, "podGroups", "Workload.spec"):
        if not isinstance(group, dict):
            raise ValueError("Workload.spec: podGroups must be objects")
        policy = wire_object(group, "policy", "Workload.podGroups")
        name = wire_text(group, "name", "Workload.podGroups")
        gang = wire_object(policy, "gang", "Workload.podGroups")
        found |= _sized(item, f"/{name}", gang, "minCount")
    return found


def coscheduling_sizes(item: Mapping[str, Any]) -> GangSizes:
    """Least number of pods of a ``PodGroup`` of the coscheduling plugin; errors alike.

    Examples
    --------
    >>> coscheduling_sizes({"metadata": {"name": "g"}, "spec": {"minMember": 3}})
    {('', 'g'): 3}
    """
    return _sized(item, "", wire_object(item, "spec", "PodGroup"), "minMember")


def _sized(item: Mapping[str, Any], ending: str, owner: Mapping[str, Any], field: str) -> GangSizes:
    value = wire_value(owner, field)
    if value is None:
        return {}
    metadata = wire_object(item, "metadata", "gang")
    key = (
        wire_text(metadata, "namespace", "gang.metadata"),
        wire_text(metadata, "name", "gang.metadata") + ending,
    )
    return {key: whole_quantity(value, field)}


GANG_OBJECTS: Mapping[str, Callable[[Mapping[str, Any]], GangSizes]] = MappingProxyType(
    {
        "/apis/scheduling.k8s.io/v1beta1/podgroups": pod_group_sizes,
        "/apis/scheduling.k8s.io/v1alpha2/podgroups": pod_group_sizes,
        "/apis/scheduling.k8s.io/v1alpha1/workloads": workload_sizes,
        "/apis/scheduling.x-k8s.io/v1alpha1/podgroups": coscheduling_sizes,
    }
)
"""Readers of objects with sizes of gangs, by the path of the API server that lists them."""
