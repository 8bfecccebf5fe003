"""Server of a scheduler: its parts put together, a port, and the end on a signal."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from agents.cluster.table import PolicySetting, policy_named
from des.base.extras import require_extra
from des.base.interruption import heard_handlers
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from scenarios.cluster.access import hold_socket, token_of
from scenarios.cluster.gate import StrangerGate
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.rpc import (
    Server,
    answers_of,
    make_server,
    pem,
    serving_at_port,
    serving_at_socket,
)
from scenarios.cluster.scheduler_config import Config
from scenarios.cluster.service import ClusterService
from scenarios.cluster.store import SqliteStore, StateStore
from scenarios.frame.log_lines import log_to_stderr

with lazy_imports(__name__):
    from scenarios.cluster import redis_store


def serve_cluster(config: Config) -> int:
    """Serve until a signal; returns the exit code.

    Raises
    ------
    ValueError
        If there is no such policy, the state is in use or damaged, or the port cannot be had.
    """
    log_to_stderr(logging.WARNING)
    policy = policy_named(
        config.policy,
        placing=config.placing,
        admission=config.admission,
        preempting=config.preempting,
        level=config.level,
        is_level_required=config.level_required,
        setting=PolicySetting(
            quantum_s=config.round_duration or None, checkpoint=config.policy_file
        ),
    )
    cluster = LiveCluster(policy=policy, lease_s=config.lease, grace_s=config.grace)
    store = open_store(config.state)
    try:
        with SPEAKER.resting():
            return asyncio.run(_serve(config, cluster, store))
    finally:
        store.close()


def open_store(state: str) -> StateStore:
    """Open the state that a flag names.

    Raises
    ------
    ValueError
        If it is in use or damaged.
    """
    if not state.startswith(("redis://", "rediss://")):
        return SqliteStore(Path(state))
    require_extra(f"--state {state}", "redis")
    store: StateStore = redis_store.RedisStore(state)
    return store


async def _serve(config: Config, cluster: LiveCluster, store: StateStore) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end(error: BaseException | None = None) -> None:
        if not ended.done():
            if error is None:
                ended.set_result(None)
            else:
                ended.set_exception(error)

    for number in heard_handlers():
        loop.add_signal_handler(number, end)
    service = ClusterService(
        cluster,
        store,
        name=config.policy,
        round_s=config.round_duration,
        tracked=config.tracked(),
    )
    with TemporaryDirectory(prefix="eastwest-cluster-") as folder:
        gate = StrangerGate(Path(folder))
        server = make_server(answers_of(service), token_of(config.token_file), end, gate.let_in)
        async with _served(server, gate, config) as address:
            sys.stdout.write(f"listening at {address}\n")
            sys.stdout.flush()
            time_keeper = asyncio.create_task(service.keep_time())
            try:
                await asyncio.wait((ended, time_keeper), return_when=asyncio.FIRST_COMPLETED)
                if time_keeper.done():
                    time_keeper.result()
                ended.result()
            finally:
                time_keeper.cancel()
    return 0


@asynccontextmanager
async def _served(server: Server, gate: StrangerGate, config: Config) -> AsyncIterator[str]:
    """Serve for a block where the flags say; gives the address."""
    if config.tls_cert is not None and config.tls_key is not None:
        tls = pem(config.tls_key), pem(config.tls_cert)
        async with serving_at_port(server, gate, config.host, config.port, tls) as address:
            yield address
        return
    with hold_socket(config.socket) as path:
        async with serving_at_socket(server, path) as address:
            yield address
