"""Manifests of a gang of pods: Workload and PodGroup where Kubernetes has them, and the pods."""

from scenarios.k8s.manifest_settings import Manifest, ManifestSettings, metadata

_WORKERS = "workers"


def gang(settings: ManifestSettings) -> list[Manifest]:
    """Workload and PodGroup of the version; none before Kubernetes 1.35."""
    api, name = settings.gang_api, settings.gang
    if api is None:
        return []
    policy = {"gang": {"minCount": settings.gang_size}}
    workload: Manifest = {
        "apiVersion": api,
        "kind": "Workload",
        "metadata": metadata(name, settings),
    }
    if api.endswith("v1alpha1"):
        workload["spec"] = {"podGroups": [{"name": _WORKERS, "policy": policy}]}
        return [workload]
    workload["spec"] = {"podGroupTemplates": [{"name": _WORKERS, "schedulingPolicy": policy}]}
    if api.endswith("v1alpha2"):
        origin: Manifest = {
            "podGroupTemplateRef": {
                "workload": {"workloadName": name, "podGroupTemplateName": _WORKERS}
            }
        }
    else:
        origin = {"workloadRef": {"workloadName": name, "templateName": _WORKERS}}
    group = {
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": metadata(f"{name}-{_WORKERS}", settings),
        "spec": {**origin, "schedulingPolicy": policy},
    }
    return [workload, group]


def pods(settings: ManifestSettings) -> list[Manifest]:
    """Pods of the gang: whole CPUs and equal requests and limits, as the kubelet's managers need.

    Their annotations tell the extender the gang; its members find each other by these.
    """
    pod = settings.pod
    sizes = {
        "cpu": str(pod.num_cpus),
        "memory": pod.memory,
        settings.resources[0]: str(pod.num_gpus),
    }
    container: Manifest = {
        "name": "main",
        "image": pod.image,
        "resources": {"requests": sizes, "limits": sizes},
    }
    if pod.shows_gpus:
        path = f"metadata.annotations['{settings.prefix}/gpu-ids']"
        source = {"fieldRef": {"fieldPath": path}}
        container["env"] = [{"name": "CUDA_VISIBLE_DEVICES", "valueFrom": source}]
    labels = {"labels": {"app.kubernetes.io/name": settings.gang}} if pod.spread else {}
    annotations = {
        f"{settings.prefix}/policy": "best-effort",
        f"{settings.prefix}/gang": settings.gang,
        f"{settings.prefix}/gang-size": str(settings.gang_size),
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata(
                f"{settings.gang}-{rank}", settings, **labels, annotations=annotations
            ),
            "spec": {
                "schedulerName": settings.scheduler,
                "restartPolicy": "Never",
                **_membership(settings),
                **_places(settings),
                "containers": [container],
            },
        }
        for rank in range(settings.gang_size)
    ]


def _places(settings: ManifestSettings) -> Manifest:
    """Fields that say where pods may be, those of the flags."""
    pod = settings.pod
    found: Manifest = {
        "nodeSelector": dict(pod.node_selector),
        "tolerations": [dict(each) for each in pod.tolerations],
        "topologySpreadConstraints": [
            {
                "maxSkew": skew,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app.kubernetes.io/name": settings.gang}},
            }
            for key, skew in pod.spread.items()
        ],
    }
    return {key: value for key, value in found.items() if value}


def _membership(settings: ManifestSettings) -> Manifest:
    """Field by which Kubernetes itself knows the gang."""
    api, name = settings.gang_api, settings.gang
    if api is None:
        return {}
    if api.endswith("v1alpha1"):
        return {"workloadRef": {"name": name, "podGroup": _WORKERS}}
    return {"schedulingGroup": {"podGroupName": f"{name}-{_WORKERS}"}}
