"""Check of manifests by Kubernetes' own JSON schemas, which kubernetes-validate carries."""

from collections.abc import Mapping
from typing import Any

import kubernetes_validate


def check_schema(manifest: Mapping[str, Any], version: str) -> None:
    """Check a manifest by the schema of its kind, unknown fields included.

    Raises
    ------
    ValueError
        If it does not obey the schema, or the version has none of its kind.
    """
    kind = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
    try:
        kubernetes_validate.validate(dict(manifest), version, strict=True)
    except kubernetes_validate.ValidationError as error:
        path = ".".join(map(str, error.path))
        raise ValueError(f"{kind}: {path}: {error.message}") from error
    except kubernetes_validate.SchemaNotFoundError as error:
        raise ValueError(f"{kind}: Kubernetes {version} has no such kind") from error
