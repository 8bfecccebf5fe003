"""Check of manifests by the API server that they are for: kinds that it serves, the namespace."""

from collections.abc import Sequence

from scenarios.k8s.api_server import ApiError, ApiServer
from scenarios.k8s.manifest_settings import GANG_GATES, Manifest, ManifestSettings

_NOT_FOUND = 404
_CONFIGURATIONS = ("kubescheduler.config.k8s.io/", "kubelet.config.k8s.io/")
"""Groups of files that programs read, which no API server serves."""


def require_kinds(
    api: ApiServer, documents: Sequence[Manifest], settings: ManifestSettings
) -> None:
    """Refuse manifests that a cluster would not take as it is now.

    Raises
    ------
    ValueError
        If it lacks kinds or the namespace, with what to start it with, or does not answer.
    """
    try:
        reasons = [*_kinds_missing(api, documents, settings), *_namespace_missing(api, documents)]
    except ApiError as error:
        raise ValueError(f"--check: {error}") from error
    if reasons:
        raise ValueError(f"--check: {'; '.join(reasons)}")


def gang_flags(settings: ManifestSettings) -> str:
    """Flags of a cluster with gangs: of its API server, and of its scheduler."""
    gates = [f"{gate}=true" for gate in GANG_GATES[settings.kubernetes]]
    return (
        f"--feature-gates={','.join(gates)} on API server and scheduler, "
        f"--runtime-config={settings.gang_api}=true on the API server"
    )


def _kinds_missing(
    api: ApiServer, documents: Sequence[Manifest], settings: ManifestSettings
) -> list[str]:
    wanted: dict[str, set[str]] = {}
    for each in documents:
        if not each["apiVersion"].startswith(_CONFIGURATIONS):
            wanted.setdefault(each["apiVersion"], set()).add(each["kind"])
    reasons = []
    for version, kinds in sorted(wanted.items()):
        missing = sorted(kinds - _kinds_of(api, version))
        if missing:
            reason = f"the cluster has no {' and no '.join(missing)} of {version}"
            is_gang = version == settings.gang_api
            reasons.append(f"{reason}: it needs {gang_flags(settings)}" if is_gang else reason)
    return reasons


def _kinds_of(api: ApiServer, version: str) -> set[str]:
    """Kinds of a version that a cluster serves; none where it does not know the version."""
    try:
        found = api.get(f"/apis/{version}" if "/" in version else f"/api/{version}", {})
    except ApiError as error:
        if error.status == _NOT_FOUND:
            return set()
        raise
    return {str(each.get("kind")) for each in found.get("resources") or ()}


def _namespace_missing(api: ApiServer, documents: Sequence[Manifest]) -> list[str]:
    """Namespaces that manifests are in, unless one of them makes it."""
    made = {each["metadata"]["name"] for each in documents if each["kind"] == "Namespace"}
    inside = {each.get("metadata", {}).get("namespace") for each in documents} - made - {None}
    reasons = []
    for name in sorted(inside):
        try:
            api.get(f"/api/v1/namespaces/{name}", {})
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            reasons.append(f"the cluster has no namespace {name}: apply namespace.yaml first")
    return reasons
