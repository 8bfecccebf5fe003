"""Client of the Kubernetes API: lists, watches and posts, by its documented HTTP interface.

A list is read in pages; a watch begins at its ``resourceVersion``, asks for bookmarks, and begins
again where it ended. After ``410 Gone`` everything is listed again. Source: Kubernetes, "API
Concepts", documentation.
"""

import http.client
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from scenarios.k8s.kubeconfig import ApiAccess

GONE = 410
_PAGE = 500
_WATCH_S = 240
_MOST_MESSAGE = 300
_BACKOFF_S = (0.2, 1.0, 2.0, 5.0, 10.0)


class ApiError(Exception):
    """The API server cannot be reached or refused; ``status`` is 0 where no answer came."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Sink(Protocol):
    """Taker of a collection's objects; called from the thread of the watch."""

    def replace(self, items: list[dict[str, Any]], begun_s: float) -> None:
        """Take all objects of a list that was begun at a time."""

    def change(self, kind: str, item: dict[str, Any]) -> None:
        """Take an event: ADDED, MODIFIED or DELETED."""

    def contact(self) -> None:
        """Take the news that nothing else has changed until now."""

    def failed(self, reason: str) -> None:
        """Take the reason why the API server does not answer."""

    def now_s(self) -> float:
        """Time of the taker's clock. [s]"""


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
    _tls: ssl.SSLContext | None = field(init=False)

    def __post_init__(self) -> None:
        self._tls = self.access.tls()

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
        try:
            connection, response = self._begin("POST", path, self.timeout_s, content)
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
        self, method: str, target: str, timeout_s: float, content: Mapping[str, Any] | None = None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        parts = urlsplit(self.access.url)
        assert parts.hostname is not None
        connection: http.client.HTTPConnection
        if self._tls is None:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
        else:
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=timeout_s, context=self._tls
            )
        body = None if content is None else json.dumps(content).encode()
        headers = {"Accept": "application/json", **self.access.headers()}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, f"{parts.path}{target}", body, headers)
            response = connection.getresponse()
            if response.status < 300:
                return connection, response
            text = response.read(100_000)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ApiError(0, f"{self.access.url}: {error or type(error).__name__}") from error
        connection.close()
        raise ApiError(response.status, f"API server: {response.status} {_message_of(text)}")


def _object_of(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ApiError(0, f"API server: answer is not readable as JSON: {error}") from error
    if not isinstance(found, dict):
        raise ApiError(0, "API server: answer must be a JSON object")
    return found


def _message_of(text: bytes) -> str:
    """Message of a ``Status``, or the text itself."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    message = found.get("message") if isinstance(found, dict) else None
    return str(message or text.decode("utf-8", "replace"))[:_MOST_MESSAGE].strip()


def list_collection(api: ApiServer, path: str) -> tuple[list[dict[str, Any]], str]:
    """List a collection in pages; returns its objects and its version.

    Raises
    ------
    ApiError
        If a page does not come.
    """
    items: list[dict[str, Any]] = []
    query = {"limit": str(_PAGE)}
    while True:
        page = api.get(path, query)
        metadata = page.get("metadata") or {}
        items += [item for item in page.get("items") or () if isinstance(item, dict)]
        if not metadata.get("continue"):
            return items, str(metadata.get("resourceVersion", ""))
        query["continue"] = str(metadata["continue"])


def watch_collection(api: ApiServer, path: str, sink: Sink, stop: threading.Event) -> None:
    """List and watch a collection until told to stop; errors are told to the sink, then retried."""
    version: str | None = None
    failures = 0
    while not stop.is_set():
        try:
            if version is None:
                begun_s = sink.now_s()
                items, version = list_collection(api, path)
                sink.replace(items, begun_s)
            for event in api.watch(path, version):
                if stop.is_set():
                    return
                version = _taken(event, sink)
                failures = 0
            sink.contact()
            failures = 0
        except ApiError as error:
            if error.status == GONE:
                version = None
                if failures == 0:
                    failures = 1
                    continue
            sink.failed(str(error))
            stop.wait(_BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)])
            failures += 1


def _taken(event: Mapping[str, Any], sink: Sink) -> str:
    """Pass an event on; returns the version that it brings."""
    kind, item = event.get("type"), event.get("object")
    if not isinstance(item, dict):
        raise ApiError(0, "API server: an event must have an object")
    if kind == "ERROR":
        raise ApiError(int(item.get("code") or 0), f"watch ended: {item.get('message')}")
    metadata = item.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if not isinstance(version, str):
        raise ApiError(0, "API server: an event must have a resourceVersion")
    if kind == "BOOKMARK":
        sink.contact()
    else:
        sink.change(str(kind), item)
    return version
