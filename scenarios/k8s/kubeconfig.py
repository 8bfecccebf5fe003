"""Ways to an API server: from a kubeconfig, or from the service account of a pod."""

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from des.base.text_files import read_text, read_yaml
from scenarios.k8s.exec_credentials import CredentialProgram, Credentials, read_program

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder where Kubernetes puts token and certificate of a pod's service account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAccess:
    """Address of an API server, and how to prove who asks.

    Attributes
    ----------
    authority, certificate, key
        PEM texts: who signs for the server; certificate and key of the client.
    token_file
        File with the bearer token, read for each request, as it is renewed.
    program
        Program that prints token or certificate, in place of those.
    """

    url: str
    authority: str | None = None
    certificate: str | None = None
    key: str | None = None
    token: str | None = None
    token_file: Path | None = None
    program: CredentialProgram | None = None
    is_verified: bool = True

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"API server: url must be http(s)://HOST[:PORT], got {self.url!r}")
        if (self.certificate is None) != (self.key is None):
            raise ValueError("API server: client certificate and key must be given together")

    def credentials(self) -> Credentials | None:
        """Token, certificate and key for a request now; None where there is no need of any.

        Raises
        ------
        ValueError
            If the token cannot be read, or the program fails.
        """
        if self.program is not None:
            return self.program.current()
        token = self.token
        if self.token_file is not None:
            token = read_text(self.token_file).strip()
        if token is None and self.certificate is None:
            return None
        return Credentials(token=token, certificate=self.certificate, key=self.key)

    def tls(self, credentials: Credentials | None) -> ssl.SSLContext | None:
        """Context of TLS with the certificate of the client; None for plain HTTP.

        Raises
        ------
        ValueError
            If a certificate or key cannot be used.
        """
        if not self.url.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cadata=self.authority)
            if not self.is_verified:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if credentials is not None and credentials.certificate and credentials.key:
                _load_pair(context, credentials.certificate, credentials.key)
        except (ssl.SSLError, OSError) as error:
            raise ValueError(f"API server: certificates cannot be used: {error}") from error
        return context


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load certificate and key, which OpenSSL takes from a file alone."""
    descriptor, name = tempfile.mkstemp(suffix=".pem")  # readable by this user alone
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{certificate}\n{key}\n")
        context.load_cert_chain(name)
    finally:
        Path(name).unlink()


def account_access() -> ApiAccess:
    """Access of the service account of the pod that this runs in.

    Raises
    ------
    ValueError
        If this is no pod with a service account.
    """
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    if not host or not port:
        raise ValueError("--in-cluster: needs KUBERNETES_SERVICE_HOST and _PORT, as pods have them")
    shown = f"[{host}]" if ":" in host else host
    return ApiAccess(
        url=f"https://{shown}:{port}",
        authority=read_text(ACCOUNT / "ca.crt"),
        token_file=ACCOUNT / "token",
    )


def read_kubeconfig(path: Path) -> ApiAccess:
    """Access of the current context of a kubeconfig.

    Raises
    ------
    ValueError
        If the file is wrong, naming the field.
    """
    content = read_yaml(path)
    try:
        if not isinstance(content, dict):
            raise ValueError("must be a mapping")
        context = _named(content, "contexts", "context", content.get("current-context"))
        cluster = _named(content, "clusters", "cluster", context.get("cluster"))
        user: Mapping[str, Any] = {}
        if context.get("user"):
            user = _named(content, "users", "user", context["user"])
        for field in ("auth-provider", "username"):
            if field in user:
                raise ValueError(f"user: {field} is not supported; give a token or a certificate")
        token_file = user.get("tokenFile")
        section = user.get("exec")
        if section is not None and not isinstance(section, dict):
            raise ValueError(f"user: exec must be a mapping, got {type(section).__name__}")
        return ApiAccess(
            url=str(cluster.get("server", "")).rstrip("/"),
            authority=_pem(path, cluster, "certificate-authority"),
            certificate=_pem(path, user, "client-certificate"),
            key=_pem(path, user, "client-key"),
            token=user.get("token"),
            token_file=None if token_file is None else path.parent / str(token_file),
            program=None if section is None else read_program(section, path.parent, cluster),
            is_verified=not cluster.get("insecure-skip-tls-verify", False),
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _named(content: Mapping[str, Any], group: str, key: str, name: object) -> dict[str, Any]:
    rows = content.get(group)
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("name") == name and isinstance(row.get(key), dict):
            found: dict[str, Any] = row[key]
            return found
    raise ValueError(f"{group}: must have a {key} named {name!r}")


def _pem(path: Path, values: Mapping[str, Any], field: str) -> str | None:
    """PEM text of a field: in the file in base64, or in a file of its own."""
    data = values.get(f"{field}-data")
    if data is not None:
        try:
            return base64.b64decode(str(data), validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{field}-data must be PEM in base64") from error
    name = values.get(field)
    return None if name is None else read_text(path.parent / str(name))
