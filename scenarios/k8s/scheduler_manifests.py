"""Manifests of scheduler and extender: configuration, deployments, service, rights."""

import json

from scenarios.k8s.manifest_settings import (
    GROUP_ID,
    USER_ID,
    Manifest,
    ManifestSettings,
    cluster_role_binding,
    metadata,
)

EXTENDER, _PORT = "topology-extender", 8888
_TLS_FOLDER, _CONFIG_FOLDER = "/etc/topology/tls", "/etc/topology/config"


def namespace(settings: ManifestSettings) -> Manifest:
    """``Namespace`` of all that has one; a cluster needs it before the rest."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.namespace}}


def scheduler_config(settings: ManifestSettings) -> Manifest:
    """``KubeSchedulerConfiguration`` with the extender.

    ``nodeCacheCapable`` is true: names alone travel, and in-tree plugins keep seeing the pods of
    nodes, see docs/cluster.md. ``percentageOfNodesToScore`` is 100: of large clusters
    kube-scheduler would send other parts for each pod of a gang.
    """
    scheme = "https" if settings.is_tls else "http"
    extender: Manifest = {
        "urlPrefix": f"{scheme}://{EXTENDER}.{settings.namespace}.svc:{_PORT}/scheduler",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "weight": settings.weight,
        "enableHTTPS": settings.is_tls,
        "httpTimeout": f"{settings.http_timeout_s:g}s",
        "nodeCacheCapable": True,
        "managedResources": [
            {"name": each, "ignoredByScheduler": False} for each in settings.resources
        ],
        "ignorable": False,
    }
    if settings.is_tls:
        extender["tlsConfig"] = {
            "certFile": f"{_TLS_FOLDER}/tls.crt",
            "keyFile": f"{_TLS_FOLDER}/tls.key",
            "caFile": f"{_TLS_FOLDER}/ca.crt",
        }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": True,
            "resourceName": settings.scheduler,
            "resourceNamespace": settings.namespace,
        },
        "profiles": [{"schedulerName": settings.scheduler}],
        "percentageOfNodesToScore": 100,
        "extenders": [extender],
    }


def config_map(settings: ManifestSettings) -> Manifest:
    """``ConfigMap`` with the scheduler's configuration and the weights, as texts of JSON."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata("topology-config", settings),
        "data": {
            "scheduler.json": json.dumps(scheduler_config(settings), indent=2),
            "weights.json": json.dumps(dict(settings.weights), indent=2),
        },
    }


def extender_deployment(settings: ManifestSettings) -> Manifest:
    """``Deployment`` of the extender: one pod, as promises to gangs are in its memory.

    It gives up on the API server before kube-scheduler gives up on it.
    """
    words = [
        *("python", "-m", "scenarios.k8s", "extender", "--in-cluster", "--host", "0.0.0.0"),
        *("--port", str(_PORT), "--resources", ",".join(settings.resources)),
        *("--policy-annotation", f"{settings.prefix}/policy", "--annotate-gpus"),
        *("--weights", f"{_CONFIG_FOLDER}/weights.json"),
        *("--api-timeout-s", f"{0.8 * settings.http_timeout_s:g}"),
    ]
    if settings.is_tls:
        words += ["--tls-cert", f"{_TLS_FOLDER}/tls.crt", "--tls-key", f"{_TLS_FOLDER}/tls.key"]
        words += ["--client-ca", f"{_TLS_FOLDER}/ca.crt"]
    else:
        words.append("--insecure")
    container = {
        "name": "extender",
        "image": settings.image,
        "command": words,
        "ports": [{"name": "extender", "containerPort": _PORT}],
        "resources": {
            "requests": {"cpu": "1", "memory": "1Gi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": GROUP_ID,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": _mounts(settings),
        **_probes(settings),
    }
    return _deployment(EXTENDER, container, settings)


def _probes(settings: ManifestSettings) -> Manifest:
    """Probes: by HTTP, or by TCP alone where clients need a certificate."""
    if settings.is_tls:
        check: Manifest = {"tcpSocket": {"port": "extender"}}
        return {"readinessProbe": {**check, "periodSeconds": 5}, "livenessProbe": check}
    return {
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": "extender"},
            "periodSeconds": 5,
        },
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "extender"}},
    }


def scheduler_deployment(settings: ManifestSettings) -> Manifest:
    """``Deployment`` of a second kube-scheduler that asks the extender."""
    container = {
        "name": "scheduler",
        "image": f"registry.k8s.io/kube-scheduler:v{settings.kubernetes}.0",
        "command": ["kube-scheduler", f"--config={_CONFIG_FOLDER}/scheduler.json"],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "volumeMounts": _mounts(settings),
    }
    return _deployment(settings.scheduler, container, settings)


def _mounts(settings: ManifestSettings) -> list[Manifest]:
    found = [{"name": "config", "mountPath": _CONFIG_FOLDER, "readOnly": True}]
    if settings.is_tls:
        found.append({"name": "tls", "mountPath": _TLS_FOLDER, "readOnly": True})
    return found


def _deployment(name: str, container: Manifest, settings: ManifestSettings) -> Manifest:
    labels = {"app.kubernetes.io/name": name}
    volumes: list[Manifest] = [{"name": "config", "configMap": {"name": "topology-config"}}]
    if settings.is_tls:
        volumes.append({"name": "tls", "secret": {"secretName": f"{name}-tls"}})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name, settings, labels=labels),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": name,
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        },
    }


def service(settings: ManifestSettings) -> Manifest:
    """``Service`` under which the scheduler finds the extender."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(EXTENDER, settings),
        "spec": {
            "selector": {"app.kubernetes.io/name": EXTENDER},
            "ports": [{"name": "extender", "port": _PORT, "targetPort": "extender"}],
        },
    }


def rights(settings: ManifestSettings) -> list[Manifest]:
    """RBAC: the extender reads nodes, pods, gangs, binds, and annotates nodes whose promises ended.

    The scheduler has its usual roles.
    """
    scheduler = settings.scheduler
    reads = ["get", "list", "watch"]
    leases: Manifest = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    return [
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name, settings)}
            for name in (EXTENDER, scheduler)
        ),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": EXTENDER},
            "rules": [
                {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": reads},
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]},
                {
                    "apiGroups": ["scheduling.k8s.io", "scheduling.x-k8s.io"],
                    "resources": ["podgroups", "workloads"],
                    "verbs": reads,
                },
                {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
            ],
        },
        cluster_role_binding(EXTENDER, EXTENDER, EXTENDER, settings),
        *(
            cluster_role_binding(f"{scheduler}-as-{role}", f"system:{role}", scheduler, settings)
            for role in ("kube-scheduler", "volume-scheduler")
        ),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": metadata(scheduler, settings),
            "rules": [
                {**leases, "verbs": ["create"]},
                {**leases, "resourceNames": [scheduler], "verbs": ["get", "update"]},
            ],
        },
        _role_binding(scheduler, scheduler, settings),
        _role_binding(
            f"{scheduler}-reads-authentication",
            "extension-apiserver-authentication-reader",
            settings,
            "kube-system",
        ),
    ]


def _role_binding(
    name: str, role: str, settings: ManifestSettings, namespace: str | None = None
) -> Manifest:
    """Binding of a role of a namespace to the scheduler's account."""
    found = cluster_role_binding(name, role, settings.scheduler, settings)
    return {
        **found,
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace or settings.namespace},
        "roleRef": {**found["roleRef"], "kind": "Role"},
    }
