"""Sources of the state: a file that is read again when it changes, or the API server."""

import asyncio
import logging
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agents.devices.k8s.cluster_state import ClusterState, enter_state
from des.base.checks import system_errors
from des.devices.k8s.gang_objects import GANG_OBJECTS
from des.devices.server import Server
from scenarios.k8s.api_server import ApiServer
from scenarios.k8s.api_state import ApiState
from scenarios.k8s.service import ExtenderService
from scenarios.k8s.state_file import read_state
from scenarios.k8s.watching import Feed

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
        with system_errors(f"{self.path}: cannot be read"):
            found = self.path.stat()
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
        own = partial(Feed, api=self.api, service=self.service, stop=self.stop, loop=loop)
        nodes = own(
            path="/api/v1/nodes",
            replaced=lambda items, _: state.replace_nodes(items),
            changed=state.change_node,
            contacts_s=self.contacts_s,
        )
        pods = own(
            path="/api/v1/pods",
            after=nodes.is_listed,
            replaced=state.replace_pods,
            changed=state.change_pod,
            contacts_s=self.contacts_s,
        )

        def of_gangs(path: str) -> Feed:
            return own(
                path=path,
                replaced=lambda items, _: state.replace_gangs(path, items),
                changed=partial(state.change_gang, path),
            )

        for feed in (nodes, pods, *map(of_gangs, GANG_OBJECTS)):
            threading.Thread(target=feed.run, name=feed.path, daemon=True).start()
