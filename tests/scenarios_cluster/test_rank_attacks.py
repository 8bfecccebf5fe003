"""A node under attack by its orders and by the ranks that it runs."""

import asyncio
import stat
from contextlib import suppress

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.cluster.access import AccessFlags
from scenarios.cluster.messages import NodeOrders, NodeReport, RankOrder, ReportReply
from scenarios.cluster.node_agent import NodeAgent, NodeIdentity
from scenarios.cluster.rank_process import RankProcess
from scenarios.cluster.rpc import SchedulerLink, make_server, serving_at_socket
from scenarios.cluster.service import orders_digest

pytestmark = pytest.mark.attack


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("node")


def order(number: int, command: list[str], where: str = "") -> RankOrder:
    """Order of the only rank of a job, on a GPU of its own."""
    values = {"launch": 1, "rank": 0, "world_size": 1, "gpu": number, "gpus": [number]}
    address = {"master_address": "127.0.0.1", "master_port": 1}
    return RankOrder(
        job=number, command=command, folder=where, uses_lease=False, **values, **address
    )


WITHOUT_LOG = ["sh", "-c", 'rm "$(readlink /proc/self/fd/1)"; exit 3']
COMMANDS = st.sampled_from(
    [
        WITHOUT_LOG,
        ["a\0b"],
        ["true", "\0"],
        ["true", "x" * 200_000],
        [""],
        ["/"],
        ["no-such-program"],
        ["./\0"],
    ]
)


@settings(max_examples=examples(20))
@given(bad=st.lists(st.tuples(COMMANDS, st.sampled_from(["", "/none", "a\0b"])), max_size=4))
def test_what_a_rank_raises_fails_that_rank_alone(folder, bad):
    """Orders of what no node can start, as of a changed store, and of a job that hides its log."""
    rows = [order(number, command, where) for number, (command, where) in enumerate(bad)]
    orders = NodeOrders(grace_s=60.0, ranks=[*rows, order(len(bad), ["sleep", "0"])])
    reports: list[NodeReport] = []

    async def report(request: NodeReport) -> ReportReply:
        reports.append(request)
        ended = [rank.has_ended for rank in request.ranks]
        return ReportReply(lease_s=60.0, may_go=len(ended) > len(bad) and all(ended))

    async def follow(request) -> NodeOrders:
        if request.digest == orders_digest(orders):
            await asyncio.Event().wait()
        return orders

    async def play() -> None:
        failed: list[BaseException] = []
        server = make_server(
            {"Report": report, "Follow": follow}, "", failed.append, lambda _: None
        )
        async with serving_at_socket(server, folder / "n"):
            identity = NodeIdentity(name="a", address="127.0.0.1", num_gpus=8)
            agent = NodeAgent(identity, SchedulerLink(AccessFlags(socket=folder / "n")), folder)
            await agent.run(lambda _: None)
        assert failed == []

    asyncio.run(play())
    *others, last = sorted(reports[-1].ranks, key=lambda rank: rank.job)
    hidden = "exit code 3: its log cannot be read: No such file or directory"
    assert all(rank.reason == hidden or rank.reason[:13] == "cannot start " for rank in others)
    assert (last.reason, last.code) == ("", 0)
    (log,) = folder.glob(f"job-{last.job}.*")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@settings(max_examples=examples(20))
@given(line=st.binary(max_size=50).map(lambda part: part.replace(b"\n", b"") + b"x" * 200_000))
def test_a_rank_that_sends_a_line_without_end_is_cut_off_and_others_answered(folder, line):
    async def play() -> bytes:
        rank = RankProcess(order(1, ["true"]), lambda *, is_urgent: None, folder)
        async with await asyncio.start_unix_server(rank.answer, folder / "l"):
            reader, writer = await asyncio.open_unix_connection(folder / "l")
            writer.write(line)
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
            reader, writer = await asyncio.open_unix_connection(folder / "l")
            writer.write(b'{"iteration": 3}\n')
            answer = await reader.readline()
            writer.close()
        return answer

    assert asyncio.run(play()) == b"go\n"
