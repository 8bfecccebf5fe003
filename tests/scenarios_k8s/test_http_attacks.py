"""HTTP of the extender under attack: hidden requests, foreign pages, memory, open doors."""

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from foreign_pages import HOSTS, foreign_headers
from hypothesis import given
from hypothesis import strategies as st
from k8s_cases import args, book_of, pod, whole_nodes
from k8s_services import requests_in, service_of

from agents.devices.k8s.decider import Decider
from des.base.command import UsageError
from scenarios.frame.http_door import foreign_request, is_loopback
from scenarios.k8s.extender_config import Config
from scenarios.k8s.http_parsing import BadRequestError, HttpRequest
from scenarios.k8s.http_server import HttpResponse, HttpServer, ServerLimits

pytestmark = pytest.mark.attack

LINES = (b"POST /scheduler/bind HTTP/1.1", b"Host: 127.0.0.1", b"Accept: x")
LENGTH, CHUNKS = b"Content-Length: 3", b"Transfer-Encoding: chunked"
BODIES = {LENGTH: b"a\nb", CHUNKS: b"3\r\na\nb\r\n0\r\n\r\n"}
ENDS = (b"\n", b"\r", b"\n\r", b"\r\r\n", b"\r\n ", b"\r\n\t")


def text_of(lines, ends, framing) -> bytes:
    return b"".join(line + end for line, end in zip(lines, ends, strict=True)) + BODIES[framing]


@st.composite
def hiding_requests(draw) -> bytes:
    """A request that two programs may read differently."""
    framing = draw(st.sampled_from(list(BODIES)))
    lines, odd_end = [*LINES, framing, b""], None
    match draw(st.integers(0, 5)):
        case 0:
            odd_end = draw(st.integers(0, 3)), draw(st.sampled_from(ENDS))
        case 1:
            lines.insert(draw(st.integers(1, 4)), draw(st.sampled_from([b"Host: b", b"host: "])))
        case 2:
            lines.insert(draw(st.integers(1, 4)), b"Content-Length: 4")
        case 3:
            lines.insert(draw(st.integers(1, 4)), draw(st.sampled_from([CHUNKS, CHUNKS + b", x"])))
            lines[0] = lines[0].replace(b"1.1", b"1.0")
        case 4:
            at = draw(st.integers(1, 3))
            lines[at] = lines[at].replace(b":", draw(st.sampled_from([b" :", b"\0:", b""])))
        case 5:
            lines.remove(LINES[1])
    ends = [b"\r\n"] * len(lines)
    if odd_end is not None:
        ends[odd_end[0]] = odd_end[1]
    return text_of(lines, ends, framing)


def cut(text: bytes, cuts: Sequence[int]) -> list[bytes]:
    ends = [0, *sorted(each % len(text) for each in cuts), len(text)]
    return [text[first:last] for first, last in pairwise(ends)]


@pytest.mark.parametrize("framing", BODIES)
@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_a_request_of_one_meaning_is_read_however_it_is_cut(framing, cuts):
    lines = [*LINES, framing, b""]
    (found,) = requests_in(cut(text_of(lines, [b"\r\n"] * len(lines), framing), cuts))

    assert (found.path, found.body) == ("/scheduler/bind", b"a\nb")


@given(text=hiding_requests(), cuts=st.lists(st.integers(0, 200), max_size=6))
def test_a_request_of_two_meanings_is_refused_however_it_is_cut(text, cuts):
    with pytest.raises(BadRequestError):
        requests_in(cut(text, cuts))


@pytest.fixture(scope="module")
def decider():
    return Decider(book=book_of(whole_nodes(["a", "b"])))


def reservation(decider: Decider, headers: dict[str, str]) -> tuple[bytes, int]:
    """Status of a call that asks for all GPUs of the node, and how many gangs have promises."""
    body = json.dumps(args(pod("p", 8, gang="g", gang_size="2"), ["a", "b"])).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    text = f"POST /scheduler/filter HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n"
    server = HttpServer(handler=service_of(decider).answer)
    answer = asyncio.run(conversation(server, text.encode() + body))
    return answer.split()[1], len(decider.book.promises)


