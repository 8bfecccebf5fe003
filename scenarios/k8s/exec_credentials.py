"""Credentials from a program that the ``exec`` section of a kubeconfig names.

Source: Kubernetes, "Authenticating", section "client-go credential plugins"
(``client.authentication.k8s.io/v1``).
"""

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from des.devices.k8s.wire import parse_wire, wire_object, wire_text

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EARLY_S = 10.0
_MOST_MESSAGE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials of a client: a token, or certificate and key as PEM, or both.

    ``until_s`` is the time when they expire; None where the program does not say it. [s]
    """

    token: str | None = None
    certificate: str | None = None
    key: str | None = None
    until_s: float | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("clientCertificateData and clientKeyData must be given together")
        if self.token is None and self.certificate is None:
            raise ValueError("status must have a token, or a certificate and a key")


@dataclass(slots=True, kw_only=True)
class CredentialProgram:
    """A program that prints an ``ExecCredential``; it runs again when the last one expires.

    Attributes
    ----------
    command
        Program, by its path or a name in ``PATH``, and its arguments.
    environment
        Variables in addition to those of this process.
    cluster
        Description of the cluster that the program is given; None where it wants none.
    timeout_s
        Most time that it may take. [s]
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    api_version: str = VERSIONS[0]
    cluster: Mapping[str, Any] | None = None
    timeout_s: float = 60.0
    _last: Credentials | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def current(self) -> Credentials:
        """Credentials that are valid now.

        Raises
        ------
        ValueError
            If the program cannot be run, fails, or prints something else.
        """
        with self._lock:
            last = self._last
            if last is None or (last.until_s is not None and last.until_s < time.time() + _EARLY_S):
                self._last = last = self._run()
            return last

    def refuse(self, refused: Credentials) -> None:
        """Drop credentials that the API server refused."""
        with self._lock:
            if self._last is refused:
                self._last = None

    def _run(self) -> Credentials:
        name = self.command[0]
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = dict(self.cluster)
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        try:
            done = subprocess.run(
                self.command,
                env={**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": json.dumps(info)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"exec: {name}: took longer than {self.timeout_s:g} s") from error
        except OSError as error:
            raise ValueError(f"exec: {name}: {error}") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()[-_MOST_MESSAGE:]
            raise ValueError(f"exec: {name}: ended with {done.returncode}: {said}")
        try:
            return self._read(done.stdout)
        except ValueError as error:
            raise ValueError(f"exec: {name}: {error}") from error

    def _read(self, text: bytes) -> Credentials:
        content = parse_wire(text)
        version = wire_text(content, "apiVersion", "ExecCredential")
        if version != self.api_version:
            raise ValueError(f"apiVersion must be {self.api_version}, got {version!r:.80}")
        status = wire_object(content, "status", "ExecCredential")
        found = {
            field: wire_text(status, key, "ExecCredential.status") or None
            for field, key in (
                ("token", "token"),
                ("certificate", "clientCertificateData"),
                ("key", "clientKeyData"),
            )
        }
        until = wire_text(status, "expirationTimestamp", "ExecCredential.status")
        return Credentials(**found, until_s=_time_s(until) if until else None)


def _time_s(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"expirationTimestamp must be a time, got {text!r:.40}") from error
    if found.tzinfo is None:
        raise ValueError(f"expirationTimestamp must have a time zone, got {text!r:.40}")
    return found.timestamp()


def read_program(
    section: Mapping[str, Any], folder: Path, cluster: Mapping[str, Any]
) -> CredentialProgram:
    """Read the ``exec`` section of a user.

    Parameters
    ----------
    folder
        Folder of the kubeconfig, which relative paths of programs begin at.
    cluster
        Description of the cluster, for programs that want it.

    Raises
    ------
    ValueError
        If a field is wrong, or the program is not there.
    """
    version = wire_text(section, "apiVersion", "exec")
    if version not in VERSIONS:
        raise ValueError(f"exec: apiVersion must be one of {', '.join(VERSIONS)}, got {version!r}")
    if section.get("interactiveMode") == "Always":
        raise ValueError("exec: interactiveMode must be Never or IfAvailable, got Always")
    command = wire_text(section, "command", "exec")
    path = str(folder / command) if "/" in command else command
    if not command or shutil.which(path) is None:
        hint = wire_text(section, "installHint", "exec")
        raise ValueError(f"exec: command {command!r} cannot be run; {hint}".rstrip("; "))
    words, rows = section.get("args") or [], section.get("env") or []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("exec: args must be a list of texts")  # which may hold secrets
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("exec: env must be a list of names and values")
    return CredentialProgram(
        command=(path, *words),
        environment={
            wire_text(row, "name", "exec.env"): wire_text(row, "value", "exec.env") for row in rows
        },
        api_version=version,
        cluster=cluster if section.get("provideClusterInfo") else None,
    )
