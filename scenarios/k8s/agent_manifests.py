"""Manifests of the node agent: a pod on every node with GPUs, and its rights."""

from scenarios.k8s.manifest_settings import (
    Manifest,
    ManifestSettings,
    cluster_role_binding,
    metadata,
)

AGENT = "topology-agent"


def agent(settings: ManifestSettings) -> list[Manifest]:
    """``DaemonSet`` that describes each node with GPUs; its account may read and patch nodes."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(AGENT, settings)},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": AGENT},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}],
        },
        cluster_role_binding(AGENT, AGENT, AGENT, settings),
        _daemon_set(settings),
    ]


def _daemon_set(settings: ManifestSettings) -> Manifest:
    labels = {"app.kubernetes.io/name": AGENT}
    words = [
        *("python", "-m", "scenarios.k8s", "agent", "--nvml", "--sysfs", "/sys"),
        *("--node", "$(NODE_NAME)", "--prefix", settings.prefix, "--in-cluster"),
    ]
    container = {
        "name": "agent",
        "image": settings.image,
        "command": words,
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
        ],
        "resources": {
            "requests": {"cpu": "50m", "memory": "256Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod: Manifest = {
        "serviceAccountName": AGENT,
        "nodeSelector": dict(settings.gpu_nodes),
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
    }
    if settings.runtime_class:
        pod["runtimeClassName"] = settings.runtime_class
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(AGENT, settings, labels=labels),
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
