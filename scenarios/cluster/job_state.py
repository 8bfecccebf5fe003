"""Jobs of a real cluster: their stored state, and their view for policies."""

import math
import shlex
from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from des.base.checks import prefixed_errors
from des.cluster.free_gpus import Allocation
from des.cluster.live_job import LiveJob
from des.cluster.queued_job import QueuedJob
from scenarios.cluster.messages import ClusterMessage, JobForm, JobStatus, Metrics

Phase = Literal["reserved", "running", "held", "leaving", "ending"]
"""Course of a launch: its GPUs are its own but not free yet; its ranks run; they are held at the
end of their iteration until the last one begun is known; they leave after it; they are killed."""

Left = Literal["", "lease", "signal", "fence", "lost"]


class LaunchedRank(ClusterMessage):
    """A rank of a launch: its GPU, and its course on the node."""

    node: str
    gpu: int
    incarnation: str = ""
    begun: int = -1
    is_frozen: bool = False
    has_ended: bool = False
    left: Left = ""


class LaunchState(ClusterMessage):
    """Ranks of a job that run together."""

    number: int
    ranks: list[LaunchedRank]
    started_s: float | None = None
    phase: Phase = "reserved"
    master_address: str = ""
    master_port: int = 0
    leaves_at: int | None = None

    def is_over(self) -> bool:
        """Whether all ranks have ended."""
        return all(rank.has_ended for rank in self.ranks)

    def is_on(self, node: str) -> bool:
        """Whether a rank is on a node."""
        return any(rank.node == node for rank in self.ranks)

    def begun(self) -> int:
        """Last iteration that a rank has begun; -1: none."""
        return max(rank.begun for rank in self.ranks)

    def gpus_of(self) -> dict[str, list[int]]:
        """GPUs by node."""
        found: dict[str, list[int]] = {}
        for rank in self.ranks:
            found.setdefault(rank.node, []).append(rank.gpu)
        return found

    def gpus_text(self) -> str:
        """GPUs in words, such as ``a:0,1 b:0``."""
        gpus_of = self.gpus_of().items()
        return " ".join(f"{node}:{','.join(map(str, gpus))}" for node, gpus in gpus_of)


