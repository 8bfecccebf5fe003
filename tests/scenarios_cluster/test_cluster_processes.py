"""Real processes: a training that is preempted and resumed, kill -9 of scheduler and node."""

import os
import sys
from pathlib import Path

import gloo_job
import pytest
from cluster_processes import job_when, node, scheduler, status_when, submit
from processes import wait_until

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
        with scheduler(tmp_path, flags.port):
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


def has_no_reader(descriptor: int) -> bool:
    """Whether a pipe has lost its reader; what is written is not read by the one that it has."""
    try:
        os.write(descriptor, b" ")
    except BrokenPipeError:
        return True
    return False


NAMES = (
    *("KEPT", "job_id", "dist_rank", "world_size", "local_gpu_id"),
    *("local_accessible_gpu", "local_accessible_gpus", "master_ip_address"),
)
PRINT = f"import os; print(*(os.environ[name] for name in {NAMES}))"
WAIT = "import sys; print(open(sys.argv[1]).read())"


def test_kill_9_of_a_node_ends_its_ranks_and_the_job_runs_again_when_it_is_back(
    tmp_path, gate, monkeypatch
):
    """Also: the environment is kept, variables are added, a folder that is missing is told."""
    monkeypatch.setenv("KEPT", "kept")
    with scheduler(tmp_path) as (_, flags):
        with node(flags, tmp_path) as victim:
            job = submit(flags, "-c", WAIT, str(gate), uses_lease=False)
            descriptor = opened_when_read(gate)
            victim.kill()
            victim.wait()
            assert wait_until(lambda: has_no_reader(descriptor))
        os.close(descriptor)
        with node(flags, tmp_path):
            descriptor = opened_when_read(gate)
            os.write(descriptor, b"open")
            os.close(descriptor)
            found = job_when(flags, job, lambda each: each.state in ("done", "failed"))
            pair = submit(flags, "-c", PRINT, num_gpus=2, uses_lease=False)
            missing = submit(flags, num_gpus=1, folder=str(tmp_path / "none"))
            job_when(flags, pair, lambda each: each.state == "done")
            failed = job_when(flags, missing, lambda each: each.state == "failed")

    assert (found.state, found.launches, found.failures) == ("done", 2, 1), found.reason
    log = tmp_path / "logs" / "job-1.launch-2.rank-0.log"
    assert log.read_text() == "open\n"
    logs = sorted((tmp_path / "logs").glob("job-2.*"))
    assert [log.read_text() for log in logs] == [
        f"kept 2 {rank} 2 {rank} 0,1 0,1 127.0.0.1\n" for rank in (0, 1)
    ]
    where = f"rank 0 on a: cannot start '{sys.executable}' in {tmp_path / 'none'}"
    assert failed.reason == f"{where}: No such file or directory"
