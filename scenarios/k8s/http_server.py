"""A small HTTP/1.1 server on asyncio: keep-alive, limits of size and time, TLS by its caller.

Everything runs in one thread, so handlers need no locks. Requests of a connection are answered one
after the other, in order.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from scenarios.frame.http_door import MOST_BODY_BYTES, foreign_request
from scenarios.k8s.http_parsing import BadRequestError, HttpRequest, RequestReader

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
    connections: set[RequestReader] = field(default_factory=set)

    def connection(self) -> asyncio.StreamReaderProtocol:
        """Make the protocol of a new connection."""
        return asyncio.StreamReaderProtocol(RequestReader(fed=self._relieve), self._serve)

    def _relieve(self) -> None:
        """Close the connection that holds most if all together hold too much."""
        if sum(each.held_bytes for each in self.connections) > self.limits.held_bytes:
            most = max(self.connections, key=lambda each: each.held_bytes)
            self.connections.discard(most)
            most.set_exception(BadRequestError(503, "too many bytes are under way"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection unless there are too many; what it has begun is carried through."""
        assert isinstance(reader, RequestReader)
        if len(self.connections) >= self.limits.connections:
            self.refused(503, "too many connections")
            writer.transport.abort()
            return
        self.connections.add(reader)
        try:
            await self._converse(reader, writer)
        except BadRequestError as error:
            self.refused(error.status, str(error))
            await _end(reader, writer, error)
        except TimeoutError:
            writer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left
        finally:
            self.connections.discard(reader)
            writer.close()  # once what is written is sent, for which there is no more than a while
            asyncio.get_running_loop().call_later(self.limits.request_s, writer.transport.abort)

    async def _converse(self, reader: RequestReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests one after the other, as far as the client takes the answers."""
        refusal = partial(foreign_request, has_certificate=self.has_certificate)
        wait_s = self.limits.request_s
        while True:
            async with asyncio.timeout(wait_s):
                await reader.begun()
            try:
                async with asyncio.timeout(self.limits.request_s):
                    request = await reader.next_request(
                        self.limits.body_bytes,
                        refusal,
                        lambda: writer.write(b"HTTP/1.1 100 Continue\r\n\r\n"),
                    )
            except TimeoutError as error:
                raise BadRequestError(408, "the request did not arrive in time") from error
            found = self.handler(request)
            answer = found if isinstance(found, HttpResponse) else await found
            is_head_alone = request.method == "HEAD"
            keep_alive = request.keep_alive
            writer.write(answer.rendered(keep_alive=keep_alive, is_head_alone=is_head_alone))
            async with asyncio.timeout(self.limits.request_s):
                await writer.drain()
            if not keep_alive:
                return
            wait_s = self.limits.idle_s


async def _end(reader: RequestReader, writer: asyncio.StreamWriter, error: BadRequestError) -> None:
    """Answer a request that cannot be read, and wait until the client has seen it."""
    body = f"{error}\n".encode()
    answer = HttpResponse(status=error.status, body=body, content_type="text/plain")
    writer.write(answer.rendered(keep_alive=False))
    if writer.can_write_eof():
        writer.write_eof()
    with suppress(TimeoutError, ConnectionError, BadRequestError):
        async with asyncio.timeout(_LINGER_S):
            while await reader.dropped():  # a reset for bytes under way would lose the answer
                pass
