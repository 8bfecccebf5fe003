"""HTTP of the extender: keep-alive, pipelines, chunks, limits, slow clients, TLS."""

import re
import socket
import ssl
import subprocess
from contextlib import closing, suppress
from itertools import pairwise

import pytest
from command_output import assert_refused
from hypothesis import given
from hypothesis import strategies as st
from k8s_cases import book_of
from k8s_services import client, requests_in, running, service_of
from processes import python

from agents.devices.k8s.decider import Decider
from scenarios.k8s.command import main
from scenarios.k8s.http_parsing import MOST_HEAD_BYTES, BadRequestError
from scenarios.k8s.http_server import ServerLimits

POST = (
    b"POST /scheduler/filter?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
)
PAGE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
CALLS = (
    POST
    + b"Content-Length: 5\r\n\r\nfirst"
    + (
        POST + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nsec\r\n3\r\nond\r\n0\r\nT: x\r\n\r\n"
        b"\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n"
    )
)


@given(cuts=st.lists(st.integers(0, len(CALLS)), max_size=8).map(sorted))
def test_requests_are_read_however_they_are_cut(cuts):
    ends = [0, *cuts, len(CALLS)]
    pieces = [CALLS[first:last] for first, last in pairwise(ends)]

    found = [(one.method, one.path, one.body, one.keep_alive) for one in requests_in(pieces)]
    assert found == [
        ("POST", "/scheduler/filter", b"first", True),
        ("POST", "/scheduler/filter", b"second", True),
        ("GET", "/healthz", b"", False),
    ]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\n bad\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nname : x\r\n\r\n", 400),
        (POST + b"Content-Length: 101\r\n\r\n", 413),
        (POST + b"Content-Length: +5\r\n\r\n", 400),
        (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: gzip\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 0x65, 413),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc", 400),
        (b"x" * (MOST_HEAD_BYTES + 1), 431),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_requests_that_cannot_be_read_are_refused(text, status):
    with pytest.raises(BadRequestError) as refused:
        requests_in([text])

    assert refused.value.status == status


@given(text=st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(text):
    with suppress(BadRequestError):
        requests_in([text])


@pytest.fixture(scope="module")
def service():
    return service_of(Decider(book=book_of([])))


def conversation(port: int, sent: bytes) -> bytes:
    """Bytes that come back until the server closes."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=600.0)) as connection:
        connection.sendall(sent)
        found = b""
        while piece := connection.recv(65536):
            found += piece
        return found


def test_a_connection_is_kept_for_several_requests(service):
    with running(service) as port, client(port) as call:
        assert [call("GET", "/healthz")[0] for _ in range(3)] == [200, 200, 200]
        assert call("GET", "/nothing")[0] == 404
        assert call("POST", "/scheduler/filter", "{")[0] == 400
        assert call("DELETE", "/scheduler/filter")[0] == 405
        assert call("GET", "/readyz")[0] == 200


def test_an_answer_to_head_has_no_body(service):
    head = b"HEAD /healthz HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"
    last = b"HEAD /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with running(service) as port:
        found = conversation(port, head + last)

    first, second, rest = found.split(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200 ")
    assert b"Content-Length: 3" in first
    assert second.startswith(b"HTTP/1.1 404 ")
    assert rest == b""


def test_pipelined_requests_are_answered_in_order(service):
    page = b"GET /healthz HTTP/1.1\r\nHost: a.b.svc:8888\r\n\r\n"
    last = b"GET /none HTTP/1.1\r\nHost: a.b.svc\r\nConnection: close\r\n\r\n"
    with running(service) as port:
        found = conversation(port, page + page + last)

    assert re.findall(rb"HTTP/1.1 (\d+)", found) == [b"200", b"200", b"404"]


def test_a_body_that_is_too_large_is_refused_before_it_is_read(service):
    limits = ServerLimits(body_bytes=1000)
    with running(service, limits) as port:
        found = conversation(port, POST + b"Content-Length: 1001\r\n\r\n" + b"x" * 1001)

    assert found.startswith(b"HTTP/1.1 413 ")


def test_a_client_that_waits_for_leave_gets_it(service):
    head = POST + b"Content-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
    with (
        running(service) as port,
        closing(socket.create_connection(("127.0.0.1", port), timeout=600.0)) as connection,
    ):
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"{}")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_a_request_that_does_not_end_in_time_is_refused(service):
    limits = ServerLimits(request_s=0.05)
    with running(service, limits) as port:
        found = conversation(port, POST + b"Content-Length: 10\r\n\r\nhalf")

    assert found.startswith(b"HTTP/1.1 408 ")


def test_unused_connections_are_closed(service):
    limits = ServerLimits(idle_s=0.05, request_s=0.05)
    with running(service, limits) as port:
        assert conversation(port, PAGE).startswith(b"HTTP/1.1 200 ")
        assert conversation(port, b"") == b""


def test_connections_beyond_the_most_are_closed(service):
    with running(service, ServerLimits(connections=1)) as port, client(port) as call:
        assert call("GET", "/healthz")[0] == 200
        second = socket.create_connection(("127.0.0.1", port), timeout=600.0)
        with closing(second), suppress(ConnectionResetError):
            assert second.recv(10) == b""
        assert call("GET", "/healthz")[0] == 200


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Authority, and certificates of server and client that it has signed."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words: str) -> None:
        try:
            subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
        except FileNotFoundError:
            pytest.skip("needs the program openssl")

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca")
    for name in ("server", "client"):
        signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
        openssl(
            *("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.crt"),
            *("-subj", f"/CN={name}", *signed),
        )
    return folder


def test_clients_show_a_certificate(certificates, tmp_path):
    """The command with its flags, a client with a certificate, and one without."""
    state = tmp_path / "state.yaml"
    state.write_text("servers: [{name: a}]", "utf-8")
    files = [str(certificates / name) for name in ("server.crt", "server.key", "ca.crt")]
    flags = zip(("--tls-cert", "--tls-key", "--client-ca"), files, strict=True)
    words = (
        "extender",
        "--state",
        str(state),
        "--port",
        "0",
        *(word for row in flags for word in row),
    )
    known = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    known.load_cert_chain(certificates / "client.crt", certificates / "client.key")
    stranger = ssl.create_default_context(cafile=str(certificates / "ca.crt"))

    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with python("-m", "scenarios.k8s", *words, **options) as process:
        line = process.stdout.readline()
        assert line.startswith("listening at https://127.0.0.1:"), line
        port = int(line.split(":")[2].split("/")[0])
        with client(port, known) as call:
            assert call("GET", "/healthz")[0] == 200
            assert call("GET", "/healthz")[0] == 200
        with (
            client(port, stranger) as call,
            pytest.raises(OSError, match=r"alert|reset|EOF|closed"),
        ):
            call("GET", "/healthz")


def test_certificates_that_do_not_fit_are_refused(certificates, tmp_path, capsys):
    state = tmp_path / "state.yaml"
    state.write_text("servers: [{name: a}]", "utf-8")
    files = (
        "--tls-cert",
        str(certificates / "server.crt"),
        "--tls-key",
        str(certificates / "ca.key"),
    )

    argv = ["extender", "--state", str(state), "--port", "0", *files]
    assert_refused(main, argv, "--tls-cert .*: cannot be used", capsys, unwritten=tmp_path / "no")
