"""Client of the Kubernetes API: reads, watches, posts and patches, as the API documents them.

Source: Kubernetes, "API Concepts", documentation.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from des.base.extras import require_extra
from des.base.lazy import lazy_imports
from des.devices.k8s.wire import parse_wire

with lazy_imports(__name__):
    import urllib3
    from kubernetes import client, config

    from scenarios.k8s import kubeconfig

_UNAUTHORIZED = 401
_PAGE = 500
_EARLY_S = 10.0
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
    log_in
        Gives a client with credentials: at the start, and where they expire or are refused.
    timeout_s
        Most time without an answer. [s]
    """

    log_in: Callable[[], "kubeconfig.Login"]
    timeout_s: float = 10.0
    _login: "kubeconfig.Login" = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._login = self.log_in()

    def get(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Read an object.

        Raises
        ------
        ApiError
            If it does not come.
        """
        with self._answer("GET", path, query=query) as answer:
            return _object_of(answer.read())

    def listed(self, path: str) -> tuple[list[dict[str, Any]], str]:
        """List a collection in pages; returns its objects and its version.

        Raises
        ------
        ApiError
            If a page does not come.
        """
        items: list[dict[str, Any]] = []
        query = {"limit": str(_PAGE)}
        while True:
            page = self.get(path, query)
            metadata = page.get("metadata") or {}
            items += [item for item in page.get("items") or () if isinstance(item, dict)]
            if not metadata.get("continue"):
                return items, str(metadata.get("resourceVersion", ""))
            query["continue"] = str(metadata["continue"])

    def post(self, path: str, content: Mapping[str, Any]) -> str:
        """Post an object; returns the error, empty if there was none."""
        return self._sent("POST", path, content, "application/json")

    def patch(self, path: str, content: Mapping[str, Any]) -> str:
        """Change an object by a merge patch; returns the error, empty if there was none."""
        return self._sent("PATCH", path, content, "application/merge-patch+json")

    def _sent(self, method: str, path: str, content: Mapping[str, Any], kind: str) -> str:
        try:
            with self._answer(method, path, content=content, kind=kind) as answer:
                answer.read()
        except ApiError as error:
            return str(error) or "no answer of the API server"
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
        with self._answer("GET", path, query=query, more_s=_WATCH_S) as answer:
            for line in answer.response:
                if line.strip():
                    yield _object_of(line)

    @contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        content: Mapping[str, Any] | None = None,
        kind: str = "application/json",
        more_s: float = 0.0,
    ) -> Iterator[Any]:
        """Begin a request, and close its answer; credentials that are refused are renewed once."""
        refused, url = None, f"{self._login.configuration.host}{path}"
        try:
            while True:
                login = self._valid_login(refused)
                caller = client.ApiClient(login.configuration)  # with connections of its own
                request = caller.param_serialize(
                    method,
                    path,
                    query_params=query,
                    header_params={"Accept": "application/json", "Content-Type": kind},
                    body=content,
                    auth_settings=["BearerToken"],
                )
                answer = caller.call_api(*request, _request_timeout=self.timeout_s + more_s)
                with closing(answer.response):
                    if answer.status < 300:
                        yield answer
                        return
                    reason = f"API server: {answer.status} {_message_of(answer.read())}"
                if answer.status != _UNAUTHORIZED or refused is not None:
                    raise ApiError(answer.status, reason)
                refused = login
        except client.ApiException as error:
            raise ApiError(0, f"{url}: {' '.join(str(error.reason).split())}") from error
        except (OSError, ValueError, urllib3.exceptions.HTTPError, config.ConfigException) as error:
            raise ApiError(0, f"{url}: {error or type(error).__name__}") from error

    def _valid_login(self, refused: "kubeconfig.Login | None") -> "kubeconfig.Login":
        with self._lock:
            if self._login is refused or self._login.until_s < time.time() + _EARLY_S:
                self._login = self.log_in()
            return self._login


def reach(path: Path | None, in_cluster: bool, timeout_s: float) -> ApiServer | None:
    """API server of a kubeconfig, or of the pod that this runs in; None for neither.

    Raises
    ------
    ValueError
        If the kubeconfig, a certificate or the service account cannot be used.
    """
    if path is None and not in_cluster:
        return None
    require_extra("--in-cluster" if in_cluster else "--kubeconfig", "kubernetes")
    return ApiServer(log_in=lambda: kubeconfig.log_in(path), timeout_s=timeout_s)


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
