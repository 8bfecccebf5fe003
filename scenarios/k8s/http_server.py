"""A small HTTP/1.1 server on asyncio: keep-alive, limits of size and time, TLS by its caller.

Everything runs in one thread, so handlers need no locks. Requests of a connection are answered one
after the other, in order.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from scenarios.frame.http_door import MOST_BODY_BYTES, foreign_request
from scenarios.k8s.http_parsing import BadRequestError, HttpRequest, RequestParser

_SWEEP_S = 0.5
_LINGER_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """Status, body and further headers of an answer."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()

    def rendered(self, *, keep_alive: bool, is_head_alone: bool = False) -> bytes:
        """Bytes on the wire, without the body in answer to HEAD."""
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        if not keep_alive:
            lines.append("Connection: close")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        return head if is_head_alone else head + self.body


Handler = Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of the server.

    Attributes
    ----------
    body_bytes
        Largest body; more is answered with 413.
    request_s
        Time in which a request must arrive as a whole, and its answer be taken. [s]
    idle_s
        Time for which a connection may stay open between requests. [s]
    connections
        Most connections at once; more are closed at once.
    held_bytes
        Most bytes that all connections together hold before they are answered: above it the
        connection that holds most is closed.
    """

    body_bytes: int = MOST_BODY_BYTES
    request_s: float = 10.0
    idle_s: float = 120.0
    connections: int = 1024
    held_bytes: int = 16 * 2**20


@dataclass(slots=True, kw_only=True)
class HttpServer:
    """Connections of a server, its handler and limits."""

    handler: Handler
    limits: ServerLimits = field(default_factory=ServerLimits)
    refused: Callable[[int, str], None] = lambda _status, _reason: None
    has_certificate: bool = False
    connections: set["Connection"] = field(default_factory=set)

    def connection(self) -> "Connection":
        """Make the protocol of a new connection."""
        return Connection(self)

    def relieve(self) -> None:
        """Close the connection that holds most if all together hold too much."""
        if sum(each.held_bytes for each in self.connections) > self.limits.held_bytes:
            max(self.connections, key=lambda each: each.held_bytes).give_up()

    async def sweep(self) -> None:
        """Close connections that are late, for ever."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            now_s = time.monotonic()
            for each in tuple(self.connections):
                if now_s >= each.deadline_s:
                    each.is_late()


class Connection(asyncio.Protocol):
    """One connection: reads requests, answers them in order."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._parser = RequestParser(
            most_body_bytes=server.limits.body_bytes,
            refusal=partial(foreign_request, has_certificate=server.has_certificate),
        )
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False
        self._is_full = False
        self._has_begun = False
        self.deadline_s = time.monotonic() + server.limits.request_s

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, unless there are too many connections."""
        assert isinstance(transport, asyncio.Transport)
        if len(self._server.connections) >= self._server.limits.connections:
            self._server.refused(503, "too many connections")
            transport.abort()
            return
        self._transport = transport
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; a binding under way is carried through."""
        self._transport = None
        self._server.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and answer the requests that are whole."""
        if self._is_ending or self._transport is None:
            return
        self._parser.feed(data)
        self._go_on()
        if self.held_bytes:
            self._server.relieve()

    @property
    def held_bytes(self) -> int:
        """Bytes of requests that are not answered."""
        return self._parser.held_bytes

    def give_up(self) -> None:
        """Close, since all connections together hold too much."""
        self._refuse(503, "too many bytes are under way")

    def is_late(self) -> None:
        """Close an idle connection; tell a slow client that its request came too late."""
        if self._transport is None or self._task is not None:
            return
        if self._parser.has_begun and not self._is_ending:
            self._refuse(408, "the request did not arrive in time")
        self._transport.abort()

    def pause_writing(self) -> None:
        """Answer no more requests until the client takes its answers."""
        self._is_full = True
        self.deadline_s = time.monotonic() + self._server.limits.request_s
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Read on."""
        self._is_full = False
        self._go_on()

    def _go_on(self) -> None:
        """Answer the requests that are whole, in order, and as far as the client takes answers."""
        if self._task is not None or self._is_full or self._transport is None:
            return
        self._transport.resume_reading()
        while not (self._is_full or self._is_ending or self._task):
            try:
                if self._parser.expects_continue():
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                request = self._parser.next_request()
            except BadRequestError as error:
                self._refuse(error.status, str(error))
                return
            if request is None:
                self._wait()
                return
            self._has_begun = False
            found = self._server.handler(request)
            if not isinstance(found, HttpResponse):
                self._transport.pause_reading()
                self._task = asyncio.ensure_future(self._answer_later(request, found))
                return
            self._write(found, request.keep_alive, is_head_alone=request.method == "HEAD")

    async def _answer_later(self, request: HttpRequest, answer: Awaitable[HttpResponse]) -> None:
        try:
            self._write(await answer, request.keep_alive)
        finally:
            self._task = None
        self._go_on()

    def _wait(self) -> None:
        """Set the deadline of the next request: one that has begun must end in time."""
        begun, limits = self._parser.has_begun, self._server.limits
        if not begun or not self._has_begun:
            self.deadline_s = time.monotonic() + (limits.request_s if begun else limits.idle_s)
        self._has_begun = begun

    def _refuse(self, status: int, reason: str) -> None:
        """Answer a request that cannot be read, and close once the client has seen it."""
        self._server.refused(status, reason)
        body = f"{reason}\n".encode()
        self._write(
            HttpResponse(status=status, body=body, content_type="text/plain"), keep_alive=False
        )

    def _write(
        self, response: HttpResponse, keep_alive: bool, *, is_head_alone: bool = False
    ) -> None:
        if self._transport is None or self._is_ending or self._transport.is_closing():
            return
        text = response.rendered(keep_alive=keep_alive, is_head_alone=is_head_alone)
        self._transport.write(text)
        if not keep_alive:
            self._is_ending = True
            if self._parser.has_begun:  # bytes under way: a reset would lose the answer
                self.deadline_s = time.monotonic() + _LINGER_S
                if self._transport.can_write_eof():
                    self._transport.write_eof()
            else:
                self._transport.close()
            self._parser = RequestParser(most_body_bytes=0)
