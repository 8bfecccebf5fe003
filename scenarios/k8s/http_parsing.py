"""HTTP/1.1 requests out of a stream of bytes, read by h11 with limits and without its leniences.

h11 takes lines that end in a bare LF, folded headers, a Content-Length next to chunks, and chunks
of HTTP/1.0, as some programs do: a request that two programs read differently can hide another.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import h11

MOST_HEAD_BYTES = 64 * 1024
_BLANK = b"\r\n\r\n"
_CHUNKS_BYTES = 4096
_LENIENT = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)|\r\n[ \t]")


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


class RequestParser:
    """Requests of one connection, in order; each is read by a parser of its own.

    ``refusal`` gives status and reason for a method and headers before their body is read.
    """

    def __init__(
        self, *, most_body_bytes: int, refusal: Refusal = lambda _method, _headers: None
    ) -> None:
        self._most, self._refusal = most_body_bytes, refusal
        self._unread = bytearray()  # a head that is not whole, or requests after this one
        self._num_scanned = 0
        self._wire: h11.Connection | None = None  # of a request whose head is read
        self._head: h11.Request | None = None
        self._length: int | None = 0  # of its body; None in chunks
        self._body = bytearray()
        self._num_fed = 0  # bytes of it that h11 has got
        self._is_whole = False

    @property
    def held_bytes(self) -> int:
        """Bytes of requests that are not answered."""
        return len(self._unread) + self._num_fed

    @property
    def has_begun(self) -> bool:
        """Whether part of a request is there."""
        return self._head is not None or bool(self._unread)

    def feed(self, data: bytes) -> None:
        """Take bytes of the connection."""
        self._unread += data

    def expects_continue(self) -> bool:
        """Tell once whether the client waits for leave to send the body."""
        self._read()
        if self._wire is None or not self._wire.they_are_waiting_for_100_continue:
            return False
        self._wire.send(h11.InformationalResponse(status_code=100, headers=[]))
        return True

    def next_request(self) -> HttpRequest | None:
        """Take the next whole request; None if it has not arrived yet.

        Raises
        ------
        BadRequestError
            If it cannot be read, or is larger than allowed.
        """
        self._read()
        if not self._is_whole:
            return None
        assert self._wire is not None
        assert self._head is not None
        request = HttpRequest(
            method=self._head.method.decode(),
            path=self._head.target.partition(b"?")[0].decode(),
            body=bytes(self._body),
            keep_alive=self._wire.their_state is h11.DONE,
        )
        self._unread[:0], self._body = self._wire.trailing_data[0], bytearray()
        self._wire, self._head, self._is_whole, self._num_fed = None, None, False, 0
        return request

    def _read(self) -> None:
        """Read what has come."""
        try:
            if self._wire is None:
                self._begin()
            while self._wire is not None and not self._is_whole:
                match self._wire.next_event():
                    case h11.Data(data=data):
                        self._body += data
                        self._require_size(len(self._body))
                    case h11.EndOfMessage():
                        self._is_whole = True
                    case _:
                        if not self._unread:
                            return
                        self._hand_over(
                            _CHUNKS_BYTES
                            if self._length is None
                            else self._length - len(self._body)
                        )
        except h11.RemoteProtocolError as error:
            status = 400 if error.error_status_hint == 501 else error.error_status_hint
            raise BadRequestError(status, str(error).partition(": ")[0]) from error  # no secrets

    def _hand_over(self, num_bytes: int) -> None:
        """Give h11 what it may need, and of requests after this one as little as can be."""
        assert self._wire is not None
        self._wire.receive_data(piece := bytes(self._unread[:num_bytes]))
        self._num_fed += len(piece)
        del self._unread[:num_bytes]

    def _begin(self) -> None:
        """Read the head of a request, if it is whole."""
        while self._unread[:2] == b"\r\n":  # allowed before a request
            del self._unread[:2]
        start = max(0, self._num_scanned - len(_BLANK))
        end = self._unread.find(_BLANK, start, MOST_HEAD_BYTES + len(_BLANK))
        self._num_scanned = len(self._unread) if end < 0 else 0
        if _LENIENT.search(self._unread, start, len(self._unread) if end < 0 else end + 2):
            raise BadRequestError(400, "lines must end in CR LF, and not go on in the next one")
        if end < 0:
            if len(self._unread) > MOST_HEAD_BYTES:
                raise BadRequestError(431, f"the head must be at most {MOST_HEAD_BYTES} bytes")
            return
        self._wire = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)
        self._hand_over(end + len(_BLANK))
        head = self._wire.next_event()
        assert isinstance(head, h11.Request)
        self._require_one_meaning(head.http_version, headers := _joined(head))
        refused = self._refusal(head.method.decode(), headers)
        if refused is not None:
            raise BadRequestError(*refused)
        self._head = head

    def _require_one_meaning(self, version: bytes, headers: Mapping[str, str]) -> None:
        """Refuse a head that others may read differently, and one of a body that is too large."""
        if version not in (b"1.1", b"1.0"):
            raise BadRequestError(505, "the version must be HTTP/1.1")
        length, is_chunked = headers.get("content-length"), "transfer-encoding" in headers
        if is_chunked and (length or version == b"1.0"):
            raise BadRequestError(400, "the body must have a Content-Length, or be chunked in 1.1")
        self._length = None if is_chunked else int(length or 0)
        self._require_size(self._length or 0)

    def _require_size(self, num_bytes: int) -> None:
        if num_bytes > self._most:
            raise BadRequestError(413, f"the body must be at most {self._most} bytes")


def _joined(head: h11.Request) -> dict[str, str]:
    """Headers by their names in lower case, values of one name with commas between them."""
    found: dict[str, str] = {}
    for raw, value in head.headers.raw_items():
        name, text = raw.decode().lower(), value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found
