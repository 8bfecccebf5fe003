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
    sizes = {
        "cpu": str(4 * settings.gpus_per_pod),
        "memory": f"{32 * settings.gpus_per_pod}Gi",
        settings.resource: str(settings.gpus_per_pod),
    }
    annotations = {
        f"{settings.prefix}/policy": "best-effort",
        f"{settings.prefix}/gang": settings.gang,
        f"{settings.prefix}/gang-size": str(settings.gang_size),
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata(f"{settings.gang}-{rank}", settings, annotations=annotations),
            "spec": {
                "schedulerName": settings.scheduler,
                "restartPolicy": "Never",
                **_membership(settings),
                "containers": [
                    {
                        "name": "main",
                        "image": settings.image,
                        "resources": {"requests": sizes, "limits": sizes},
                    }
                ],
            },
        }
        for rank in range(settings.gang_size)
    ]


def _membership(settings: ManifestSettings) -> Manifest:
    """Field by which Kubernetes itself knows the gang."""
    api, name = settings.gang_api, settings.gang
    if api is None:
        return {}
    if api.endswith("v1alpha1"):
        return {"workloadRef": {"name": name, "podGroup": _WORKERS}}
    return {"schedulingGroup": {"podGroupName": f"{name}-{_WORKERS}"}}
