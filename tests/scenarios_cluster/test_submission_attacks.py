"""A cluster under attack by what is handed in: jobs, reports, names, sizes."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from io import StringIO
from itertools import count

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_nodes import form as small_form

from agents.cluster.table import PolicySetting, policy_named
from scenarios.cluster.job_state import JobState, LaunchedRank, LaunchState
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.messages import (
    JobForm,
    NodeReport,
    RankReport,
    StatusRequest,
    message_text,
    read_message,
    read_own,
)
from scenarios.cluster.service import ClusterService
from scenarios.cluster.status import status_text

pytestmark = pytest.mark.attack
NUMBERS = count()


class Memory:
    """Store of a scheduler that ends with the test."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def read(self) -> dict[str, str]:
        return dict(self.texts)

    def write(self, changes: Mapping[str, str]) -> None:
        self.texts |= {key: text.encode().decode() for key, text in changes.items()}

    def close(self) -> None:
        """Nothing is open."""


def service_on(store: Memory, policy: str = "las") -> ClusterService:
    chosen = policy_named(policy, setting=PolicySetting(quantum_s=1.0))
    return ClusterService(LiveCluster(policy=chosen), store, name=policy, round_s=0.0)


def report(**more) -> NodeReport:
    return NodeReport(
        node="a",
        incarnation="1",
        number=next(NUMBERS),
        num_gpus=8,
        address="127.0.0.1",
        free_ports=[4000, 4001],
        **more,
    )


ODD_TEXTS = st.text(st.characters(exclude_categories=[]), max_size=20) | st.sampled_from(
    ["\0", "\ud800", "a\udfff", "\x1b[2J", "\n", "'", "x" * 140_000]
)
ODD_NUMBERS = st.sampled_from([-1, 0, 1, 10**9, 10**18, 10**400, -(10**400), 5e-324, 1e308])
ODD = ODD_TEXTS | ODD_NUMBERS | st.none() | st.booleans() | st.lists(ODD_TEXTS, max_size=2)


@st.composite
def submissions(draw) -> bytes:
    """A body that Submit may get from a program that is not ours."""
    content = {"launch_command": "true"} | draw(
        st.dictionaries(st.sampled_from(sorted(JobForm.model_fields)), ODD, max_size=3)
    )
    text = json.dumps(content)
    return text.encode() if draw(st.booleans()) else text.encode("utf-16")


@given(
    bodies=st.lists(submissions(), min_size=1, max_size=4),
    policy=st.sampled_from(["fifo", "las", "srtf", "fair_share"]),
)
def test_a_bad_job_stops_no_other_and_not_the_next_start(bodies, policy):
    """After each body the scheduler takes reports and jobs, and starts again from its store."""
    store = Memory()

    async def play() -> None:
        service = service_on(store, policy)
        await service.report(report())
        for body in bodies:
            with suppress(ValueError):
                await service.submit(read_message(JobForm, body, "Submit"))
            await service.report(report())
        last = await service.submit(small_form())
        await service.report(report())
        again = await service_on(store, policy).status(StatusRequest())
        assert [job.job for job in again.jobs] == list(range(1, last.job + 1))

    asyncio.run(play())


@given(
    text=ODD_TEXTS.filter(lambda text: "\0" in text) | st.text(max_size=5).map("{}\0".format),
    field=st.sampled_from(["launch_command", "launch_params", "folder"]),
)
def test_the_form_refuses_what_no_process_can_be_given(text, field):
    value = ["first", text] if field == "launch_params" else text
    body = json.dumps({"launch_command": "true"} | {field: value})

    with pytest.raises(ValueError, match=rf"Submit: {field}.*(NUL|unicode)"):
        read_message(JobForm, body, "Submit")


@given(over=st.integers(-300, 300), num_words=st.integers(10, 900))
def test_what_is_taken_at_the_largest_size_can_be_read_again(over, num_words):
    words = ["é" * ((2**20 - 60) // num_words // 2 - 2)] * num_words
    body = json.dumps({"launch_command": "true", "launch_params": words}, ensure_ascii=False)
    body = body.encode() + b" " * (2**20 + over - len(body.encode()))
    store = Memory()
    if over > 0:
        with pytest.raises(ValueError, match="Submit: must be at most 1048576 bytes"):
            read_message(JobForm, body, "Submit")
        return
    asyncio.run(service_on(store).submit(read_message(JobForm, body, "Submit")))
    service_on(store)


@settings(max_examples=examples(10))
@given(name=st.sampled_from(["a" * 1000, "é" * 1000]))
def test_the_widest_job_can_be_read_again(name):
    """Longer than any file that is read, twice over: a launch and one that has to leave."""
    ranks = [LaunchedRank(node=name, gpu=gpu, incarnation=name) for gpu in range(4_200)]
    launches = {key: LaunchState(number=1, ranks=ranks) for key in ("current", "old")}
    text = message_text(JobState(job_id=1, form=small_form(4_200), submitted_s=0.0, **launches))

    assert len(text) > 16 * 2**20
    assert read_own(JobState, text, "job/1").current.ranks == ranks


@given(reason=ODD_TEXTS, metrics=st.dictionaries(ODD_TEXTS, ODD_NUMBERS, max_size=2))
def test_reports_of_a_node_are_stored_or_refused(reason, metrics):
    """Names and reasons that act on a terminal are shown written out."""
    store = Memory()

    async def play() -> str:
        service = service_on(store)
        await service.report(report())
        await service.submit(small_form(name="\x1b[2J\n"))
        rank = {"job": 1, "launch": 1, "rank": 0, "reason": reason, "metrics": metrics}
        body = json.dumps(report().model_dump() | {"ranks": [rank | {"has_ended": True}]})
        with suppress(ValueError):
            await service.report(read_message(NodeReport, body, "Report"))
        await service.report(report())
        service_on(store)
        return status_text(await service.status(StatusRequest()))

    with redirect_stdout(StringIO()) as said:
        shown = asyncio.run(play())
    shown += said.getvalue()
    assert all(line.isprintable() for line in shown.split("\n"))


@given(figure=ODD_NUMBERS.filter(lambda figure: isinstance(figure, int)))
def test_a_rank_that_claims_any_iteration_stops_no_decision(figure):
    async def play() -> None:
        service = service_on(Memory(), "srtf")
        await service.report(report())
        await service.submit(small_form(iterations=10**15, service_s=1e12))
        try:
            rank = RankReport(job=1, launch=1, rank=0, begun=figure)
        except ValueError:
            return
        await service.report(report(ranks=[rank]))
        await service.submit(small_form())

    asyncio.run(play())
