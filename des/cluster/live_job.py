"""Jobs while they are in the cluster: what they got so far, and where they run."""

import math
from collections.abc import Mapping

from des.cluster.free_gpus import Allocation
from des.cluster.queued_job import QueuedJob


class LiveJob:
    """A job from its arrival to its end. Policies read it; only the engine changes it.

    Attributes
    ----------
    number
        Order of admission, which breaks ties.
    width, held
        GPUs that it is to have now, which an ordering may change where the job has a speed curve;
        GPUs that it holds.
    gpu_type
        Type of GPU that it is to have now, which an ordering may choose; none: any.
    key
        Key of the ordering when the job last became a waiting one; smaller goes first.
    attained_s
        Time for which it has held GPUs, up to its last launch or suspension. [s]
    done_s
        Service done at rate 1, up to ``since_s``. [s]
    saved_s
        Service that its last checkpoint holds. [s]
    last_allocation
        GPUs of its last launch.
    rate
        Service per second now.
    launch_s
        Time of the last launch; infinite while it waits. [s]
    since_s
        Time from which ``rate`` holds: later than the launch where a restart is paid. [s]
    ready_s
        End of the restart of its last launch. [s]
    metrics
        Figures that it has reported from real nodes; None: it is simulated, see `reported`.
    """

    __slots__ = (
        "admitted_s",
        "allocation",
        "attained_s",
        "done_s",
        "first_gpus",
        "first_launch_s",
        "gpu_type",
        "held",
        "job",
        "key",
        "last_allocation",
        "launch_s",
        "launches",
        "metrics",
        "number",
        "rate",
        "ready_s",
        "saved_s",
        "since_s",
        "suspensions",
        "version",
        "waits_since_s",
        "width",
    )

    def __init__(self, job: QueuedJob) -> None:
        self.job = job
        self.number = -1
        self.width = job.num_gpus
        self.gpu_type = job.gpu_type
        self.key: float = 0.0
        self.attained_s = self.done_s = self.saved_s = 0.0
        self.rate = 0.0
        self.launch_s = self.first_launch_s = math.inf
        self.since_s = self.ready_s = self.admitted_s = self.waits_since_s = 0.0
        self.held = self.launches = self.suspensions = self.version = 0
        self.allocation: Allocation = ()
        self.last_allocation: Allocation = ()
        self.first_gpus: tuple[int, ...] = ()
        self.metrics: Mapping[str, float] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it holds GPUs."""
        return bool(self.allocation)

    def attained_by(self, now_s: float) -> float:
        """Time for which it has held GPUs by now. [s]"""
        return self.attained_s + (now_s - self.launch_s if self.allocation else 0.0)

    def done_by(self, now_s: float) -> float:
        """Service done by now. [s]"""
        if now_s <= self.since_s or not self.allocation:
            return self.done_s
        return self.done_s + self.rate * (now_s - self.since_s)

    def left_by(self, now_s: float) -> float:
        """Service left now; at least 0. [s]"""
        return max(0.0, self.job.service_s - self.done_by(now_s))

    def reported(self, metric: str, now_s: float) -> float | None:
        """Figure that it has reported last; None where it has reported none.

        A simulated job reports ``throughput``, iterations per second at its last rate, and
        ``loss``, over that of its first iteration. It falls to a tenth by ``1 / (1 + 9 x)`` of the
        share ``x`` of the service done: the law that Optimus fits, with an assumed end.
        """
        if self.metrics is not None:
            return self.metrics.get(metric)
        if not self.launches:
            return None
        if metric == "throughput":
            return self.rate / self.job.iteration_s
        share = min(1.0, self.done_by(now_s) / self.job.service_s)
        return 1.0 / (1.0 + 9.0 * share) if metric == "loss" else None

    @property
    def end_s(self) -> float:
        """Time at which it ends if its rate holds; infinite while it waits or stands still. [s]"""
        if not self.allocation or self.rate <= 0.0:
            return math.inf
        return self.since_s + (self.job.service_s - self.done_s) / self.rate
