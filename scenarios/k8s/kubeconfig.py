"""Logins to an API server: by a kubeconfig, or by the service account of a pod.

A program that the ``exec`` section of a kubeconfig names is run here: the client of Kubernetes
sets it no limit of time, and goes on without credentials where it fails. Source: Kubernetes,
"Authenticating", section "client-go credential plugins" (``client.authentication.k8s.io/v1``).
"""

import base64
import json
import math
import os
import ssl
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_incluster_config
from kubernetes.config.kube_config import KubeConfigLoader
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from des.base.text_files import read_text, read_yaml

_TIMEOUT_S = 60.0
_MOST_MESSAGE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Address and credentials of a client, and the time when they expire. [s]"""

    configuration: Configuration
    until_s: float = math.inf


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, alias_generator=to_camel)


class _Variable(_Form):
    name: str
    value: str


class _Exec(_Form, title="user.exec"):
    api_version: Literal["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]
    command: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: Literal["Never", "IfAvailable"] = "IfAvailable"


class _Status(_Form):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: AwareDatetime | None = None

    @model_validator(mode="after")
    def _prove_something(self) -> Self:
        if bool(self.client_certificate_data) != bool(self.client_key_data):
            raise ValueError("clientCertificateData and clientKeyData must be given together")
        if not (self.token or self.client_key_data):
            raise ValueError("must have a token, or a certificate and a key")
        return self


class _Answer(_Form, title="answer of exec"):
    api_version: str
    status: _Status


def log_in(path: Path | None) -> Login:
    """Log in by the current context of a kubeconfig; None: by the service account of this pod.

    Raises
    ------
    ValueError
        If the file is wrong, naming the field, no credentials are had, or this is no pod.
    """
    configuration, until_s = Configuration(host="", proxy="", retries=False), math.inf
    content = None if path is None else read_yaml(path)
    try:
        if path is None:
            load_incluster_config(configuration)
        else:
            until_s = _load_kubeconfig(path, content, configuration)
        _require_use(configuration)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]  # which may hold secrets
        place = ".".join(map(str, (error.title, *fault["loc"])))
        raise ValueError(f"{path}: {place}: {fault['msg']}") from error
    except (AttributeError, TypeError) as error:
        raise ValueError(f"{path}: a field has a value of another kind: {error}") from error
    except (ConfigException, OSError, ValueError) as error:
        needed = "--in-cluster: needs KUBERNETES_SERVICE_HOST, _PORT and a token, as pods have them"
        raise ValueError(f"{path or needed}: {error}") from error
    return Login(configuration=configuration, until_s=until_s)


def _load_kubeconfig(path: Path, content: object, configuration: Configuration) -> float:
    """Load the current context; returns the time when its credentials expire."""
    if not isinstance(content, dict):
        raise ValueError("must be a mapping")
    context = _find_named(content, "contexts", "context", content.get("current-context"))
    cluster = _find_named(content, "clusters", "cluster", context.get("cluster"))
    user = _find_named(content, "users", "user", context["user"]) if context.get("user") else {}
    for name in ("auth-provider", "username"):
        if name in user:
            raise ValueError(f"user: {name} is not supported; give a token or a certificate")
    until_s = math.inf
    if "exec" in user:
        user, until_s = _made(user["exec"], path.parent, cluster)
    elif "tokenFile" in user:
        user = {**user, "token": read_text(path.parent / str(user["tokenFile"])).strip()}
    found = {**content, "users": [{"name": context.get("user"), "user": user}]}
    KubeConfigLoader(found, config_base_path=str(path.parent)).load_and_set(configuration)
    return until_s


def _find_named(content: Mapping[str, Any], group: str, key: str, name: object) -> dict[str, Any]:
    rows = content.get(group)
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("name") == name and isinstance(row.get(key), dict):
            found: dict[str, Any] = row[key]
            return found
    raise ValueError(f"{group}: must have a {key} named {name!r}")


def _made(section: object, folder: Path, cluster: object) -> tuple[dict[str, Any], float]:
    """Fields of a user from the program of an ``exec`` section, and the time when they expire."""
    form = _Exec.model_validate(section)
    answer = _Answer.model_validate_json(_read_output(form, folder, cluster))
    if answer.api_version != form.api_version:
        raise ValueError(f"exec: {form.command}: apiVersion must be {form.api_version}")
    status = answer.status
    user = {"token": status.token or ""}
    pair = {"certificate": status.client_certificate_data, "key": status.client_key_data}
    for name, text in pair.items():
        if text:
            user[f"client-{name}-data"] = base64.b64encode(text.encode()).decode()
    until = status.expiration_timestamp
    return user, math.inf if until is None else until.timestamp()


def _read_output(form: _Exec, folder: Path, cluster: object) -> bytes:
    """Output of a program that makes credentials."""
    spec = {"interactive": False} | ({"cluster": cluster} if form.provide_cluster_info else {})
    info = {"apiVersion": form.api_version, "kind": "ExecCredential", "spec": spec}
    variables = {row.name: row.value for row in form.env or ()}
    try:
        return subprocess.run(
            [form.command, *(form.args or ())],
            cwd=folder,
            env={**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
        ).stdout
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip()[-_MOST_MESSAGE:]
        raise ValueError(f"exec: {form.command}: ended with {error.returncode}: {said}") from error
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"exec: {form.command}: took longer than {_TIMEOUT_S:g} s") from error
    except OSError as error:
        reason = f"{error.strerror}; {form.install_hint}".rstrip("; ")
        raise ValueError(f"exec: command {form.command!r} cannot be run; {reason}") from error


def _require_use(configuration: Configuration) -> None:
    """Refuse an address or certificates that cannot be used."""
    parts = urlsplit(configuration.host)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        url = configuration.host
        raise ValueError(f"cluster: server must be http(s)://HOST[:PORT], got {url!r}")
    try:
        if configuration.ssl_ca_cert or configuration.cert_file:
            context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:
        names = "certificate-authority, client-certificate and client-key"
        raise ValueError(f"API server: {names} cannot be used: {error}") from error