class JobState(ClusterMessage):
    """A job from its submission on.

    ``current`` is the launch that the policy has decided on, ``old`` an earlier one whose ranks
    have not all left. Times count from the beginning of the state.
    """

    job_id: int
    form: JobForm
    submitted_s: float
    number: int = -1
    state: Literal["waiting", "running", "done", "failed", "cancelled"] = "waiting"
    reason: str = ""
    attained_s: float = 0.0
    launches: int = 0
    suspensions: int = 0
    failures: int = 0
    iteration: int = 0
    ended_s: float | None = None
    metrics: Metrics = Field(default_factory=dict)
    first_loss: float | None = None
    current: LaunchState | None = None
    old: LaunchState | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will run, apart from ranks that are being killed."""
        return self.state not in ("waiting", "running")

    def latest_s(self) -> float:
        """Latest of its times."""
        started_s = 0.0 if self.current is None else self.current.started_s
        return max(self.submitted_s, self.ended_s or 0.0, started_s or 0.0)

    def launch(self, number: int) -> LaunchState | None:
        """Launch of a number, if it has not ended."""
        for each in (self.current, self.old):
            if each is not None and each.number == number:
                return each
        return None

    def launches_held(self) -> list[LaunchState]:
        """Launches that have not ended, the earlier one first."""
        return [each for each in (self.old, self.current) if each is not None]

    def on_gpus(self) -> Iterator[LaunchState]:
        """Launches whose ranks are, or are to be, on their nodes."""
        if self.old is not None:
            yield self.old
        if self.current is not None and self.current.phase != "reserved":
            yield self.current

    def take_metrics(self, metrics: Metrics) -> None:
        """Keep what its rank 0 has reported last, and its first loss."""
        self.metrics = metrics
        if self.first_loss is None and math.isfinite(metrics.get("loss", math.nan)):
            self.first_loss = metrics["loss"]

    def reported(self) -> dict[str, float]:
        """Figures for policies: the loss over the first; throughput where iterations are known."""
        found = dict(self.metrics)
        if "loss" in found and self.first_loss:
            found["loss"] /= self.first_loss
        if not self.form.iterations:
            found.pop("throughput", None)
        elif self.iteration and self.attained_s:
            found.setdefault("throughput", self.iteration / self.attained_s)
        return found

    def command(self) -> list[str]:
        """Words of the command of a rank."""
        return shlex.split(self.form.launch_command) + list(map(str, self.form.launch_params))

    def give_up_current(self, now_s: float) -> LaunchState | None:
        """Take the GPUs back that the policy gave; the launch, if its ranks are on its nodes."""
        launch, self.current = self.current, None
        if launch is None or launch.started_s is None:
            return None
        self.attained_s += now_s - launch.started_s
        self.old = launch
        return launch

    def end(self, state: Literal["done", "failed", "cancelled"], reason: str, now_s: float) -> None:
        """Let it end; ranks that are left are killed."""
        self.give_up_current(now_s)
        if self.old is not None:
            self.old.phase = "ending"
        self.state, self.reason, self.ended_s = state, reason, now_s

    def status(self, now_s: float) -> JobStatus:
        """Status for people."""
        held = self.current or self.old
        started_s = None if self.current is None else self.current.started_s
        running_s = 0.0 if started_s is None else now_s - started_s
        return JobStatus(
            job=self.job_id,
            name=self.form.name,
            state=self.state if self.has_ended or self.old is None else self.old.phase,
            reason=self.reason,
            num_gpus=self.form.num_gpus,
            gpus={} if held is None else held.gpus_of(),
            launches=self.launches,
            suspensions=self.suspensions,
            failures=self.failures,
            iteration=self.iteration,
            attained_s=self.attained_s + running_s,
            age_s=(now_s if self.ended_s is None else self.ended_s) - self.submitted_s,
            metrics=self.metrics,
        )


def queued_job(job_id: int, form: JobForm, arrival_s: float) -> QueuedJob:
    """Job as the world of job queues has it.

    Raises
    ------
    ValueError
        If the command has no words, or a figure is out of range.
    """
    with prefixed_errors("job: launch_command must be words of a shell: "):
        words = shlex.split(form.launch_command)
    if not words:
        raise ValueError("job: launch_command must be at least one word, got none")
    return QueuedJob(
        job_id=job_id,
        arrival_s=arrival_s,
        num_gpus=form.num_gpus,
        service_s=form.service_s,
        iteration_s=form.service_s / (form.iterations or form.service_s),
        name=form.name,
        tenant=form.tenant,
        priority=form.priority,
        level=form.level,
        is_level_required=form.is_level_required,
        domain=form.domain,
        gpu_type=form.gpu_type,
    )


def live_job(
    job: JobState, position_of: Mapping[str, int], now_s: float, quantum_s: float
) -> LiveJob:
    """Job as policies see it; its progress is known by iterations, else by the time attained.

    A launch counts from the multiple of the quantum that is nearest to its start: one that starts
    just after a round may give way at the next, one that had to wait for its GPUs may not yet.
    """
    live = LiveJob(queued_job(job.job_id, job.form, job.submitted_s))
    live.number = job.number
    live.admitted_s = live.waits_since_s = job.submitted_s
    live.launches, live.suspensions = job.launches, job.suspensions
    live.attained_s, live.metrics = job.attained_s, job.reported()
    if job.current is not None:
        live.allocation = live.last_allocation = _allocation(job.current, position_of)
        live.held = live.width
        live.rate = 1.0
        live.launch_s = now_s
        started_s = job.current.started_s
        if started_s is not None:
            live.launch_s = round(started_s / quantum_s) * quantum_s if quantum_s else started_s
            live.attained_s += live.launch_s - started_s
    live.done_s = live.attained_by(now_s)
    if job.form.iterations:
        live.done_s = job.form.service_s * min(1.0, job.iteration / job.form.iterations)
    live.since_s = now_s
    return live


def _allocation(launch: LaunchState, position_of: Mapping[str, int]) -> Allocation:
    masks = {
        position_of[node]: sum(1 << gpu for gpu in gpus) for node, gpus in launch.gpus_of().items()
    }
    return tuple(sorted(masks.items()))
