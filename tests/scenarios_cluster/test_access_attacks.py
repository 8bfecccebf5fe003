"""A cluster under attack by other users of its machines, and by programs that are not ours."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from contextlib import redirect_stderr
from dataclasses import replace
from io import StringIO

import grpc.aio
import pytest
from certificates import certificate_in
from cluster_in_process import TOKEN, served, status_when
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from des.base.command import UsageError, exit_code_of
from des.base.names import one_line
from des.base.private_folder import open_private
from scenarios.cluster.access import AccessFlags, hold_socket, own_socket
from scenarios.cluster.messages import Status, StatusRequest
from scenarios.cluster.rpc import REQUESTS, SERVICE, NoAnswerError, SchedulerLink
from scenarios.cluster.scheduler_server import open_store
from scenarios.cluster.store import SqliteStore

pytestmark = pytest.mark.attack


@given(mode=st.integers(0, 0o77), above=st.integers(0, 0o77))
def test_a_socket_that_others_could_have_made_is_not_trusted(folder, mode, above):
    """Modes of its folder and of the one above, for group and others."""
    outer, inner = folder / "outer", folder / "outer" / "inner"
    inner.mkdir(parents=True, exist_ok=True)
    outer.chmod(0o700 | above)
    inner.chmod(0o700 | mode)

    if mode or above & 0o22:
        with pytest.raises(ValueError, match=r"--socket .*: (must be in a folder|others can move)"):
            own_socket(inner / "s")
        return
    assert own_socket(inner / "s") == inner / "s"
    with (
        hold_socket(inner / "s"),
        pytest.raises(ValueError, match="another scheduler listens there"),
        hold_socket(inner / "s"),
    ):
        raise AssertionError


def test_a_folder_of_another_user_is_not_trusted(folder):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    theirs = folder / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 12345, 12345)

    with pytest.raises(ValueError, match="must be in a folder of this user"):
        own_socket(theirs / "s")


@given(address=st.ip_addresses().map(str) | st.sampled_from(["localhost", "scheduler.lan"]))
def test_no_token_is_sent_to_an_address_that_has_not_proved_itself(token, address):
    with pytest.raises(UsageError, match=r"--ipaddr .*: must have TLS and a token"):
        SchedulerLink(AccessFlags(ipaddr=address, token_file=token))


def test_who_takes_the_port_of_a_dead_scheduler_learns_and_orders_nothing(folder, token):
    """The squatter has a certificate of its own for the same address."""
    ours, theirs = folder / "ours", folder / "squatter"
    for each in (ours, theirs):
        each.mkdir()
    _, known = certificate_in(ours)
    key, crt = certificate_in(theirs)

    async def play() -> str:
        async with served(folder, TOKEN, (key.read_bytes(), crt.read_bytes())) as (_, found, _):
            flags = replace(found, ipaddr="127.0.0.1", tls_ca=known, token_file=token)
            link = SchedulerLink(flags)
            with pytest.raises(NoAnswerError) as refused:
                await link.call("Status", StatusRequest(), Status, 600.0)
            await link.close()
            return str(refused.value)

    assert "gives no answer (UNAVAILABLE" in asyncio.run(play())


@settings(max_examples=examples(40))
@given(given_token=st.text("abc ", max_size=20), method=st.sampled_from(sorted(REQUESTS)))
def test_the_token_is_asked_for_before_anything_is_read(folder, given_token, method):
    """A stranger's message never begins, and yet the answer is there."""

    async def play() -> grpc.StatusCode:
        never = asyncio.Event()

        async def message():
            await never.wait()
            yield b""

        async with (
            served(folder, TOKEN) as (_, flags, _),
            grpc.aio.insecure_channel(f"unix:{flags.socket}") as way,
        ):
            metadata = (("authorization", f"Bearer {given_token}"),)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await way.stream_unary(f"/{SERVICE}/{method}")(message(), metadata=metadata)
            return refused.value.code()

    assert asyncio.run(play()) is grpc.StatusCode.UNAUTHENTICATED


@settings(max_examples=examples(20))
@given(size=st.integers(4 * 2**20 + 1, 8 * 2**20))
def test_messages_that_are_too_long_are_refused_and_others_answered(folder, size):
    async def play() -> tuple[grpc.StatusCode, str]:
        async with (
            served(folder) as (_, flags, _),
            grpc.aio.insecure_channel(f"unix:{flags.socket}") as way,
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await way.unary_unary(f"/{SERVICE}/Submit")(bytes(size))
            link = SchedulerLink(flags)
            found = await status_when(link, lambda _: True)
            await link.close()
            return refused.value.code(), found.policy

    assert asyncio.run(play()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "fifo")


@given(mask=st.sampled_from([0, 0o22, 0o77]), mode=st.sampled_from([0o600, 0o644, 0o666, None]))
def test_stores_can_be_read_by_their_user_alone(folder, mask, mode):
    path = folder / "state.db"
    path.unlink(missing_ok=True)
    before = os.umask(mask)
    try:
        if mode is not None:
            path.touch()
            path.chmod(mode)
        store = SqliteStore(path)
        store.write({"job/1": "words"})
        modes = {stat.S_IMODE(each.stat().st_mode) for each in folder.glob("state.db*")}
        store.close()
    finally:
        os.umask(before)

    assert modes == {0o600}


@given(mode=st.integers(0o600, 0o777), name=st.sampled_from(["state.db.lock", "job-1.log"]))
def test_logs_are_of_their_user_alone_and_no_planted_link_is_followed(folder, mode, name):
    path, other = folder / name, folder / "other"
    path.unlink(missing_ok=True)
    path.touch()
    path.chmod(mode)
    with open(path, "ab", opener=open_private):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.unlink()
    other.write_bytes(b"kept")
    path.symlink_to(other)
    with pytest.raises(OSError, match="symbolic link"):
        open_private(str(path), os.O_WRONLY | os.O_TRUNC)
    assert other.read_bytes() == b"kept"


PASSWORDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=9, max_size=30)


@given(
    password=PASSWORDS,
    form=st.sampled_from(["redis://:{}@[::1]:1/0#n", "rediss://[::1]:1?password={}"]),
)
def test_passwords_are_in_no_error_line(password, form):
    password = password.replace("&", "-")
    url = form.format(password)
    with redirect_stderr(StringIO()) as said:
        assert exit_code_of(lambda: open_store(url)) == 2

    for text in (said.getvalue(), one_line(f"{url}: cannot be written: {url!r}")):
        assert password not in text
        assert "***" in text


LOGS = """
import json, logging, sys
from scenarios.frame.log_lines import log_to_stderr
log_to_stderr(logging.INFO)
for text in json.load(sys.stdin):
    logging.getLogger("scenarios.k8s").info("node %s: refused", text)
"""


@settings(max_examples=examples(10))
@given(names=st.lists(st.text(max_size=30), min_size=20, max_size=40))
def test_foreign_names_are_a_printable_line_each_of_the_log(names):
    words = [sys.executable, "-c", LOGS]
    done = subprocess.run(
        words, input=json.dumps(names), capture_output=True, text=True, check=True
    )

    lines = done.stderr.split("\n")[:-1]
    assert len(lines) == len(names)
    assert all(line.isprintable() and line.startswith("INFO node ") for line in lines)
