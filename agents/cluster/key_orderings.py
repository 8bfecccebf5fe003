"""Orderings by a key of one job, without a look at the others."""

import math
from dataclasses import dataclass

from des.base.checks import require_non_negative
from des.cluster.live_job import LiveJob
from des.cluster.policy import View

QUANTUM_S = 300.0
"""Default time between decisions that may preempt. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyOrdering:
    """Base of orderings whose keys of waiting jobs hold still."""

    preempts: bool = True
    blocks: bool = False
    backfills: bool = False
    changes: bool = False
    quantum_s: float = QUANTUM_S

    def __post_init__(self) -> None:
        require_non_negative(type(self).__name__, "quantum_s", self.quantum_s)

    def prepare(self, view: View) -> None:
        """Nothing to prepare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fifo(KeyOrdering):
    """First come, first served: the first job that does not fit stops those behind it."""

    preempts: bool = False
    blocks: bool = True

    def key(self, job: LiveJob, now_s: float) -> float:
        """Time of arrival."""
        return job.job.arrival_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortestJob(KeyOrdering):
    """Shortest job first, by its whole service; nothing is suspended."""

    preempts: bool = False

    def key(self, job: LiveJob, now_s: float) -> float:
        """Service needed."""
        return job.job.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortestRemaining(KeyOrdering):
    """Shortest remaining service first (SRTF); it must know how long jobs are."""

    def key(self, job: LiveJob, now_s: float) -> float:
        """Service left."""
        return job.left_by(now_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRemaining(KeyOrdering):
    """Shortest remaining time first, by the iterations per second that jobs report."""

    def key(self, job: LiveJob, now_s: float) -> float:
        """Iterations left over the reported throughput; the service left where there is none."""
        per_s, left_s = job.reported("throughput", now_s), job.left_by(now_s)
        if per_s is None or not 0.0 < per_s < math.inf:
            return left_s
        return left_s / job.job.iteration_s / per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestLoss(KeyOrdering):
    """Highest reported loss, over a job's first, goes first.

    Under a loss of ``1 / (b k + c)`` after k iterations this is the job whose loss falls most in
    its next ones, as in SLAQ (Zhang et al., SoCC'17). A loss that is no number goes last.
    """

    def key(self, job: LiveJob, now_s: float) -> float:
        """Loss, negative and at most the first; of jobs that have reported none the first."""
        loss = job.reported("loss", now_s)
        if loss is None:
            return -1.0
        return -min(loss, 1.0) if math.isfinite(loss) else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastRemainingWork(KeyOrdering):
    """Fewest remaining GPU seconds first (SRSF): the width of a job counts as well."""

    def key(self, job: LiveJob, now_s: float) -> float:
        """Service left on all of its GPUs."""
        return job.left_by(now_s) * job.width


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastAttained(KeyOrdering):
    """Least attained service first (LAS): time with GPUs, whatever their number."""

    def key(self, job: LiveJob, now_s: float) -> float:
        """Time for which it has held GPUs."""
        return job.attained_by(now_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestPriority(KeyOrdering):
    """Highest priority first, equal ones by arrival."""

    def key(self, job: LiveJob, now_s: float) -> float:
        """Priority, negative."""
        return float(-job.job.priority)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuIntensity(KeyOrdering):
    """Highest GPU intensity first (Crux, SIGCOMM'24): computation of all GPUs per communication."""

    def key(self, job: LiveJob, now_s: float) -> float:
        """Intensity of the whole job, negative."""
        return -job.job.intensity * job.width


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishTimeFairness(KeyOrdering):
    """Worst finish-time fairness first (Themis, NSDI'20), with leases of a quantum.

    The fairness of a job is the time from its arrival to its end, if it ran from now on, over its
    service alone. Waiting makes it worse, so keys change.
    """

    changes: bool = True

    def key(self, job: LiveJob, now_s: float) -> float:
        """Finish-time fairness, negative."""
        value = job.job
        return -(now_s - value.arrival_s + job.left_by(now_s)) / value.service_s
