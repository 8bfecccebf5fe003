"""Client of the Kubernetes API, by its documented HTTP interface: reads, watches, posts, patches.

Source: Kubernetes, "API Concepts", documentation.
"""

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from des.devices.k8s.wire import parse_wire
from scenarios.k8s.exec_credentials import Credentials
from scenarios.k8s.kubeconfig import ApiAccess, account_access, read_kubeconfig

_UNAUTHORIZED = 401
_WATCH_S = 240
_MOST_MESSAGE = 300


class ApiError(Exception):
    """The API server cannot be reached or refused; ``status`` is 0 where no answer came."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True, kw_only=True)
class ApiServer:
    """Requests to an API server, each on a connection of its own.

    Attributes
    ----------
    timeout_s
        Most time without an answer. [s]
    """

    access: ApiAccess
    timeout_s: float = 10.0
    _tls: tuple[Credentials | None, ssl.SSLContext | None] = field(init=False)

    def __post_init__(self) -> None:
        credentials = self.access.credentials()
        self._tls = credentials, self.access.tls(credentials)

    def get(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Read an object.

        Raises
        ------
        ApiError
            If it does not come.
        """
        connection, response = self._begin("GET", f"{path}?{urlencode(query)}", self.timeout_s)
        try:
            return _object_of(response.read())
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, f"{path}: {error}") from error
        finally:
            connection.close()

    def post(self, path: str, content: Mapping[str, Any]) -> str:
        """Post an object; returns the error, empty if there was none."""
        return self._sent("POST", path, content, "application/json")

    def patch(self, path: str, content: Mapping[str, Any]) -> str:
        """Change an object by a merge patch; returns the error, empty if there was none."""
        return self._sent("PATCH", path, content, "application/merge-patch+json")

    def _sent(self, method: str, path: str, content: Mapping[str, Any], kind: str) -> str:
        try:
            connection, response = self._begin(method, path, self.timeout_s, content, kind)
        except ApiError as error:
            return str(error) or "no answer of the API server"
        try:
            response.read()
        except (OSError, http.client.HTTPException) as error:
            return f"{path}: {error}"
        finally:
            connection.close()
        return ""

    def watch(self, path: str, version: str) -> Iterator[dict[str, Any]]:
        """Yield the events of a collection from a version on, until the server ends the watch.

        Raises
        ------
        ApiError
            If it breaks off.
        """
        query = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_S),
        }
        limit_s = _WATCH_S + self.timeout_s
        connection, response = self._begin("GET", f"{path}?{urlencode(query)}", limit_s)
        try:
            while line := response.readline():
                if line.strip():
                    yield _object_of(line)
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, f"{path}: {error}") from error
        finally:
            connection.close()

    def _begin(
        self,
        method: str,
        target: str,
        timeout_s: float,
        content: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        try:
            credentials = self.access.credentials()
            connection = self._connection(credentials, timeout_s)
        except ValueError as error:
            raise ApiError(0, str(error)) from error
        headers = {"Accept": "application/json"}
        if credentials is not None and credentials.token is not None:
            headers["Authorization"] = f"Bearer {credentials.token}"
        body = None if content is None else json.dumps(content).encode()
        if body is not None:
            headers["Content-Type"] = content_type
        path = urlsplit(self.access.url).path
        try:
            connection.request(method, f"{path}{target}", body, headers)
            response = connection.getresponse()
            if response.status < 300:
                return connection, response
            text = response.read(100_000)
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            raise ApiError(0, f"{self.access.url}: {error or type(error).__name__}") from error
        connection.close()
        if response.status == _UNAUTHORIZED and self.access.program is not None and credentials:
            self.access.program.refuse(credentials)
        raise ApiError(response.status, f"API server: {response.status} {_message_of(text)}")

    def _connection(
        self, credentials: Credentials | None, timeout_s: float
    ) -> http.client.HTTPConnection:
        """Connection that shows the certificate of the credentials.

        Raises
        ------
        ValueError
            If it cannot be used.
        """
        if self._tls[0] != credentials:
            self._tls = credentials, self.access.tls(credentials)
        parts = urlsplit(self.access.url)
        assert parts.hostname is not None
        context = self._tls[1]
        if context is None:
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout_s, context=context
        )


def reach(kubeconfig: Path | None, in_cluster: bool, timeout_s: float) -> ApiServer | None:
    """API server of a kubeconfig, or of the pod that this runs in; None for neither.

    Raises
    ------
    ValueError
        If the kubeconfig, a certificate or the service account cannot be used.
    """
    if in_cluster:
        return ApiServer(access=account_access(), timeout_s=timeout_s)
    if kubeconfig is not None:
        return ApiServer(access=read_kubeconfig(kubeconfig), timeout_s=timeout_s)
    return None


def _object_of(text: bytes) -> dict[str, Any]:
    try:
        return parse_wire(text)
    except ValueError as error:
        raise ApiError(0, f"API server: answer: {error}") from error


def _message_of(text: bytes) -> str:
    """Message of a ``Status``, or the text itself."""
    try:
        message = parse_wire(text).get("message")
    except ValueError:
        message = None
    return str(message or text.decode("utf-8", "replace"))[:_MOST_MESSAGE].strip()
