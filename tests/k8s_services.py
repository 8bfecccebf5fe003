"""A running extender for tests: its loop in a thread, its port, a client of one connection."""

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from agents.devices.k8s.decider import Decider
from scenarios.k8s.http_parsing import HttpRequest, RequestReader
from scenarios.k8s.http_server import HttpServer, ServerLimits
from scenarios.k8s.service import ExtenderService


@contextmanager
def loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Event loop that runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(60.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60.0)
        loop.close()


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()


@contextmanager
def running(service: ExtenderService, limits: ServerLimits | None = None) -> Iterator[int]:
    """Serve on a free port of the loopback, which is given."""
    server = HttpServer(
        handler=service.answer, limits=limits or ServerLimits(), refused=service.refused
    )

    async def begin() -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(server.connection, "127.0.0.1", 0)

    with loop_in_thread() as loop:
        listening = asyncio.run_coroutine_threadsafe(begin(), loop).result(60.0)
        try:
            yield listening.sockets[0].getsockname()[1]
        finally:
            loop.call_soon_threadsafe(listening.close)


def requests_in(pieces: Sequence[bytes]) -> list[HttpRequest]:
    """Requests of a connection whose bytes come in pieces; of bodies of at most 100 bytes."""

    async def play() -> list[HttpRequest]:
        reader = RequestReader(fed=lambda: None)
        reading = asyncio.create_task(_requests_of(reader))
        for piece in pieces:
            reader.feed_data(piece)
            await asyncio.sleep(0)  # the reader takes it before the next one
        reader.feed_eof()
        return await reading

    return asyncio.run(play())


async def _requests_of(reader: RequestReader) -> list[HttpRequest]:
    found = []
    with suppress(asyncio.IncompleteReadError):
        while True:
            await reader.begun()
            found.append(await reader.next_request(100, lambda *_: None, lambda: None))
    return found


def service_of(decider: Decider, **more: Any) -> ExtenderService:
    """Service whose state is known since now, on the clock of the system."""
    service = ExtenderService(decider=decider, **more)
    service.known_at_s = service.clock()
    return service


Call = Callable[..., tuple[int, Any]]


@contextmanager
def client(port: int, context: Any = None) -> Iterator[Call]:
    """Calls over one connection that is kept: method, path and body; status and content."""
    if context is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600.0)
    else:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=600.0, context=context)

    def call(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = body if isinstance(body, bytes | str | None) else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        is_json = response.headers.get_content_type() == "application/json"
        return response.status, json.loads(text) if is_json else text.decode()

    try:
        yield call
    finally:
        connection.close()
