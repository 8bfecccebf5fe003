"""Remote memory: who serves a load or store, and who has to wait for whom."""

from collections import deque
from collections.abc import Callable
from typing import Any

from astra_sim.core.events import Timers
from astra_sim.files.errors import AstraSimError, DivisionError
from astra_sim.files.memory_config import MemoryConfig

_Request = tuple[Timers, int, Callable[[Any], None], Any]
"""Timers of the NPU that asks, duration [ns], and what to call at the end."""


class RemoteMemory:
    """The remote memory of all NPUs; loads and stores are alike.

    With a memory per NPU nothing waits. A node's memory and the pool serve one request at a time,
    first come first served.
    """

    __slots__ = ("_config", "_npus_per_server", "_num_servers", "_servers")

    def __init__(self, config: MemoryConfig, num_npus: int) -> None:
        self._config = config
        is_pool = config.kind == "pool"
        self._num_servers = 1 if is_pool else config.num_nodes
        self._npus_per_server = num_npus if is_pool else config.num_npus_per_node
        self._servers: dict[int, _Server] = {}

    def request(
        self,
        rank: int,
        timers: Timers,
        num_bytes: int,
        done: Callable[[Any], None],
        argument: Any,
    ) -> None:
        """Load or store ``num_bytes`` for a rank, then call ``done(argument)``.

        Raises
        ------
        AstraSimError
            If there is no remote memory, or none for the rank's node.
        DivisionError
            If the memory has no type.
        """
        config = self._config
        if config.kind == "unset":
            raise DivisionError(
                f"sys[{rank}]: memory-type: must be given where there are memory nodes, got nothing"
            )
        if config.kind == "none":
            raise AstraSimError(
                f"sys[{rank}]: a memory node needs a remote memory, got memory-type "
                "NO_MEMORY_EXPANSION"
            )
        duration_ns = config.duration_ns(num_bytes)
        if config.kind == "per_npu":
            timers.after(duration_ns, done, argument)
        else:
            self._server_of(rank).request((timers, duration_ns, done, argument))

    def _server_of(self, rank: int) -> "_Server":
        number = rank // self._npus_per_server
        if number >= self._num_servers:
            raise AstraSimError(
                f"sys[{rank}]: a remote memory per node must have a node for every NPU that uses "
                f"it, got {self._num_servers} nodes of {self._npus_per_server} NPUs"
            )
        return self._servers.setdefault(number, _Server())


class _Server:
    """Serves one request at a time, by timers of the NPU that made it."""

    __slots__ = ("_is_busy", "_waiting")

    def __init__(self) -> None:
        self._is_busy = False
        self._waiting: deque[_Request] = deque()

    def request(self, request: _Request) -> None:
        """Start a request, or let it wait for its turn."""
        if self._is_busy:
            self._waiting.append(request)
        else:
            self._start(request)

    def _start(self, request: _Request) -> None:
        timers, duration_ns, done, argument = request
        self._is_busy = True
        timers.after(duration_ns, done, argument)
        timers.after(duration_ns, self._release)

    def _release(self, _: Any) -> None:
        self._is_busy = False
        if self._waiting:
            self._start(self._waiting.popleft())
