"""Sources of the state: a file that is read again when it changes, or the API server."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.devices.k8s.cluster_state import ClusterState, enter_state
from des.devices.k8s.gang_objects import GANG_OBJECTS
from des.devices.server import Server
from scenarios.k8s.api_server import ApiServer
from scenarios.k8s.api_state import ApiState
from scenarios.k8s.service import ExtenderService
from scenarios.k8s.state_file import read_state
from scenarios.k8s.watching import watch_collection

LOG = logging.getLogger("scenarios.k8s")


@dataclass(slots=True, kw_only=True)
class FileSource:
    """A state file, looked at again and again."""

    path: Path
    service: ExtenderService
    gpu: str | None
    poll_s: float
    _servers: dict[tuple[str, ...], Server] = field(default_factory=dict)
    _seen: tuple[int, int, int] | None = None
    _failure: str = ""

    def begin(self) -> None:
        """Read the file for the first time.

        Raises
        ------
        ValueError
            If it is wrong.
        """
        seen = self._stamp()
        self._enter(self._read(), seen)

    async def follow(self) -> None:
        """Read the file whenever it has changed; while it cannot be read, the last state counts."""
        while True:
            await asyncio.sleep(self.poll_s)
            try:
                seen = self._stamp()
                if seen != self._seen:
                    self._enter(await asyncio.to_thread(self._read), seen)
                self.service.known_at_s = self.service.clock()
                self._failure = ""
            except ValueError as error:
                self.service.metrics.state_failures.inc()
                if str(error) != self._failure:
                    LOG.warning("state: %s; the last one counts", error)
                    self._failure = str(error)

    def _read(self) -> ClusterState:
        return read_state(self.path, self.gpu, self._servers)

    def _stamp(self) -> tuple[int, int, int]:
        try:
            found = self.path.stat()
        except OSError as error:
            raise ValueError(f"{self.path}: cannot be read: {error.strerror}") from error
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _enter(self, state: ClusterState, seen: tuple[int, int, int]) -> None:
        decider = self.service.decider
        enter_state(decider.book, state, known_until_s=seen[2] / 1e9)
        decider.waiting.gang_sizes = dict(state.gang_sizes)
        self._seen = seen
        self.service.known_at_s = self.service.clock()


@dataclass(slots=True, kw_only=True)
class ApiSource:
    """Watches of nodes, pods and gangs, each in a thread, whose news are entered in the loop."""

    api: ApiServer
    service: ExtenderService
    stop: threading.Event = field(default_factory=threading.Event)
    contacts_s: dict[str, float] = field(default_factory=dict)

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the threads; they end with the process, or once told to stop."""
        state = ApiState(decider=self.service.decider)
        nodes = _Feed(
            path="/api/v1/nodes",
            source=self,
            loop=loop,
            replaced=lambda items, _: state.replace_nodes(items),
            changed=state.change_node,
        )
        pods = _Feed(
            path="/api/v1/pods",
            source=self,
            loop=loop,
            after=nodes.is_listed,
            replaced=state.replace_pods,
            changed=state.change_pod,
        )
        gangs = (self._gang_feed(path, state, loop) for path in GANG_OBJECTS)
        for feed in (nodes, pods, *gangs):
            threading.Thread(target=feed.run, name=feed.path, daemon=True).start()

    def _gang_feed(self, path: str, state: ApiState, loop: asyncio.AbstractEventLoop) -> "_Feed":
        """Feed of a kind of objects with sizes of gangs, which the cluster may not have."""
        return _Feed(
            path=path,
            source=self,
            loop=loop,
            replaced=lambda items, _: state.replace_gangs(path, items),
            changed=lambda kind, item: state.change_gang(path, kind, item),
            is_needed=False,
        )


@dataclass(slots=True, kw_only=True)
class _Feed:
    """One collection: called from its thread, it hands everything to the loop.

    ``is_needed`` tells whether the state is known only with it.
    """

    path: str
    source: ApiSource
    loop: asyncio.AbstractEventLoop
    replaced: Callable[[list[dict[str, Any]], float], None]
    changed: Callable[[str, Mapping[str, Any]], None]
    after: threading.Event | None = None
    is_needed: bool = True
    is_listed: threading.Event = field(default_factory=threading.Event)
    _failure: str = ""

    def run(self) -> None:
        """Follow the collection; that of pods once the nodes are known."""
        while self.after is not None and not self.after.wait(0.05):
            if self.source.stop.is_set():
                return
        watch_collection(
            self.source.api, self.path, self, self.source.stop, may_be_absent=not self.is_needed
        )

    def replace(self, items: list[dict[str, Any]], begun_s: float) -> None:
        """Hand a list over."""
        self._call(lambda: self.replaced(items, begun_s))
        self.is_listed.set()

    def change(self, kind: str, item: dict[str, Any]) -> None:
        """Hand an event over."""
        self._call(lambda: self.changed(kind, item))

    def contact(self) -> None:
        """Hand over that nothing else has changed."""
        self._call(lambda: None)

    def failed(self, reason: str) -> None:
        """Count a failure, and log it once."""
        service = self.source.service

        def enter() -> None:
            service.metrics.state_failures.inc()
            if reason != self._failure:
                LOG.warning("%s: %s; the last state counts", self.path, reason)
                self._failure = reason

        self._in_loop(enter)

    def now_s(self) -> float:
        """Time of the service."""
        return self.source.service.clock()

    def _call(self, news: Callable[[], None]) -> None:
        service, contacts_s = self.source.service, self.source.contacts_s

        def enter() -> None:
            news()
            self._failure = ""
            if not self.is_needed:
                return
            contacts_s[self.path] = service.clock()
            if len(contacts_s) == 2:
                service.known_at_s = min(contacts_s.values())

        self._in_loop(enter)

    def _in_loop(self, call: Callable[[], None]) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(call)
