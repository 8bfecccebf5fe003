"""Strangers who fill a scheduler with TLS: many connections that send data and no token.

``python strangers.py PORT KIND CONNECTIONS BYTES`` keeps none of HTTP/2's limits; it waits for the
last of them to be cut off or to have sent all, then for an empty line.
"""

import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

_DATA, _HEADERS, _SETTINGS, _CONTINUATION, _END_HEADERS = 0, 1, 4, 9, 4
_PART_BYTES = 2**14


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Frame of HTTP/2 (RFC 9113, 4.1)."""
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def _headers() -> bytes:
    """Headers of a call, none of them compressed (RFC 7541, 6.2.2)."""
    rows = {
        ":method": "POST",
        ":scheme": "https",
        ":path": "/eastwest.Cluster/Submit",
        ":authority": "a",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    texts = (text.encode() for row in rows.items() for text in row)
    lines = [bytes([len(text)]) + text for text in texts]
    return b"".join(
        b"\0" + name + value for name, value in zip(lines[::2], lines[1::2], strict=True)
    )


KINDS = {
    "body": (frame(_HEADERS, _END_HEADERS, 1, _headers()), frame(_DATA, 0, 1, bytes(_PART_BYTES))),
    "headers": (
        frame(_HEADERS, 0, 1, _headers()),
        frame(_CONTINUATION, 0, 1, b"\0\x04name\x7f\xff" + bytes(_PART_BYTES - 8)),
    ),
    "no headers": (b"", frame(_DATA, 0, 1, bytes(_PART_BYTES))),
    "no HTTP": (b"", b"x" * _PART_BYTES),
}
"""How a stranger begins, and what it then sends again and again."""


def send(port: int, kind: str, num_bytes: int) -> socket.socket | None:
    """Connect and send; the connection, None where it was cut off."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    begin, part = KINDS[kind]
    with suppress(OSError):
        connection = context.wrap_socket(socket.create_connection(("127.0.0.1", port), 60.0))
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(_SETTINGS, 0, 0) + begin)
        for _ in range(num_bytes // _PART_BYTES):
            connection.sendall(part)
        return connection
    return None


def main(port: int, kind: str, num_connections: int, num_bytes: int) -> None:
    with ThreadPoolExecutor(num_connections) as threads:
        tasks = [threads.submit(send, port, kind, num_bytes) for _ in range(num_connections)]
        held = [task.result() for task in tasks]
    sys.stdout.write(f"{sum(each is not None for each in held)}\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
