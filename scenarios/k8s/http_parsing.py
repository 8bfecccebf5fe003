"""HTTP/1.1 requests out of a stream of bytes: lengths or chunks, with limits, nothing guessed."""

import re
from dataclasses import dataclass

MOST_HEAD_BYTES = 64 * 1024
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DIGITS = re.compile(rb"\d{1,18}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})(?:[ \t]*;[^\r\n]*)?")
_BLANK = b"\r\n\r\n"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    method: str
    path: str
    keep_alive: bool
    length: int | None
    expects_continue: bool


class RequestParser:
    """Requests of one connection, in order."""

    def __init__(self, *, most_body_bytes: int) -> None:
        self._most = most_body_bytes
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._chunks = bytearray()

    @property
    def has_begun(self) -> bool:
        """Whether part of a request is there."""
        return self._head is not None or bool(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take bytes of the connection."""
        self._buffer += data

    def expects_continue(self) -> bool:
        """Tell once whether the client waits for leave to send the body."""
        self._read_head()
        head = self._head
        if head is None or not head.expects_continue or self._buffer:
            return False
        self._head = _Head(
            method=head.method,
            path=head.path,
            keep_alive=head.keep_alive,
            length=head.length,
            expects_continue=False,
        )
        return True

    def next_request(self) -> HttpRequest | None:
        """Take the next whole request; None if it has not arrived yet.

        Raises
        ------
        BadRequestError
            If it cannot be read, or is larger than allowed.
        """
        self._read_head()
        head = self._head
        if head is None:
            return None
        body = self._chunked() if head.length is None else self._sized(head.length)
        if body is None:
            return None
        self._head = None
        return HttpRequest(
            method=head.method, path=head.path, body=body, keep_alive=head.keep_alive
        )

    def _read_head(self) -> None:
        if self._head is not None:
            return
        while self._buffer[:2] == b"\r\n":  # allowed before a request
            del self._buffer[:2]
        end = self._buffer.find(_BLANK, 0, MOST_HEAD_BYTES + len(_BLANK))
        if end < 0:
            if len(self._buffer) > MOST_HEAD_BYTES:
                raise BadRequestError(431, f"the head must be at most {MOST_HEAD_BYTES} bytes")
            return
        head = _head_of(bytes(self._buffer[:end]))
        if head.length is not None and head.length > self._most:
            raise BadRequestError(413, f"the body must be at most {self._most} bytes")
        del self._buffer[: end + len(_BLANK)]
        self._head = head

    def _sized(self, length: int) -> bytes | None:
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def _chunked(self) -> bytes | None:
        while True:
            end = self._buffer.find(b"\r\n", 0, 1024)
            if end < 0:
                if len(self._buffer) >= 1024:
                    raise BadRequestError(400, "the size of a chunk must be a line")
                return None
            found = _CHUNK.fullmatch(bytes(self._buffer[:end]))
            if found is None:
                raise BadRequestError(400, "the size of a chunk must be a hexadecimal number")
            size = int(found[1], 16)
            if len(self._chunks) + size > self._most:
                raise BadRequestError(413, f"the body must be at most {self._most} bytes")
            last = end + 2 + size
            if size == 0:
                return self._after_last_chunk(end)
            if len(self._buffer) < last + 2:
                return None
            if self._buffer[last : last + 2] != b"\r\n":
                raise BadRequestError(400, "a chunk must have the size that it says")
            self._chunks += self._buffer[end + 2 : last]
            del self._buffer[: last + 2]

    def _after_last_chunk(self, end: int) -> bytes | None:
        """Body, once the trailers after the last chunk, which count for nothing, are there."""
        trailers = self._buffer.find(_BLANK, end)
        if trailers < 0:
            if len(self._buffer) > MOST_HEAD_BYTES:
                raise BadRequestError(431, f"trailers must be at most {MOST_HEAD_BYTES} bytes")
            return None
        del self._buffer[: trailers + len(_BLANK)]
        body, self._chunks = bytes(self._chunks), bytearray()
        return body


def _head_of(text: bytes) -> _Head:
    first, *lines = text.split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or not words[1].isascii():
        raise BadRequestError(400, "the first line must be METHOD TARGET HTTP/1.1")
    if words[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise BadRequestError(505, "the version must be HTTP/1.1")
    lengths: set[bytes] = set()
    codings: list[bytes] = []
    connection = expect = b""
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name):
            raise BadRequestError(400, "a header must be NAME: VALUE")
        key, value = name.lower(), value.strip(b" \t")
        if key == b"content-length":
            lengths.add(value)
        elif key == b"transfer-encoding":
            codings.append(value.lower())
        elif key == b"connection":
            connection = value.lower()
        elif key == b"expect":
            expect = value.lower()
    return _Head(
        method=words[0].decode(),
        path=words[1].partition(b"?")[0].decode(),
        keep_alive=b"close" not in connection
        and (words[2] == b"HTTP/1.1" or b"keep-alive" in connection),
        length=_length(lengths, codings),
        expects_continue=expect == b"100-continue",
    )


def _length(lengths: set[bytes], codings: list[bytes]) -> int | None:
    """Length of the body; None for one in chunks."""
    if codings:
        if lengths or codings != [b"chunked"]:
            raise BadRequestError(400, "the body must have a Content-Length, or be chunked")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not _DIGITS.fullmatch(next(iter(lengths))):
        raise BadRequestError(400, "Content-Length must be one number")
    return int(next(iter(lengths)))
