"""The gate of a scheduler before strangers, who are many and send much."""

import asyncio
import resource
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import strangers
from certificates import certificate_in
from cluster_in_process import TOKEN, served, status_when
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strangers import KINDS

from scenarios.cluster.gate import MOST_STRANGERS
from scenarios.cluster.messages import JobForm, Submitted
from scenarios.cluster.rpc import SchedulerLink

pytestmark = pytest.mark.attack


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Certificate of a scheduler, its path, and its key."""
    key, crt = certificate_in(tmp_path_factory.mktemp("certificate"))
    return crt, (key.read_bytes(), crt.read_bytes())


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * resource.getpagesize()


CROWDS = (
    *((kind, 20, 2**17 if kind == "headers" else 2**22) for kind in KINDS),
    ("body", 55, 60_000_000),
)


@pytest.mark.parametrize("crowd", CROWDS, ids=str)
def test_strangers_together_take_little_memory(folder, token, certificate, crowd):
    """At most 16 MiB in all, however many they are; a user is answered meanwhile."""
    crt, tls = certificate

    async def play() -> int:
        async with served(folder, TOKEN, tls) as (_, found, gate):
            flags = replace(found, ipaddr="127.0.0.1", tls_ca=crt, token_file=token)
            link = SchedulerLink(flags)
            await status_when(link, lambda _: True)
            gate.stranger_s = 0.2
            before = most = resident_bytes()
            words = (strangers.__file__, str(found.port), *map(str, crowd))
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            others = await asyncio.create_subprocess_exec(sys.executable, *words, **pipes)
            done = asyncio.create_task(others.stdout.readline())
            while not done.done():
                await status_when(link, lambda _: True)
                most = max(most, resident_bytes())
                await asyncio.sleep(0.01)
            assert int(await done) <= crowd[1]
            await others.communicate(b"\n")
            await link.close()
        return most - before

    assert asyncio.run(play()) <= 16 * 2**20


@settings(max_examples=examples(5))
@given(more=st.integers(1, MOST_STRANGERS))
def test_a_stranger_too_many_cuts_off_the_oldest_and_no_user(folder, token, certificate, more):
    crt, tls = certificate

    async def play() -> list[bool]:
        async with served(folder, TOKEN, tls) as (_, found, _):
            flags = replace(found, ipaddr="127.0.0.1", tls_ca=crt, token_file=token)
            link = SchedulerLink(flags)
            jobs = len((await status_when(link, lambda _: True)).jobs)
            waiting = asyncio.create_task(status_when(link, lambda now: len(now.jobs) > jobs))
            came = [await asyncio.open_connection("127.0.0.1", found.port) for _ in range(more)]
            held = [
                await asyncio.open_connection("127.0.0.1", found.port)
                for _ in range(MOST_STRANGERS)
            ]
            for reader, _ in came:
                with suppress(ConnectionError):
                    assert await reader.read() == b""
            job = JobForm(launch_command="true", launch_params=["x" * 100_000] * 5)
            other = SchedulerLink(flags)
            await other.call("Submit", job, Submitted, 600.0)
            await waiting
            for each in (link, other):
                await each.close()
            ends = [reader.at_eof() for reader, _ in held]
            for _, writer in (*came, *held):
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
            return ends

    assert sum(asyncio.run(play())) <= 1  # who handed in a job was met after them
