"""A cluster of processes on the loopback for tests, which are waited for by what they report."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import python

from scenarios.cluster.access import AccessFlags
from scenarios.cluster.messages import JobForm, JobStatus, Status, StatusRequest, Submitted
from scenarios.cluster.rpc import NoAnswerError, call_once

MODULE = ("-m", "scenarios.cluster")


@contextmanager
def scheduler(folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], AccessFlags]]:
    """A scheduler that listens, and the way to it."""
    words = ("--policy", "priority", "--round-duration", "0.1")
    state = ("--state", str(folder / "state.db"), "--socket", str(folder / "s"))
    pipe = {"stdout": subprocess.PIPE, "text": True}
    with python(*MODULE, "scheduler", *words, *state, *flags, **pipe) as process:
        line = process.stdout.readline()
        assert line == f"listening at unix:{folder / 's'}\n", line
        yield process, AccessFlags(socket=folder / "s")


@contextmanager
def node(flags: AccessFlags, folder: Path, name: str = "a") -> Iterator[subprocess.Popen[str]]:
    """A node with two GPUs in name only, which the scheduler knows."""
    words = ("--name", name, "--gpus", "fake:2", "--logs", str(folder / "logs"))
    pipe = {"stdout": subprocess.PIPE, "text": True}
    with python(*MODULE, "node", "--socket", str(flags.socket), *words, **pipe) as process:
        line = process.stdout.readline()
        assert line.startswith(f"node {name} is known"), line
        yield process


def submit(flags: AccessFlags, *command: str, **more) -> int:
    """Hand in a job and return its number."""
    form = JobForm(launch_command=sys.executable, launch_params=list(command), **more)
    return call_once(flags, "Submit", form, Submitted).job


def status_when(flags: AccessFlags, is_so: Callable[[Status], bool]) -> Status:
    """Status of the time when something is so; a scheduler that is away is tried again."""
    version = ""
    while True:
        request = StatusRequest(version=version, wait_s=30.0)
        try:
            found = call_once(flags, "Status", request, Status)
        except NoAnswerError:
            continue
        if is_so(found):
            return found
        version = found.version


def job_when(flags: AccessFlags, job: int, is_so: Callable[[JobStatus], bool]) -> JobStatus:
    """Status of a job at the time when something is so of it."""
    return status_when(flags, lambda status: is_so(status.jobs[job - 1])).jobs[job - 1]
