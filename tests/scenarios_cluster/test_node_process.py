"""A node in the test's own process: it leaves in order, ends without contact, answers leases."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from cluster_in_process import served, status_when
from processes import wait_until

from scenarios.cluster.client import Lease
from scenarios.cluster.messages import JobForm, RankOrder, Submitted
from scenarios.cluster.node_agent import NodeAgent, NodeIdentity
from scenarios.cluster.rank_process import RankProcess
from scenarios.cluster.rpc import SchedulerLink


def agent_of(flags, folder: Path, num_gpus: int = 1) -> NodeAgent:
    """Node of GPUs in name only."""
    identity = NodeIdentity(name="a", address="127.0.0.1", num_gpus=num_gpus)
    return NodeAgent(identity, SchedulerLink(flags), folder)


def test_a_node_leaves_once_its_job_has_left_at_the_end_of_an_iteration(tmp_path):
    async def play():
        async with served(tmp_path) as (_, flags, _):
            agent, link = agent_of(flags, tmp_path), SchedulerLink(flags)
            working = asyncio.create_task(agent.run(lambda _: None))
            job = JobForm(
                launch_command=f"{sys.executable} -m scenarios.cluster.demo_job",
                launch_params=[str(tmp_path), 10**6, 0.01],
            )
            await link.call("Submit", job, Submitted, 600.0)
            await status_when(link, lambda status: status.jobs[0].metrics)
            agent.leave()
            await working
            found = await status_when(link, lambda _: True)
            await link.close()
            return found

    found = asyncio.run(play())
    (job,) = found.jobs
    assert (found.nodes[0].state, job.state, job.suspensions) == ("gone", "waiting", 1), job.reason
    assert (tmp_path / "job-1.iteration").read_text() == str(job.iteration + 1)


def test_a_node_without_contact_ends_its_jobs_before_others_get_them(tmp_path):
    pipe = tmp_path / "gate"
    os.mkfifo(pipe)

    def ends(descriptor: int) -> bool:
        try:
            os.write(descriptor, b"\n")
        except BrokenPipeError:
            return True
        return False

    async def play() -> bool:
        async with served(tmp_path, lease_s=2.0) as (server, flags, _):
            agent, link = agent_of(flags, tmp_path), SchedulerLink(flags)
            working = asyncio.create_task(agent.run(lambda _: None))
            job = JobForm(launch_command="cat", launch_params=[str(pipe)], uses_lease=False)
            await link.call("Submit", job, Submitted, 600.0)
            await link.close()
            descriptor = await asyncio.to_thread(os.open, pipe, os.O_WRONLY)
            await server.stop(None)
            found = await asyncio.to_thread(wait_until, lambda: ends(descriptor))
            os.close(descriptor)
            agent.leave()
            await working
            return found

    assert asyncio.run(play())


NAMES = (
    *("KEPT", "job_id", "dist_rank", "world_size", "local_gpu_id"),
    *("local_accessible_gpu", "local_accessible_gpus", "master_ip_address"),
)


def test_the_environment_is_kept_and_what_cannot_be_started_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("KEPT", "kept")
    program = f"import os; print(*(os.environ[name] for name in {NAMES}))"
    forms = [
        JobForm(launch_command=sys.executable, launch_params=["-c", program], num_gpus=2),
        JobForm(launch_command="no-such-program"),
        JobForm(launch_command=sys.executable, folder=str(tmp_path / "none")),
        JobForm(launch_command=sys.executable, launch_params=["-c", "raise SystemExit('why')"]),
    ]

    async def play():
        async with served(tmp_path) as (_, flags, _):
            agent, link = agent_of(flags, tmp_path, num_gpus=2), SchedulerLink(flags)
            working = asyncio.create_task(agent.run(lambda _: None))
            for form in forms:
                await link.call("Submit", form, Submitted, 600.0)
            found = await status_when(
                link, lambda status: {each.state for each in status.jobs} <= {"done", "failed"}
            )
            agent.leave()
            await working
            await link.close()
            return found

    jobs = asyncio.run(play()).jobs
    logs = sorted(tmp_path.glob("job-1.*.log"))
    assert [log.read_text() for log in logs] == [
        f"kept 1 {rank} 2 {rank} 0,1 0,1 127.0.0.1\n" for rank in (0, 1)
    ]
    missing = "No such file or directory"
    assert [job.reason for job in jobs] == [
        "",
        f"rank 0 on a: cannot start 'no-such-program': {missing}",
        f"rank 0 on a: cannot start {sys.executable!r} in {tmp_path / 'none'}: {missing}",
        "rank 0 on a: exit code 1: why",
    ]


def order(**more) -> RankOrder:
    """Order of the only rank of a job."""
    values = {"job": 1, "launch": 1, "rank": 0, "world_size": 1, "gpu": 0, "gpus": [0]}
    where = {"master_address": "127.0.0.1", "master_port": 1, "command": ["x"], "folder": ""}
    return RankOrder(**values, **where, uses_lease=True, **more)


def test_a_held_rank_gets_its_answer_when_the_iteration_to_leave_at_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("LEASE_SOCKET", str(tmp_path / "s"))

    async def play():
        urgent: asyncio.Queue[bool] = asyncio.Queue()
        rank = RankProcess(order(), lambda *, is_urgent: urgent.put_nowait(is_urgent), tmp_path)
        server = await asyncio.start_unix_server(rank.answer, tmp_path / "s")
        lease = await asyncio.to_thread(Lease)
        answers = [await asyncio.to_thread(lease.goes_on, 7, loss=float("nan"))]
        rank.obey(order(is_held=True), 60.0)
        asked = asyncio.create_task(asyncio.to_thread(lease.goes_on, 8))
        assert rank.report.is_frozen
        assert [await urgent.get(), await urgent.get()] == [False, True]
        rank.obey(order(is_held=True, leaves_at=8), 60.0)
        answers.append(await asked)
        with pytest.raises(ConnectionError, match="rank 0: iteration: Input should be a valid int"):
            await asyncio.to_thread(lease.goes_on, "8")
        server.close()
        lease.close()
        return answers, rank.report

    answers, report = asyncio.run(play())
    assert answers == [True, False]
    assert (report.begun, report.left) == (7, "lease")
    assert str(report.metrics["loss"]) == "nan"
