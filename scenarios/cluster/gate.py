"""Gate before a scheduler's port: strangers together hold little, however many they are.

TLS and HTTP/2 keep buffers for every connection. So the server listens at a private socket, and a
connection from outside forwards at most 32 KiB to it until a call over it has given the token.
"""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

MOST_STRANGERS = 32
"""Connections without a token at a time; one more cuts off the oldest."""
_MOST_STRANGE_BYTES = 2**15  # a handshake and the headers of a call take less than 8 KiB
_PART_BYTES = 2**14


class StrangerGate:
    """Way from a port to the server's own socket.

    Parameters
    ------
    folder
        Folder that this user alone can enter; `server_socket` is in it.
    stranger_s
        A connection without a token lasts so long. [s]
    """

    def __init__(self, folder: Path, stranger_s: float = 10.0) -> None:
        self.server_socket = folder / "s"
        self.stranger_s = stranger_s
        self._strangers: dict[str, asyncio.Event] = {}
        self._passing: dict[str, asyncio.Task[None]] = {}
        self._numbers = itertools.count()

    def let_in(self, peer: str) -> None:
        """Let all pass from a peer, as gRPC names it, whose call had the token."""
        known = self._strangers.pop(peer.rpartition("/")[2], None)
        if known is not None:
            known.set()

    @asynccontextmanager
    async def open(self, host: str, port: int) -> AsyncIterator[int]:
        """Listen for a block, to the port given or a free one for 0; gives the port.

        Raises
        ------
        OSError
            If the port cannot be had.
        """
        listening = await asyncio.start_server(self._meet, host, port, limit=_PART_BYTES)
        try:
            yield listening.sockets[0].getsockname()[1]
        finally:
            listening.close()
            await asyncio.sleep(0)  # what has just been accepted is met
            passing = list(self._passing.values())
            for each in passing:
                each.cancel()
            await asyncio.gather(*passing, return_exceptions=True)

    def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin with a connection; if there are too many strangers the oldest goes."""
        if len(self._strangers) >= MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            self._passing[oldest].cancel()
        name = str(next(self._numbers))
        known = self._strangers[name] = asyncio.Event()
        task = self._passing[name] = asyncio.create_task(self._pass(name, known, reader, writer))

        def forget(_: asyncio.Task[None]) -> None:
            self._strangers.pop(name, None)
            del self._passing[name]
            writer.transport.abort()  # a task that is cancelled at once has not begun

        task.add_done_callback(forget)

    async def _pass(
        self,
        name: str,
        known: asyncio.Event,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Pass bytes both ways until one side ends, or the stranger's time has."""
        async with _end(writer):
            server_reader, server_writer = await self._connect(name)
            ways = [
                asyncio.create_task(_pump(reader, server_writer, known)),
                asyncio.create_task(_pump(server_reader, writer, None)),
            ]
            met = asyncio.create_task(known.wait())
            async with _end(server_writer, *ways, met):
                first = asyncio.FIRST_COMPLETED
                await asyncio.wait((*ways, met), timeout=self.stranger_s, return_when=first)
                if known.is_set():
                    await asyncio.wait(ways, return_when=first)

    async def _connect(self, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the server under a name that `let_in` will know."""
        way = socket.socket(socket.AF_UNIX)
        try:
            way.setblocking(False)
            path = self.server_socket.with_name(name)
            way.bind(str(path))
            try:
                await asyncio.get_running_loop().sock_connect(way, str(self.server_socket))
            finally:
                path.unlink()
            return await asyncio.open_unix_connection(sock=way, limit=_PART_BYTES)
        except BaseException:
            way.close()
            raise


@asynccontextmanager
async def _end(writer: asyncio.StreamWriter, *tasks: asyncio.Task[object]) -> AsyncIterator[None]:
    """End a connection and what works on it after a block; nothing written waits in it."""
    writer.transport.set_write_buffer_limits(0)
    try:
        yield
    finally:
        for each in tasks:
            each.cancel()
        writer.transport.abort()
        await asyncio.gather(*tasks, writer.wait_closed(), return_exceptions=True)


async def _pump(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, known: asyncio.Event | None
) -> None:
    """Pass bytes one way, few of them until the source is known; ends quietly when a side does."""
    num_bytes = 0
    with suppress(OSError):
        while part := await source.read(_PART_BYTES):
            num_bytes += len(part)
            if known is not None and num_bytes > _MOST_STRANGE_BYTES:
                await known.wait()
            sink.write(part)
            await sink.drain()
