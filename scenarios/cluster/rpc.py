"""Calls over gRPC without generated code: generic handlers, JSON bodies, a token."""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import grpc
import grpc.aio

from des.base.checks import system_errors
from des.base.names import one_line
from scenarios.cluster.access import AccessFlags, own_socket, require_port, require_proof, token_of
from scenarios.cluster.gate import StrangerGate
from scenarios.cluster.messages import (
    MOST_MESSAGE_BYTES,
    CancelRequest,
    ClusterMessage,
    DrainRequest,
    FollowRequest,
    JobForm,
    MessageT,
    NodeReport,
    StatusRequest,
    message_text,
    read_message,
    read_own,
)

SERVICE = "eastwest.Cluster"

REQUESTS: Mapping[str, type[ClusterMessage]] = MappingProxyType(
    {
        "Report": NodeReport,
        "Follow": FollowRequest,
        "Submit": JobForm,
        "Status": StatusRequest,
        "Drain": DrainRequest,
        "Cancel": CancelRequest,
    }
)
"""Methods and the forms of their requests."""

_SERVER_OPTIONS = (
    ("grpc.max_receive_message_length", MOST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_allowed_incoming_connections", 4096),
    ("grpc.max_concurrent_streams", 16),
    ("grpc.http2.bdp_probe", 0),  # windows stay at 64 KiB
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.so_reuseport", 0),
)
_CLIENT_OPTIONS = (
    ("grpc.max_receive_message_length", -1),  # of a scheduler that has proved itself
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 10_000),  # for a handshake, not between attempts
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.enable_http_proxy", 0),
)
_REFUSALS = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)
LOG = logging.getLogger("scenarios.cluster")

Answer = Callable[[Any], Awaitable[ClusterMessage]]
Server: TypeAlias = grpc.aio.Server


class NoAnswerError(ValueError):
    """The scheduler gives no answer now; it may later."""


def make_server(
    answers: Mapping[str, Answer],
    token: str,
    failed: Callable[[BaseException], None],
    let_in: Callable[[str], None],
) -> Server:
    """Make a server of the methods.

    An error that is no bad input is handed to ``failed``, a peer that has had the token to
    ``let_in``, before its request is read.
    """
    server = grpc.aio.server(options=_SERVER_OPTIONS)
    handlers = {
        name: grpc.stream_unary_rpc_method_handler(_behaviour(name, answer, token, failed, let_in))
        for name, answer in answers.items()
    }
    generic = grpc.method_handlers_generic_handler(SERVICE, handlers)
    server.add_generic_rpc_handlers((generic,))
    return server


def _behaviour(
    name: str,
    answer: Answer,
    token: str,
    failed: Callable[[BaseException], None],
    let_in: Callable[[str], None],
) -> Callable[[AsyncIterator[bytes], Any], Awaitable[bytes]]:
    """Answer of a method; its request is a stream of one, not read before the token is."""

    async def behave(requests: AsyncIterator[bytes], context: Any) -> bytes:
        given = dict(context.invocation_metadata() or ()).get("authorization", "")
        if token and not hmac.compare_digest(str(given).encode(), f"Bearer {token}".encode()):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is missing or wrong")
        let_in(context.peer())
        body = await anext(requests, b"")
        try:
            reply = await answer(read_message(REQUESTS[name], body, name))
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, one_line(str(error)))
            raise
        except Exception as error:
            failed(error)
            raise
        return message_text(reply)

    return behave


@asynccontextmanager
async def serving_at_socket(server: Server, path: Path) -> AsyncIterator[str]:
    """Serve at a socket for a block; gives its address.

    Raises
    ------
    ValueError
        If it cannot be had.
    """
    address = f"unix:{path}"
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise ValueError(f"--socket {path}: cannot listen") from error
    await server.start()
    try:
        yield address
    finally:
        await server.stop(None)


@asynccontextmanager
async def serving_at_port(
    server: Server, gate: StrangerGate, host: str, port: int, tls: tuple[bytes, bytes]
) -> AsyncIterator[str]:
    """Serve at a port behind a gate, with a key and a certificate, for a block; gives its address.

    Raises
    ------
    ValueError
        If it cannot be had, or the certificate is wrong.
    """
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.stop, None)
        try:
            server.add_secure_port(f"unix:{gate.server_socket}", grpc.ssl_server_credentials([tls]))
            await server.start()
            bound = await stack.enter_async_context(gate.open(host, port))
        except (RuntimeError, OSError) as error:
            raise ValueError(f"--host {host} --port {port}: cannot listen") from error
        yield f"{_host_text(host)}:{bound}"


def _host_text(host: str) -> str:
    """Host as it stands before a port."""
    return f"[{host}]" if ":" in host else host


def pem(path: Path) -> bytes:
    """Content of a file with a key or certificates.

    Raises
    ------
    ValueError
        If it cannot be read or holds none.
    """
    with system_errors(f"{path}: cannot be read"):
        content = path.read_bytes()
    if b"-----BEGIN " not in content:
        raise ValueError(f"{path}: must be PEM, with a line of -----BEGIN")
    return content


class SchedulerLink:
    """Way to a scheduler."""

    def __init__(self, flags: AccessFlags) -> None:
        require_port(flags.port)
        token = token_of(flags.token_file)
        require_proof(
            flags.ipaddr,
            "--ipaddr",
            has_tls=flags.tls_ca is not None,
            has_token=bool(token),
            tls_flag="--tls-ca",
        )
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        if flags.tls_ca is None:
            self.address = f"unix:{own_socket(flags.socket)}"
            self._channel = grpc.aio.insecure_channel(self.address, options=_CLIENT_OPTIONS)
        else:
            self.address = f"{_host_text(flags.ipaddr)}:{flags.port}"
            trusted = grpc.ssl_channel_credentials(pem(flags.tls_ca))
            self._channel = grpc.aio.secure_channel(self.address, trusted, options=_CLIENT_OPTIONS)

    async def call(
        self, method: str, request: ClusterMessage, form: type[MessageT], limit_s: float
    ) -> MessageT:
        """Call a method; an answer that takes longer than the limit is none.

        Raises
        ------
        NoAnswerError
            If the scheduler gives no answer.
        ValueError
            If it refuses the request, in its words.
        """
        path = f"/{SERVICE}/{method}"
        try:
            body: bytes = await self._channel.unary_unary(path)(
                message_text(request), timeout=limit_s, metadata=self._metadata
            )
        except grpc.aio.AioRpcError as error:
            details = one_line(error.details() or "")
            if error.code() in _REFUSALS:
                raise ValueError(f"scheduler at {self.address}: {details}") from error
            raise NoAnswerError(
                f"scheduler at {self.address}: gives no answer ({error.code().name}: {details})"
            ) from error
        return read_own(form, body, f"answer of the scheduler at {self.address} to {method}")

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


def call_once(
    flags: AccessFlags, method: str, request: ClusterMessage, form: type[MessageT]
) -> MessageT:
    """Call a method from a command that does nothing else; see `SchedulerLink.call`."""

    async def calling() -> MessageT:
        link = SchedulerLink(flags)
        try:
            return await link.call(method, request, form, 20.0)
        finally:
            await link.close()

    return asyncio.run(calling())


def answers_of(service: Any) -> Mapping[str, Answer]:
    """Methods of a service by name: ``report`` for ``Report``, and so on."""
    return {name: getattr(service, name.lower()) for name in REQUESTS}
