"""Collections of the Kubernetes API, listed and watched until told to stop.

A watch begins at the version of a list, asks for bookmarks, and begins again where it ended. After
``410 Gone`` everything is listed again. Source: Kubernetes, "API Concepts", documentation.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from scenarios.k8s.api_server import ApiError, ApiServer
from scenarios.k8s.service import ExtenderService

LOG = logging.getLogger("scenarios.k8s")
_FORBIDDEN, _NOT_FOUND, _GONE = 403, 404, 410
_ABSENT_S = 60.0
_BACKOFF_S = (0.2, 1.0, 2.0, 5.0, 10.0)


@dataclass(slots=True, kw_only=True)
class Feed:
    """One collection: called from its thread, it hands everything to the loop.

    Attributes
    ----------
    replaced
        Takes all objects of a list that was begun at a time.
    changed
        Takes an event, ADDED, MODIFIED or DELETED, and its object.
    after
        Is set where the collections are known that this one is entered into.
    contacts_s
        Times of the latest contact by path, of those that the state needs; None: the state is
        known without this one, which the cluster may not have, or not let us read.
    """

    api: ApiServer
    service: ExtenderService
    stop: threading.Event
    loop: asyncio.AbstractEventLoop
    path: str
    replaced: Callable[[list[dict[str, Any]], float], None]
    changed: Callable[[str, Mapping[str, Any]], None]
    after: threading.Event | None = None
    contacts_s: dict[str, float] | None = None
    is_listed: threading.Event = field(default_factory=threading.Event)
    _version: str | None = None
    _num_failures: int = 0
    _failure: str = ""
    _is_logged: bool = False

    def run(self) -> None:
        """Follow the collection; errors are counted and logged, then it is tried again."""
        while self.after is not None and not self.after.wait(0.05):
            if self.stop.is_set():
                return
        while not self.stop.is_set():
            try:
                self._follow()
            except ApiError as error:
                self.stop.wait(self._pause_s(error))

    def _follow(self) -> None:
        """List the collection if its version is not known, and watch it until the server ends."""
        if self._version is None:
            begun_s = self.service.clock()
            items, self._version = self.api.listed(self.path)
            self._enter(partial(self.replaced, items, begun_s))
            self.is_listed.set()
        for event in self.api.watch(self.path, self._version):
            if self.stop.is_set():
                return
            self._take(event)
            self._num_failures = 0
        self._enter()
        self._num_failures = 0

    def _take(self, event: Mapping[str, Any]) -> None:
        kind, item = event.get("type"), event.get("object")
        if not isinstance(item, dict):
            raise ApiError(0, "API server: an event must have an object")
        if kind == "ERROR":
            raise ApiError(int(item.get("code") or 0), f"watch ended: {item.get('message')}")
        metadata = item.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        if not isinstance(version, str):
            raise ApiError(0, "API server: an event must have a resourceVersion")
        self._version = version
        self._enter(None if kind == "BOOKMARK" else partial(self.changed, str(kind), item))

    def _pause_s(self, error: ApiError) -> float:
        """Time until it is tried again."""
        if error.status == _GONE:
            self._version = None
            if self._num_failures == 0:
                self._num_failures = 1
                return 0.0
        if self.contacts_s is None and error.status in {_FORBIDDEN, _NOT_FOUND}:
            if not self._is_logged:
                LOG.info("%s: not there or not to be read (%s)", self.path, error)
            self._version, self._is_logged = None, True
            return _ABSENT_S
        self._in_loop(partial(self._fail, str(error)))
        self._num_failures += 1
        return _BACKOFF_S[min(self._num_failures, len(_BACKOFF_S)) - 1]

    def _fail(self, reason: str) -> None:
        """Count a failure, and log it once."""
        self.service.metrics.state_failures.inc()
        if reason != self._failure:
            LOG.warning("%s: %s; the last state counts", self.path, reason)
            self._failure = reason

    def _enter(self, news: Callable[[], None] | None = None) -> None:
        """Hand news over, or that there are none."""
        self._in_loop(partial(self._know, news))

    def _know(self, news: Callable[[], None] | None) -> None:
        if news is not None:
            news()
        self._failure = ""
        if self.contacts_s is not None:
            self.contacts_s[self.path] = self.service.clock()
            if len(self.contacts_s) == 2:
                self.service.known_at_s = min(self.contacts_s.values())

    def _in_loop(self, call: Callable[[], None]) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(call)
