"""Running of the extender: its parts put together, a socket, and the end on SIGTERM."""

import asyncio
import logging
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from agents.devices.k8s.book import GpuBook
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.node_fit import POLICY_NAMED, fit_on_server
from des.base.speaking import SPEAKER
from des.devices.k8s.pods import PodKeys
from des.devices.presets import simulated
from scenarios.frame.log_lines import log_to_stderr
from scenarios.k8s.api_server import reach
from scenarios.k8s.extender_config import Config
from scenarios.k8s.http_server import HttpServer, ServerLimits
from scenarios.k8s.service import ExtenderService
from scenarios.k8s.sources import ApiSource, FileSource
from scenarios.k8s.weights_file import read_weights

LOG = logging.getLogger("scenarios.k8s")
PERIOD_S = 1.0
"""Time between two looks at the promises. [s]"""

Patcher = Callable[[str, Mapping[str, Any]], Awaitable[str]]
"""Patches an object of the API server; returns the error, empty if there was none."""


async def follow_promises(
    service: ExtenderService, patch: Patcher, *, period_s: float = PERIOD_S
) -> None:
    """End promises at their deadlines; where there is news, change an annotation of the node."""
    failure = ""
    while True:
        await asyncio.sleep(period_s)
        book = service.decider.book
        book.expire(service.clock())
        node, book.news_on = book.news_on, None
        if node is None or node not in book.nodes or not service.decider.has_waiting():
            continue
        key = service.decider.keys.annotation("promises-ended")
        content = {"metadata": {"annotations": {key: f"{service.clock():.3f}"}}}
        error = await patch(f"/api/v1/nodes/{quote(node, safe='')}", content)
        if error:
            book.news_on = book.news_on or node  # again in a while
        if error and error != failure:
            LOG.warning("node %s: %s; waiting pods are not told that GPUs are free", node, error)
        failure = error


_DEVICE_PLUGIN = (
    "GPU numbers bind a pod only through DRA: with the device plugin the kubelet chooses the GPUs"
)


def serve_extender(config: Config) -> int:
    """Serve until SIGTERM; returns the exit code.

    Raises
    ------
    ValueError
        If a file is wrong, or the port cannot be had.
    """
    log_to_stderr(logging.INFO)
    service = service_of(config)
    _warm_up()
    return asyncio.run(_serve(config, service))


def service_of(config: Config) -> ExtenderService:
    """Service of a configuration, before any state is known."""
    if config.default_policy not in POLICY_NAMED:
        raise ValueError(
            f"--default-policy must be one of {', '.join(POLICY_NAMED)}; "
            f"got {config.default_policy!r}"
        )
    keys = PodKeys(
        resources=config.resources,
        policy_annotation=config.policy_annotation,
        default_policy=config.default_policy,
    )
    decider = Decider(
        book=GpuBook(),
        keys=keys,
        weights=read_weights(config.weights),
        gang_timeout_s=config.gang_timeout_s,
    )
    return ExtenderService(decider=decider, annotates_gpus=config.annotate_gpus)


def _warm_up() -> None:
    """Decide once, so that no caller waits for what is compiled on first use."""
    fit_on_server(simulated("dgx-1-v100"), (0, 1, 2, 3, 4), 3, "best-effort")


async def _serve(config: Config, service: ExtenderService) -> int:
    loop = asyncio.get_running_loop()
    api = reach(config.kubeconfig, config.in_cluster, config.api_timeout_s)
    if api is not None:
        service.poster = _InThread(api.post)
    limits = ServerLimits(
        body_bytes=config.max_body_bytes,
        request_s=config.request_timeout_s,
        idle_s=config.idle_timeout_s,
        connections=config.max_connections,
    )
    server = HttpServer(
        handler=service.answer,
        limits=limits,
        refused=service.refused,
        has_certificate=config.tls_cert is not None,
    )
    tasks: list[asyncio.Task[None]] = []
    if api is not None:
        tasks.append(asyncio.create_task(follow_promises(service, _InThread(api.patch))))
    source: ApiSource | None = None
    if config.state is not None:
        file = FileSource(path=config.state, service=service, gpu=config.gpu, poll_s=config.poll_s)
        file.begin()
        tasks.append(asyncio.create_task(file.follow()))
    elif api is not None:
        source = ApiSource(api=api, service=service)
        source.begin(loop)
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    listening = await _listening(config, server)
    port = listening.sockets[0].getsockname()[1]
    scheme = "http" if config.tls_cert is None else "https"
    sys.stdout.write(f"listening at {scheme}://{config.host}:{port}/scheduler\n")
    sys.stdout.flush()
    logging.getLogger("scenarios.k8s").info(_DEVICE_PLUGIN)
    with SPEAKER.resting():
        await ended.wait()
    if source is not None:
        source.stop.set()
    listening.close()
    for task in tasks:
        task.cancel()
    return 0


async def _listening(config: Config, server: HttpServer) -> asyncio.Server:
    tls = _tls_of(config)
    try:
        return await asyncio.get_running_loop().create_server(
            server.connection,
            config.host,
            config.port,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else config.request_timeout_s,
            backlog=min(config.max_connections, 1024),
        )
    except OSError as error:
        raise ValueError(
            f"--host {config.host} --port {config.port}: cannot listen: {error}"
        ) from error


def _tls_of(config: Config) -> ssl.SSLContext | None:
    if config.tls_cert is None or config.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.tls_cert, config.tls_key)
        if config.client_ca is not None:
            context.load_verify_locations(config.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise ValueError(
            f"--tls-cert {config.tls_cert}, --tls-key {config.tls_key}, --client-ca "
            f"{config.client_ca}: cannot be used: {error}"
        ) from error
    return context


class _InThread:
    """Sends from a thread, so that other requests are answered meanwhile."""

    def __init__(self, send: Callable[[str, Mapping[str, Any]], str]) -> None:
        self._send = send

    async def __call__(self, path: str, content: Mapping[str, Any]) -> str:
        return await asyncio.to_thread(self._send, path, content)