@given(headers=foreign_headers("127.0.0.1:8888"))
def test_a_foreign_page_reserves_nothing(decider, headers):
    status, num_promises = reservation(decider, headers)

    assert status in (b"421", b"403", b"415")
    assert num_promises == 0


def test_a_scheduler_reserves_what_foreign_pages_do_not():
    headers = {"host": "extender.topology.svc:8888", "content-type": "application/json"}

    assert reservation(Decider(book=book_of(whole_nodes(["a", "b"]))), headers) == (b"200", 1)


@given(name=HOSTS)
def test_names_are_checked_unless_a_certificate_says_them(name):
    assert foreign_request("GET", {"host": name}, has_certificate=False)
    assert foreign_request("GET", {"host": name}, has_certificate=True) is None


async def listening(server: HttpServer) -> tuple[asyncio.Server, int]:
    loop = asyncio.get_running_loop()
    found = await loop.create_server(server.connection, "127.0.0.1", 0)
    return found, found.sockets[0].getsockname()[1]


async def conversation(server: HttpServer, text: bytes) -> bytes:
    """Head of the answer to a request."""
    listener, port = await listening(server)
    async with listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text)
        found = await reader.readuntil(b"\r\n\r\n")
        writer.close()
    return found


@pytest.mark.parametrize("framing", [b"Content-Length: 1000\r\n\r\n", CHUNKS + b"\r\n\r\n9;"])
@given(sizes=st.lists(st.integers(1, 900), min_size=10, max_size=30))
def test_connections_together_hold_no_more_than_the_limit(framing, sizes):
    """Bodies that never end push out each other, and no small request."""
    limits = ServerLimits(body_bytes=1000, held_bytes=2000)
    server = HttpServer(handler=lambda _: HttpResponse(status=200, body=b"ok"), limits=limits)
    kind = b"Content-Type: application/json\r\n"
    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + kind + framing

    async def play() -> tuple[int, bytes]:
        listener, port = await listening(server)
        writers, most = [], 0
        async with listener:
            for size in sizes:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(head + b"x" * size)
                await asyncio.sleep(0)
                writers.append(writer)
                most = max(most, sum(each.held_bytes for each in server.connections))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = await reader.readline()
            most = max(most, sum(each.held_bytes for each in server.connections))
            for each in (*writers, writer):
                each.close()
        return most, answer

    most, answer = asyncio.run(play())
    assert 0 < most <= 2000
    assert answer.startswith(b"HTTP/1.1 200 ")


@given(size=st.integers(2**16, 2**18))
def test_answers_that_are_not_taken_are_not_made(size):
    """Pipelined requests of a client that reads nothing."""
    made = []

    def answer(_: HttpRequest) -> HttpResponse:
        made.append(size)
        return HttpResponse(status=200, body=bytes(size))

    async def play() -> None:
        listener, port = await listening(HttpServer(handler=answer))
        async with listener:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 4000)
            for _ in range(20):
                await asyncio.sleep(0.001)
            writer.transport.abort()

    asyncio.run(play())
    assert 0 < sum(made) < 32 * 2**20


def test_a_client_that_takes_no_answer_is_left_in_time():
    whole = HttpResponse(status=200, body=bytes(2**24))
    server = HttpServer(handler=lambda _: whole, limits=ServerLimits(request_s=0.05))

    async def play() -> None:
        listener, port = await listening(server)
        async with listener:
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**10)
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            while not server.connections:
                await asyncio.sleep(0)
            while server.connections:
                await asyncio.sleep(0.01)
            writer.transport.abort()

    asyncio.run(asyncio.wait_for(play(), 600.0))


@given(address=st.ip_addresses().map(str) | HOSTS)
def test_a_door_without_certificates_is_opened_beyond_this_machine_by_name_alone(address):
    where = {"in_cluster": True, "host": address}
    if not is_loopback(address):
        with pytest.raises(UsageError, match=r"--host .*: must be a loopback .*or --insecure"):
            Config(**where)
    assert Config(**where, insecure=True).host == address
