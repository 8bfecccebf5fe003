"""Schedulers and nodes that are killed at random moments: jobs end, and no rank runs twice."""

import os
import random
import threading
from contextlib import ExitStack
from pathlib import Path

import counting_job
import pytest
from cluster_processes import job_when, node, scheduler, status_when, submit
from forked import adopt_orphans, running_descendants
from processes import wait_until

NUM_KILLS = int(os.environ.get("KILLS", "60"))
"""Kills of a soak."""

JOB = Path(counting_job.__file__)
NUM_ITERATIONS = 60
NUM_JOBS = 3
"""Jobs that have not ended at a time, so that there is work to be killed."""

LEASE = ("--lease", "3", "--grace", "3")


def survive(folder: Path, num_kills: int, rng: random.Random) -> dict[str, int]:
    """Kill scheduler or node again and again while jobs come; returns what jobs went through."""
    adopt_orphans()
    before = running_descendants()
    with ExitStack() as all_of_it:
        parts = {"scheduler": all_of_it.enter_context(ExitStack()),
                 "node": all_of_it.enter_context(ExitStack())}  # fmt: skip
        process = {}
        process["scheduler"], flags = parts["scheduler"].enter_context(scheduler(folder, *LEASE))
        process["node"] = parts["node"].enter_context(node(flags, folder))
        jobs: dict[int, int] = {}
        for _ in range(num_kills):
            ended = {
                one.job for one in status_when(flags, lambda _: True).jobs if one.state == "done"
            }
            while len(jobs) - len(ended) < NUM_JOBS:
                size = rng.choice((1, 1, 2))
                words = (str(JOB), str(folder), str(NUM_ITERATIONS))
                jobs[submit(flags, *words, num_gpus=size, priority=rng.randrange(3))] = size
            threading.Event().wait(rng.uniform(0.0, 1.0))
            name = rng.choice(("scheduler", "node"))
            process[name].kill()
            process[name].wait()
            parts[name].close()
            again = scheduler(folder, *LEASE) if name == "scheduler" else node(flags, folder)
            found = parts[name].enter_context(again)
            process[name] = found[0] if name == "scheduler" else found
        found = [job_when(flags, job, lambda one: one.state in ("done", "failed")) for job in jobs]
    assert [(job.state, job.reason) for job in found] == [("done", "")] * len(jobs)
    for job, size in jobs.items():
        counts = [(folder / f"{job}.{rank}").read_text("utf-8") for rank in range(size)]
        assert counts == [str(NUM_ITERATIONS)] * size
    wait_until(lambda: running_descendants() <= before)
    return {
        "jobs": len(jobs),
        "launches": sum(job.launches for job in found),
        "failures": sum(job.failures for job in found),
    }


@pytest.mark.soak
def test_sixty_kills_lose_no_job_and_leave_nothing(tmp_path, capsys):
    """``KILLS=600 make soak ARGS=tests/scenarios_cluster/test_killed_cluster.py`` makes more."""
    counts = survive(tmp_path, NUM_KILLS, random.Random(os.environ.get("SEED", "0")))
    with capsys.disabled():
        print(f"{NUM_KILLS} kills, cluster: all jobs done, none left; {counts}")  # noqa: T201
