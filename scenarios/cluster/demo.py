"""Demonstration on this machine: a scheduler, two nodes with GPUs in name only, three jobs, a kill.

A job on all GPUs gives way to two others, comes back, loses a node by kill -9, and ends.
"""

import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from des.base.checks import require_positive
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports
from scenarios.cluster.access import AccessFlags
from scenarios.cluster.guard_process import Guard

with lazy_imports(__name__):
    from scenarios.cluster import messages, rpc

EXAMPLES = """\
examples:
  python -m scenarios.cluster demo
  python -m scenarios.cluster demo --iteration 0.05
"""
_ITERATIONS = {"wide": 200, "narrow": 20, "small": 20}
_GPUS = {"wide": 4, "narrow": 2, "small": 1}
_END_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of the demonstration."""

    iteration: float = option(0.02, "time of an iteration of the jobs [s]")

    def __post_init__(self) -> None:
        require_positive("demo", "iteration", self.iteration)


def run(config: Config) -> int:
    """Show it, and return 0 if all jobs have ended well."""
    folder = Path(tempfile.mkdtemp(prefix="eastwest-demo-"))
    stage = _Stage(folder)
    try:
        return _play(stage, config)
    finally:
        stage.close()


class _Stage:
    """Processes of the demonstration, which end with it, also if it is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = Guard(folder)
        self._started: list[subprocess.Popen[str]] = []
        self._socket = folder / "cluster.sock"
        state = ("--state", str(folder / "state.db"), "--socket", str(self._socket))
        times = ("--policy", "las", "--round-duration", "0.5")
        self._scheduler = self.start("scheduler", *times, *state, stdout=subprocess.PIPE)
        self.until("listening at")
        self.flags = AccessFlags(socket=self._socket)

    def start(self, *words: str, stdout: int | None = None) -> subprocess.Popen[str]:
        """Start a command of the cluster."""
        process = subprocess.Popen(
            [sys.executable, "-m", "scenarios.cluster", *words],
            stdout=subprocess.DEVNULL if stdout is None else stdout,
            text=True,
            start_new_session=True,
        )
        self._guard.add(process.pid)
        self._started.append(process)
        return process

    def node(self, name: str) -> subprocess.Popen[str]:
        """Start a node with two GPUs in name only."""
        where = ("--socket", str(self._socket), "--logs", str(self._folder / "logs"))
        return self.start("node", "--name", name, "--gpus", "fake:2", *where)

    def submit(self, name: str, iteration_s: float) -> None:
        """Hand in a job that counts iterations."""
        form = messages.JobForm(
            name=name,
            launch_command=f"'{sys.executable}' -m scenarios.cluster.demo_job",
            launch_params=[str(self._folder), _ITERATIONS[name], iteration_s],
            num_gpus=_GPUS[name],
            iterations=_ITERATIONS[name],
        )
        rpc.call_once(self.flags, "Submit", form, messages.Submitted)

    def until(self, text: str) -> str:
        """Print what the scheduler says until a text is in a line, which is returned."""
        assert self._scheduler.stdout is not None
        for line in self._scheduler.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if text in line:
                return line.rstrip()
            if "job 1 is done" in line:
                raise ValueError(f"demo: job 1 ended before {text!r}; give a longer --iteration")
        raise ValueError(f"demo: the scheduler ended before it said {text!r}")

    def until_iteration(self, least: int) -> None:
        """Wait until job 1 has pushed metrics and has begun an iteration."""
        version = ""
        while True:
            request = messages.StatusRequest(version=version, wait_s=10.0)
            found = rpc.call_once(self.flags, "Status", request, messages.Status)
            if found.jobs[0].metrics and found.jobs[0].iteration >= least:
                return
            version = found.version

    def say(self, text: str) -> None:
        """Print what the demonstration does."""
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def close(self) -> None:
        """End all processes: nodes leave, then the scheduler ends."""
        for process in reversed(self._started):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
                self._guard.remove(process.pid)
        if self._scheduler.stdout is not None:
            self._scheduler.stdout.close()
        self._guard.close()


def _play(stage: _Stage, config: Config) -> int:
    stage.node("a")
    victim = stage.node("b")
    for _ in range(2):
        stage.until("joins with")
    stage.submit("wide", config.iteration)
    stage.until("job 1 starts")
    stage.until_iteration(0)
    stage.say("two more jobs are handed in: job 1 has attained the most and gives way")
    stage.submit("narrow", config.iteration)
    stage.submit("small", config.iteration)
    left_at = int(stage.until("job 1 has left before iteration").rpartition(" ")[2])
    stage.until("job 1 starts")
    stage.until_iteration(left_at)
    stage.say("kill -9 of node b; it is started again")
    victim.kill()
    victim.wait()
    stage.node("b")
    stage.until("job 1 is done")
    found = rpc.call_once(stage.flags, "Status", messages.StatusRequest(), messages.Status)
    DOCUMENT.add(jobs=[job.model_dump(mode="json") for job in found.jobs])
    for job in found.jobs:
        sys.stdout.write(
            f"job {job.job} ({job.name}, {job.num_gpus} GPUs): {job.state}, "
            f"iterations {job.iteration + 1}, launches {job.launches}, "
            f"suspensions {job.suspensions}, failures {job.failures}\n"
        )
    return 0 if all(job.state == "done" for job in found.jobs) else 2
