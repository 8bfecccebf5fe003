"""HTTP/1.1 requests of a connection, read by h11 with limits and without its leniences.

h11 takes lines that end in a bare LF, folded headers, a Content-Length next to chunks, and chunks
of HTTP/1.0, as some programs do: a request that two programs read differently can hide another.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import h11

MOST_HEAD_BYTES = 64 * 1024
_LINE = re.compile(rb"(?:[^\r\n \t][^\r\n]*)?\r\n")

Refusal = Callable[[str, Mapping[str, str]], tuple[int, str] | None]


class BadRequestError(Exception):
    """A request that is refused; ``status`` is that of the answer, after which all is closed."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A whole request; ``path`` is without the query."""

    method: str
    path: str
    body: bytes
    keep_alive: bool


class RequestReader(asyncio.StreamReader):
    """Bytes of a connection, and its requests in order.

    Attributes
    ----------
    held_bytes
        Bytes of requests that are not answered.
    """

    def __init__(self, *, fed: Callable[[], None]) -> None:
        super().__init__(limit=MOST_HEAD_BYTES - 1)  # more is a head that is too large
        self.held_bytes, self._num_taken, self._fed = 0, 0, fed
        self._start = b""

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # transports give bytes
        """Take bytes of the connection."""
        super().feed_data(data)
        self.held_bytes += len(data)
        self._fed()

    async def begun(self) -> None:
        """Wait until a request begins."""
        start = b"\r\n"
        while start == b"\r\n":  # empty lines are allowed before a request
            start = await self._taken(self.readexactly(1))
            if start == b"\r":
                start += await self._taken(self.readexactly(1))
        self._start = start

    async def dropped(self) -> int:
        """Read bytes that are not needed; returns how many, and 0 at the end."""
        self.held_bytes = 0
        return len(await self.read(MOST_HEAD_BYTES))

    async def next_request(
        self, most_body_bytes: int, refusal: Refusal, leave: Callable[[], None]
    ) -> HttpRequest:
        """Read the next request.

        Parameters
        ----------
        refusal
            Gives status and reason for a method and headers before their body is read.
        leave
            Is called where the client waits for leave to send the body.

        Raises
        ------
        BadRequestError
            If it cannot be read, or is larger than allowed.
        """
        wire = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)
        body, is_last = bytearray(), False
        try:
            wire.receive_data(await self._read_head())
            head = wire.next_event()
            assert isinstance(head, h11.Request)
            length = _body_length(head, headers := _joined(head))
            refused = refusal(head.method.decode(), headers)
            if refused is not None:
                raise BadRequestError(*refused)
            _require_size(length or 0, most_body_bytes)
            if wire.they_are_waiting_for_100_continue:
                leave()
            if length is not None:
                wire.receive_data(await self._taken(self.readexactly(length)))
            while not isinstance(event := wire.next_event(), h11.EndOfMessage):
                if isinstance(event, h11.Data):
                    body += event.data
                    continue
                line = await self._read_line()  # of a size, or one after the last chunk
                size = 0 if is_last else _chunk_size(line)
                is_last = not size
                _require_size(len(body) + size, most_body_bytes)
                chunk = await self._taken(self.readexactly(size + 2)) if size else b""
                wire.receive_data(line + chunk)
        except h11.RemoteProtocolError as error:
            status = 400 if error.error_status_hint == 501 else error.error_status_hint
            raise BadRequestError(status, str(error).partition(": ")[0]) from error  # no secrets
        self.held_bytes, self._num_taken = self.held_bytes - self._num_taken, 0
        return HttpRequest(
            method=head.method.decode(),
            path=head.target.partition(b"?")[0].decode(),
            body=bytes(body),
            keep_alive=wire.their_state is h11.DONE,
        )

    async def _read_head(self) -> bytes:
        head, start = bytearray(self._start), 0
        while head[start:] != b"\r\n":
            start = len(head) if head.endswith(b"\n") else start
            head += await self._read_line()
            if len(head) > MOST_HEAD_BYTES:
                raise BadRequestError(431, f"the head must be at most {MOST_HEAD_BYTES} bytes")
            if head.endswith(b"\n") and not _LINE.fullmatch(head, start):
                raise BadRequestError(400, "lines must end in CR LF, and not go on in the next one")
        return bytes(head)

    async def _read_line(self) -> bytes:
        """Bytes to the end of a line, or as many as are held at most."""
        try:
            return await self._taken(self.readuntil(b"\n"))
        except asyncio.LimitOverrunError as error:
            return await self._taken(self.readexactly(error.consumed))

    async def _taken(self, reading: Awaitable[bytes]) -> bytes:
        found = await reading
        self._num_taken += len(found)
        return found


def _chunk_size(line: bytes) -> int:
    """Size of the chunk that a line begins; 0 for the last one, and where h11 refuses the line."""
    size = re.match(rb"[0-9A-Fa-f]{1,16}(?=[;\r])", line)
    return int(size[0], 16) if size else 0


def _body_length(head: h11.Request, headers: Mapping[str, str]) -> int | None:
    """Length of a body; None in chunks. Refuses a head that others may read differently."""
    if head.http_version not in (b"1.1", b"1.0"):
        raise BadRequestError(505, "the version must be HTTP/1.1")
    length, is_chunked = headers.get("content-length"), "transfer-encoding" in headers
    if is_chunked and (length or head.http_version == b"1.0"):
        raise BadRequestError(400, "the body must have a Content-Length, or be chunked in 1.1")
    return None if is_chunked else int(length or 0)


def _require_size(num_bytes: int, most_bytes: int) -> None:
    if num_bytes > most_bytes:
        raise BadRequestError(413, f"the body must be at most {most_bytes} bytes")


def _joined(head: h11.Request) -> dict[str, str]:
    """Headers by their names in lower case, values of one name with commas between them."""
    found: dict[str, str] = {}
    for raw, value in head.headers.raw_items():
        name, text = raw.decode().lower(), value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found
