"""A scheduler in the event loop of a test, on a free port of the loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc.aio

from agents.cluster.table import policy_named
from scenarios.cluster.access import AccessFlags
from scenarios.cluster.gate import StrangerGate
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.messages import Status, StatusRequest
from scenarios.cluster.rpc import (
    SchedulerLink,
    answers_of,
    make_server,
    serving_at_port,
    serving_at_socket,
)
from scenarios.cluster.service import ClusterService
from scenarios.cluster.store import SqliteStore

TOKEN = "a token of the test"


@asynccontextmanager
async def served(
    folder: Path, token: str = "", tls: tuple[bytes, bytes] | None = None, lease_s: float = 60.0
) -> AsyncIterator[tuple[grpc.aio.Server, AccessFlags, StrangerGate]]:
    """A scheduler that decides at every event, first come first served, and the way to it.

    The gate stands before a port alone; it gives strangers a minute.
    """
    failed: list[BaseException] = []
    cluster = LiveCluster(policy=policy_named("fifo"), lease_s=lease_s)
    store = SqliteStore(folder / "state.db")
    service = ClusterService(cluster, store, name="fifo", round_s=0.0)
    with TemporaryDirectory() as own:
        gate = StrangerGate(Path(own), 60.0)
        server = make_server(answers_of(service), token, failed.append, gate.let_in)
        at = (
            serving_at_socket(server, folder / "s")
            if tls is None
            else serving_at_port(server, gate, "127.0.0.1", 0, tls)
        )
        with closing(store):
            async with at as address:
                keeper = asyncio.create_task(service.keep_time())
                try:
                    port = {} if tls is None else {"port": int(address.rpartition(":")[2])}
                    yield server, AccessFlags(socket=folder / "s", **port), gate
                finally:
                    keeper.cancel()
    assert failed == []


async def status_when(link: SchedulerLink, is_so: Any) -> Status:
    """Status of the time when something is so."""
    version = ""
    while True:
        request = StatusRequest(version=version, wait_s=30.0)
        found = await link.call("Status", request, Status, 600.0)
        if is_so(found):
            return found
        version = found.version
