"""Real processes: a training that is preempted and resumed, kill -9 of scheduler and node."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import gloo_job
import pandas as pd
import pytest
from cluster_processes import job_when, node, scheduler, status_when, submit

from scenarios.cluster.command import main
from scenarios.cluster.guard_process import Guard

JOB = Path(gloo_job.__file__)
NUM_ITERATIONS = 12


def opened_when_read(pipe: Path) -> int:
    """Descriptor of a named pipe once it has a reader."""
    return os.open(pipe, os.O_WRONLY)


@pytest.fixture
def gate(tmp_path):
    """Named pipe on which a job waits."""
    pipe = tmp_path / "gate"
    os.mkfifo(pipe)
    return pipe


def test_a_gloo_training_survives_the_scheduler_is_preempted_and_ends_with_equal_losses(
    tmp_path, gate
):
    """The scheduler is killed in iteration 5; the one after it lets the ranks leave before 6."""
    with scheduler(tmp_path) as (first, flags), node(flags, tmp_path):
        words = (str(JOB), str(tmp_path), str(NUM_ITERATIONS), "5")
        training = submit(flags, *words, num_gpus=2)
        descriptor = opened_when_read(gate)
        first.kill()
        first.wait()
        with scheduler(tmp_path):
            other = submit(flags, "-c", "", num_gpus=2, priority=1, uses_lease=False)
            job_when(flags, training, lambda job: job.state == "leaving")
            os.close(descriptor)
            assert job_when(flags, other, lambda job: job.state != "waiting").reason == ""
            found = job_when(flags, training, lambda job: job.state in ("done", "failed"))
            after = status_when(flags, lambda status: status.nodes[0].num_free == 2)

    assert (found.state, found.launches, found.suspensions) == ("done", 2, 1), found.reason
    assert after.jobs[other - 1].state == "done"
    assert [(tmp_path / f"left-{rank}").read_text() for rank in (0, 1)] == ["6", "6"]
    losses = [float(word) for word in (tmp_path / "losses").read_text().split()]
    assert losses == gloo_job.uninterrupted(NUM_ITERATIONS, 2)


def test_times_of_tracked_jobs_of_a_run_are_told_and_written(tmp_path, capsys):
    track = ("--start-id-track", "2", "--stop-id-track", "3")
    with scheduler(tmp_path, *track) as (process, flags), node(flags, tmp_path):
        jobs = [submit(flags, "-c", "", uses_lease=False) for _ in range(3)]
        for job in jobs:
            job_when(flags, job, lambda one: one.state == "done")
        told = next(line for line in iter(process.stdout.readline, "") if "mean JCT" in line)
        out = tmp_path / "out"
        assert main(["status", "--socket", str(flags.socket), *track, "--out", str(out)]) == 0

    assert told.startswith("jobs 2 to 3: 2 done, 0 failed or cancelled, 0 not ended; mean JCT ")
    assert told in capsys.readouterr().out
    rows = pd.read_csv(out / "jct.csv")
    assert rows["job"].tolist() == [2, 3]
    assert f"mean JCT {rows['jct_s'].mean():.2f} s" in told
    assert (out / "jct_cdf.png").is_file()


def test_the_demonstration_preempts_kills_a_node_and_ends_all_jobs(capfd):
    """Scheduler and nodes, which only wait, do not say for how long."""
    assert main(["demo"]) == 0

    shown, notes = capfd.readouterr()
    assert "so far" not in notes
    for line in (
        "job 1 is to leave a:0,1 b:0,1",
        "node b runs in a new process",
        "job 1 lost node b and waits again",
        "job 1 (wide, 4 GPUs): done, iterations 200, launches 3, suspensions 1, failures 1",
        "job 2 (narrow, 2 GPUs): done, iterations 20, launches 1, suspensions 0, failures 0",
    ):
        assert line in shown


def test_a_guard_kills_what_is_left_when_its_node_ends(tmp_path):
    folder = tmp_path / "sockets"
    folder.mkdir()
    words = [sys.executable, "-I", "-S", "-c", "input()"]
    started = [
        subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) for _ in range(2)
    ]
    guard = Guard(folder)
    for process in started:
        guard.add(process.pid)
    started[0].communicate(b"\n")
    guard.remove(started[0].pid)
    guard.close()

    assert [process.wait() for process in started] == [0, -signal.SIGKILL]
    started[1].stdin.close()
    assert not folder.exists()
