"""Collections of the Kubernetes API, listed and watched until told to stop.

A list is read in pages; a watch begins at its ``resourceVersion``, asks for bookmarks, and begins
again where it ended. After ``410 Gone`` everything is listed again. Source: Kubernetes, "API
Concepts", documentation.
"""

import logging
import threading
from collections.abc import Mapping
from typing import Any, Protocol

from scenarios.k8s.api_server import ApiError, ApiServer

LOG = logging.getLogger("scenarios.k8s")
_FORBIDDEN, _NOT_FOUND, _GONE = 403, 404, 410
_PAGE = 500
_ABSENT_S = 60.0
_BACKOFF_S = (0.2, 1.0, 2.0, 5.0, 10.0)


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


def watch_collection(
    api: ApiServer, path: str, sink: Sink, stop: threading.Event, *, may_be_absent: bool = False
) -> None:
    """List and watch a collection until told to stop; errors are passed to the sink, then retried.

    A kind that may be absent, or not be read, is logged once and looked for once a minute.
    """
    version: str | None = None
    failures, is_logged = 0, False
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
            if error.status == _GONE:
                version = None
                if failures == 0:
                    failures = 1
                    continue
            if may_be_absent and error.status in {_FORBIDDEN, _NOT_FOUND}:
                if not is_logged:
                    LOG.info("%s: not there or not to be read (%s)", path, error)
                version, is_logged = None, True
                stop.wait(_ABSENT_S)
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
