"""Manifests of one node and its GPUs: kubelet configuration, ResourceSlice and ResourceClaim."""

import json

from des.base.lazy import lazy_imports
from des.base.strict_json import parse_json
from des.devices.k8s.node_text import server_annotation
from des.devices.server import Gpu
from des.devices.spans import format_spans, numbers_in, spans_of
from scenarios.k8s.manifest_settings import MIB, Manifest, ManifestSettings, metadata

with lazy_imports(__name__):
    from agents.devices import gpu_placement

_DOMAIN = "resource.kubernetes.io"
_NUMA = f"{_DOMAIN}/numaNode"


def kubelet_config(settings: ManifestSettings) -> Manifest:
    """``KubeletConfiguration`` with CPU, memory and topology manager.

    The memory reserved on the NUMA nodes is that of kubelet, system and eviction threshold
    together, to the byte: the kubelet does not start otherwise. One core of each NUMA node is kept
    for the system where the server's CPUs are known.
    """
    nodes = settings.server.numa_nodes
    numbers = [node.number for node in nodes] or sorted(
        {node for gpu in settings.server.gpus for node in gpu.numa_nodes}
    )
    firsts = [min(numbers_in(node.cpus)) for node in nodes if node.cpus]
    found: Manifest = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "Static",
        "topologyManagerPolicy": settings.topology_policy,
        "topologyManagerScope": "pod",
        "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
        "kubeReserved": {"memory": _mib(settings.kube_reserved_bytes)},
        "systemReserved": {"memory": _mib(settings.system_reserved_bytes)},
        "evictionHard": {"memory.available": _mib(settings.eviction_bytes)},
        "reservedMemory": _reserved_memory(settings, numbers or [0]),
    }
    if settings.cpu_manager_options:
        found["cpuManagerPolicyOptions"] = dict.fromkeys(settings.cpu_manager_options, "true")
    if firsts:
        found["reservedSystemCPUs"] = format_spans(spans_of(firsts))
    else:
        found["kubeReserved"]["cpu"] = "1"
        found["systemReserved"]["cpu"] = "1"
    return found


def _reserved_memory(settings: ManifestSettings, numbers: list[int]) -> list[Manifest]:
    total = (
        settings.kube_reserved_bytes + settings.system_reserved_bytes + settings.eviction_bytes
    ) // MIB
    each, rest = divmod(total, len(numbers))
    sizes = [each + (place < rest) for place in range(len(numbers))]
    return [
        {"numaNode": number, "limits": {"memory": f"{size}Mi"}}
        for number, size in zip(numbers, sizes, strict=True)
        if size
    ]


def _mib(size_bytes: int) -> str:
    return f"{size_bytes // MIB}Mi"


def gpu_topology(settings: ManifestSettings) -> Manifest:
    """``ConfigMap`` with the topology of the node, the content of its annotation, for programs."""
    servers = {settings.node: parse_json(server_annotation(settings.server))}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata("gpu-topology-config", settings),
        "data": {"topology.json": json.dumps(servers, indent=2)},
    }


def resource_slice(settings: ManifestSettings) -> Manifest:
    """``ResourceSlice`` of a node's GPUs with the standard attributes, those that are known."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{settings.node}-{settings.dra_driver}"},
        "spec": {
            "driver": settings.dra_driver,
            "nodeName": settings.node,
            "pool": {"name": settings.node, "generation": 1, "resourceSliceCount": 1},
            "devices": [_device(gpu) for gpu in settings.server.gpus],
        },
    }


def _device(gpu: Gpu) -> Manifest:
    attributes: Manifest = {"index": {"int": gpu.number}}
    if gpu.model is not None:
        attributes["model"] = {"string": gpu.model}
    if gpu.numa_nodes:
        attributes[_NUMA] = {"int": gpu.numa_nodes[0]}
    for name, value in (("pciBusID", gpu.pci_address), ("pcieRoot", gpu.pcie_root)):
        if value is not None:
            attributes[f"{_DOMAIN}/{name}"] = {"string": value}
    return {"name": f"gpu-{gpu.number}", "attributes": attributes}


def resource_claim(settings: ManifestSettings) -> Manifest:
    """``ResourceClaim`` of the best GPUs of an empty node for one pod.

    The GPUs are named by their PCI addresses where all are known; else they are kept on one NUMA
    node if they are on one.
    """
    server = settings.server
    found = gpu_placement.optimal_placement(server, settings.pod.num_gpus)
    gpus = [gpu for gpu in server.gpus if gpu.number in found.gpus]
    addresses = [gpu.pci_address for gpu in gpus]
    exactly: Manifest = {
        "deviceClassName": settings.dra_driver,
        "allocationMode": "ExactCount",
        "count": settings.pod.num_gpus,
    }
    devices: Manifest = {"requests": [{"name": "gpus", "exactly": exactly}]}
    if None not in addresses:
        names = json.dumps(addresses)
        expression = f'device.attributes["{_DOMAIN}"].pciBusID in {names}'
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    elif found.num_nodes == 1:
        devices["constraints"] = [{"requests": ["gpus"], "matchAttribute": _NUMA}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata(f"{settings.gang}-gpus", settings),
        "spec": {"devices": devices},
    }
