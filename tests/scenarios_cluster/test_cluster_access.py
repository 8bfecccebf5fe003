"""Access to a cluster: flags, files and tokens that are refused, and whose state it is."""

import asyncio
import json
import re
import sqlite3
from dataclasses import replace

import grpc.aio
import pytest
from certificates import certificate_in
from cluster_in_process import served
from command_output import assert_refused

from scenarios.cluster.command import main
from scenarios.cluster.messages import Ack, CancelRequest, Status, StatusRequest
from scenarios.cluster.rpc import SchedulerLink
from scenarios.cluster.store import SqliteStore

TOKEN = "a token of the test"


@pytest.fixture
def refused(tmp_path, capsys):
    """Check of a command that is refused in one line of these words."""

    def check(argv: list[str], words: str) -> None:
        assert_refused(main, argv, re.escape(words), capsys, unwritten=tmp_path / "cluster.db")

    return check


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("scheduler --host 0.0.0.0", "--host 0.0.0.0: must have TLS and a token"),
        ("scheduler --tls-cert x", "--tls-cert and --tls-key must be given together"),
        ("scheduler --policy lass", "unknown ordering 'lass'; did you mean 'las'?"),
        ("scheduler --lease 0", "lease must be positive"),
        ("scheduler --port 70000", "--port must be from 0 to 65535"),
        ("scheduler --state redis://127.0.0.1:1/0", "--state"),
        ("node --gpus fake:1 --ipaddr 10.0.0.1", "--ipaddr 10.0.0.1: must have TLS and a token"),
        ("node --gpus fake:0", "--gpus: must be auto, a number of GPUs, or fake:NUMBER"),
        ("node --gpus 4096", "--gpus 4096: "),
        ("node --gpus fake:1 --interface none", "--interface: must be one of lo"),
        ("status --socket s", "/s: gives no answer"),
        ("status --tls-ca x", "--tls-ca needs --ipaddr"),
        ("submit none.json", "none.json: cannot be read"),
    ],
)
def test_wrong_flags_are_refused(argv, message, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    refused(argv.split(), message)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"launch_comand": "x"}, "launch_comand: unknown key; did you mean 'launch_command'?"),
        ({"launch_command": "x", "num_gpus": 0}, "num_gpus: Input should be greater than or equal"),
        ({}, "launch_command: must be given"),
    ],
)
def test_a_wrong_job_is_refused(job, message, tmp_path, refused):
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job), "utf-8")

    refused(["submit", str(path)], f"{path}: {message}")


def test_a_second_scheduler_on_one_state_is_refused(tmp_path, refused):
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    store.write({"meta": "x"})
    argv = ["scheduler", "--state", str(path), "--socket", str(tmp_path / "s")]

    refused(argv, f"{path}: another scheduler runs on this state")
    store.close()
    again = SqliteStore(path)
    assert again.read() == {"meta": "x"}
    again.close()


def test_a_file_of_another_program_is_refused_and_stays_as_it_is(tmp_path, refused):
    table, text = tmp_path / "other.db", tmp_path / "text.db"
    with sqlite3.connect(table) as file:
        file.execute("CREATE TABLE theirs (x)")
    file.close()
    text.write_text("no database " * 100, "utf-8")
    for path in (table, text):
        before = path.read_bytes()
        argv = ["scheduler", "--state", str(path), "--socket", str(tmp_path / "s")]
        message = f"{path}: cannot hold the state of a scheduler"
        refused(argv, message)
        assert path.read_bytes() == before


def test_a_damaged_state_is_refused(tmp_path, refused):
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    store.write({"job/1": '{"job_id": 1}'})
    store.close()

    argv = ["scheduler", "--state", str(path), "--socket", str(tmp_path / "s")]
    refused(argv, "job/1: form: must be given")


@pytest.mark.parametrize(
    ("mode", "token", "message"),
    [
        (0o644, TOKEN, "token: must be of mode 0600"),
        (0o600, "short", "token: the token must be at least 16 printable"),
    ],
)
def test_a_token_that_others_may_know_is_refused(mode, token, message, tmp_path, refused):
    path = tmp_path / "token"
    path.write_text(token, "utf-8")
    path.chmod(mode)

    refused(["status", "--token-file", str(path)], message)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return certificate_in(tmp_path_factory.mktemp("tls"))


async def without(port, credentials) -> str:
    """Answer to a stranger's program, which is not held to the rules of ours."""
    address = f"127.0.0.1:{port}"
    plain = grpc.aio.insecure_channel(address)
    async with grpc.aio.secure_channel(address, credentials) if credentials else plain as way:
        try:
            await way.unary_unary("/eastwest.Cluster/Status")(b"{}", timeout=600.0)
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"


def test_with_tls_only_those_with_the_certificate_and_the_token_get_answers(tmp_path, certificate):
    key, crt = certificate
    known = tmp_path / "token"
    wrong = tmp_path / "wrong"
    for path, token in ((known, TOKEN), (wrong, TOKEN[::-1])):
        path.write_text(token, "utf-8")
        path.chmod(0o600)

    async def said(flags, method="Status", request=None, form=Status) -> str:
        link = SchedulerLink(flags)
        try:
            found = await link.call(method, request or StatusRequest(), form, 600.0)
        except ValueError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            await link.close()
        return found.policy

    async def play():
        tls = key.read_bytes(), crt.read_bytes()
        async with served(tmp_path, TOKEN, tls) as (_, plain, _):
            full = replace(plain, ipaddr="127.0.0.1", tls_ca=crt, token_file=known)
            return [
                await said(full),
                await said(replace(full, token_file=wrong)),
                await without(full.port, grpc.ssl_channel_credentials(crt.read_bytes())),
                await without(full.port, None),
                await said(full, "Submit", CancelRequest(job=1), Ack),
                await said(full, "Cancel", CancelRequest(job=1), Ack),
            ]

    answers = asyncio.run(play())
    assert answers[0] == "fifo"
    assert all("the token is missing or wrong" in each for each in answers[1:3])
    assert answers[3].startswith("UNAVAILABLE")
    assert "Submit: job: unknown key" in answers[4]
    assert "job 1: must be waiting or running, got no job of this number" in answers[5]
