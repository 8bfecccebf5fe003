"""History of a queue: jobs that ended, rounds, and what became of all GPU seconds."""

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from des.cluster.live_job import LiveJob


class JobRecord(NamedTuple):
    """A job that has ended; all times in seconds.

    ``served_s`` is the time for which it held GPUs, restarts and lost work included.
    """

    job_id: int
    arrival_s: float
    admitted_s: float
    first_launch_s: float
    finish_s: float
    num_gpus: int
    service_s: float
    served_s: float
    launches: int
    suspensions: int

    @property
    def jct_s(self) -> float:
        """Time from arrival to end. [s]"""
        return self.finish_s - self.arrival_s

    @property
    def wait_s(self) -> float:
        """Time for which it held no GPUs. [s]"""
        return max(0.0, self.jct_s - self.served_s)


class RoundState(NamedTuple):
    """State of a round, as Blox counts: after the decision, before it takes effect."""

    time_s: float
    total_jobs: int
    jobs_in_queue: int
    jobs_running: int
    free_gpus: int
    gpu_demand: int
    suspended: int
    launched: int


class Stay(NamedTuple):
    """A stay of a job on GPUs of a node, for Gantt charts."""

    job_id: int
    node: int
    num_gpus: int
    start_s: float
    end_s: float


class Recorder:
    """Columns of the jobs that ended, eight bytes a cell, and sums over all jobs."""

    def __init__(self) -> None:
        self._columns = tuple(array("d") for _ in JobRecord._fields)
        self._first_gpus: list[tuple[int, ...]] = []
        self.num_ended = 0
        self.jct_sum_s = 0.0

    def add(self, live: LiveJob, finish_s: float, *, is_kept: bool) -> None:
        """Count a job that has ended, and keep its record if ``is_kept``."""
        job = live.job
        self.num_ended += 1
        self.jct_sum_s += finish_s - job.arrival_s
        if not is_kept:
            return
        row = (
            *(job.job_id, job.arrival_s, live.admitted_s, live.first_launch_s, finish_s),
            *(job.num_gpus, job.service_s, live.attained_s, live.launches, live.suspensions),
        )
        for column, cell in zip(self._columns, row, strict=True):
            column.append(cell)
        self._first_gpus.append(live.first_gpus)

    def rows(self) -> Iterator[JobRecord]:
        """Records of the kept jobs in the order in which they ended."""
        counts = {"job_id", "num_gpus", "launches", "suspensions"}
        for cells in zip(*self._columns, strict=True):
            named = zip(JobRecord._fields, cells, strict=True)
            yield JobRecord(*(int(cell) if name in counts else cell for name, cell in named))

    @property
    def first_gpus(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the first GPUs of each kept job, in the order of `rows`."""
        return tuple(self._first_gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSeconds:
    """GPU seconds of a run by what became of them.

    ``held`` is ``useful + restart + lost``: what jobs held was service that counted, restarts, and
    service or waiting that a failure or a crossed decision undid. ``lent`` are those of claims,
    which no job had; ``present`` is ``held + lent + free``.
    """

    present: float
    held: float
    useful: float
    restart: float
    lost: float
    free: float
    free_in_part: float
    lent: float = 0.0

    @property
    def utilisation(self) -> float:
        """Held over present GPU seconds."""
        return self.held / self.present if self.present else 0.0

    @property
    def fragmentation(self) -> float:
        """Share of the free GPU seconds on nodes that are in part in use."""
        return self.free_in_part / self.free if self.free else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Result of a run.

    Attributes
    ----------
    jobs
        Records of the tracked jobs, in the order in which they ended.
    first_gpus
        Numbers of the GPUs of each of them at its first launch.
    rounds
        One state a round, where there are rounds.
    unfinished
        Tracked jobs that had not ended when the run did.
    refused
        Jobs that are wider than the cluster ever is, where these are counted and not refused.
    link_bytes
        Bytes by (source, target) domain, of all jobs, where prices know of links. [bytes]
    """

    jobs: tuple[JobRecord, ...]
    first_gpus: tuple[tuple[int, ...], ...]
    rounds: tuple[RoundState, ...] = ()
    stays: tuple[Stay, ...] = ()
    unfinished: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    gpu_seconds: GpuSeconds
    link_bytes: tuple[tuple[tuple[str, str], float], ...] = ()
    num_ended: int
    mean_jct_of_all_s: float
    num_suspensions: int
    num_failures: int = 0
    end_s: float

    @property
    def mean_jct_s(self) -> float:
        """Mean time from arrival to end of the tracked jobs; NaN without any. [s]"""
        if not self.jobs:
            return math.nan
        return math.fsum(job.jct_s for job in self.jobs) / len(self.jobs)
