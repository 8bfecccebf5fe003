"""A scheduler in the event loop of a test, on a free port of the loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from agents.cluster.table import policy_named
from scenarios.cluster.access import AccessFlags
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.messages import Status, StatusRequest
from scenarios.cluster.rpc import SchedulerLink, answers_of, bind, make_server
from scenarios.cluster.service import ClusterService
from scenarios.cluster.store import SqliteStore


@asynccontextmanager
async def served(
    folder: Path, token: str = "", tls: tuple[bytes, bytes] | None = None, lease_s: float = 60.0
) -> AsyncIterator[tuple[grpc.aio.Server, AccessFlags]]:
    """A scheduler that decides at every event, first come first served, and the way to it."""
    failed: list[BaseException] = []
    cluster = LiveCluster(policy=policy_named("fifo"), lease_s=lease_s)
    store = SqliteStore(folder / "state.db")
    service = ClusterService(cluster, store, name="fifo", round_s=0.0)
    server = make_server(answers_of(service), token, failed.append)
    address = bind(server, folder / "s" if tls is None else "127.0.0.1", 0, tls)
    await server.start()
    keeper = asyncio.create_task(service.keep_time())
    try:
        port = {} if tls is None else {"port": int(address.rpartition(":")[2])}
        yield server, AccessFlags(socket=folder / "s", **port)
    finally:
        keeper.cancel()
        await server.stop(None)
        store.close()
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
