"""Workloads that are drawn: Poisson arrivals, dual load, durations and widths, a seed each."""

import hashlib
import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from des.base.checks import require_count, require_one_of, require_positive, require_seed
from des.cluster.queued_job import QueuedJob, SpeedCurve

MIXES: dict[str, tuple[tuple[int, float], ...]] = {
    "single": ((1, 1.0),),
    "blox": ((1, 0.70), (2, 0.10), (4, 0.15), (8, 0.05)),
}
"""Numbers of GPUs and their probabilities; ``blox`` is that of Blox's synthetic jobs."""

_CHUNK = 4096
_ARRIVALS, _DURATIONS, _WIDTHS, _SECOND = range(4)
_DAY_PART_S, _PERIOD_S = 14_400.0, 21_600.0
_LONG_S, _SHORT_S = (36_000.0, 86_400.0), (600.0, 3_600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnJobs:
    """Jobs of a Philly-like workload, drawn one by one, the same every time.

    Attributes
    ----------
    num_jobs
        Number of jobs; 0: without end.
    jobs_per_hour
        Rate of the Poisson process of arrivals.
    mix
        Name of a mix of `MIXES`.

    Notes
    -----
    80 % of the jobs take ``60 * 10**U(1.5, 3)`` s and 20 % ``60 * 10**U(3, 4)`` s, as in Blox's
    workload, with a mean of 16.8 h. Arrivals, durations and widths have a stream of random numbers
    each, so another load or mix leaves the others as they are.
    """

    jobs_per_hour: float
    seed: int = 0
    num_jobs: int = 0
    mix: str = "single"

    def __post_init__(self) -> None:
        require_positive("drawn jobs", "jobs_per_hour", self.jobs_per_hour)
        require_seed("drawn jobs", "seed", self.seed)
        if self.num_jobs:
            require_count("drawn jobs", "num_jobs", self.num_jobs)
        require_one_of("drawn jobs", "mix", self.mix, MIXES)

    def __iter__(self) -> Iterator[QueuedJob]:
        """Jobs in order of arrival."""
        jobs = self._endless()
        return itertools.islice(jobs, self.num_jobs) if self.num_jobs else jobs

    def _endless(self) -> Iterator[QueuedJob]:
        gaps, durations, widths = (
            _stream(self.seed, number) for number in (_ARRIVALS, _DURATIONS, _WIDTHS)
        )
        numbers, chances = zip(*MIXES[self.mix], strict=True)
        time_s, job_id = 0.0, 0
        while True:
            steps_s = gaps.exponential(3600.0 / self.jobs_per_hour, _CHUNK).tolist()
            service_s = philly_like_s(durations, _CHUNK).tolist()
            drawn = widths.choice(numbers, _CHUNK, p=chances).tolist()
            for step_s, needed_s, width in zip(steps_s, service_s, drawn, strict=True):
                time_s += step_s
                yield QueuedJob(job_id=job_id, arrival_s=time_s, num_gpus=width, service_s=needed_s)
                job_id += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DualLoad:
    """Long jobs at a steady rate, and short ones at four times the rate for part of the time.

    The second stream is on from 14,400 s to 21,600 s of every 21,600 s, unless ``has_short`` is
    false. Long jobs take 36,000 to 86,400 s, short ones 600 to 3,600 s, uniformly.
    """

    jobs_per_hour: float
    seed: int = 0
    mix: str = "single"
    has_short: bool = True

    def __post_init__(self) -> None:
        DrawnJobs(jobs_per_hour=self.jobs_per_hour, seed=self.seed, mix=self.mix)

    def __iter__(self) -> Iterator[QueuedJob]:
        """Jobs of both streams in order of arrival."""
        streams = [self._stream(0, 1.0, _LONG_S)]
        if self.has_short:
            streams.append(self._stream(1, 4.0, _SHORT_S))
        for job_id, (arrival_s, _, service_s, width) in enumerate(heapq.merge(*streams)):
            yield QueuedJob(job_id=job_id, arrival_s=arrival_s, num_gpus=width, service_s=service_s)

    def _stream(
        self, number: int, factor: float, bounds_s: tuple[float, float]
    ) -> Iterator[tuple[float, int, float, int]]:
        rng = _stream(self.seed, number * _SECOND)
        numbers, chances = zip(*MIXES[self.mix], strict=True)
        on_s = 0.0
        while True:
            on_s += float(rng.exponential(3600.0 / (self.jobs_per_hour * factor)))
            arrival_s = on_s
            if number:  # time in which the stream is on, laid out over the periods
                length_s = _PERIOD_S - _DAY_PART_S
                arrival_s = on_s // length_s * _PERIOD_S + _DAY_PART_S + on_s % length_s
            service_s = float(rng.uniform(*bounds_s))
            yield arrival_s, number, service_s, int(rng.choice(numbers, p=chances))


def philly_like_s(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw durations: 80 % of ``60 * 10**U(1.5, 3)`` s, 20 % of ``60 * 10**U(3, 4)`` s."""
    is_long = rng.random(count) < 0.2
    power = rng.random(count)
    return 60.0 * np.power(10.0, np.where(is_long, 3.0 + power, 1.5 + 1.5 * power))


def mean_philly_like_s() -> float:
    """Mean of the durations of `philly_like_s`. [s]

    Examples
    --------
    >>> round(mean_philly_like_s() / 3600, 1)
    16.8
    """
    short = 60.0 * (1000.0 - math.sqrt(1000.0)) / (1.5 * math.log(10.0))
    long = 60.0 * 9000.0 / math.log(10.0)
    return 0.8 * short + 0.2 * long


def _stream(seed: int, number: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedJobs:
    """Jobs of a trace, whose arrivals may be made denser or drawn.

    Attributes
    ----------
    density
        Factor by which gaps between arrivals are divided; their shape stays.
    jobs_per_hour
        Rate of Poisson arrivals in place of those of the trace; 0: those of the trace.
    """

    jobs: tuple[QueuedJob, ...]
    density: float = 1.0
    jobs_per_hour: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        require_positive("jobs of a trace", "density", self.density)
        require_seed("jobs of a trace", "seed", self.seed)

    def __iter__(self) -> Iterator[QueuedJob]:
        """Jobs in order of arrival."""
        if self.jobs_per_hour:
            gaps_s = _stream(self.seed, _ARRIVALS).exponential(
                3600.0 / self.jobs_per_hour, len(self.jobs)
            )
            times_s = np.cumsum(gaps_s).tolist()
        else:
            times_s = [job.arrival_s / self.density for job in self.jobs]
        for job, time_s in zip(self.jobs, times_s, strict=True):
            yield replace(job, arrival_s=time_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticJobs:
    """Jobs that may have from 1 to ``most_gpus`` GPUs each, or their own number where it is more.

    All have one speed curve, of an assumed 5 % overhead and 1 % communication a GPU, and a gradient
    noise scale of 8 batches.
    """

    jobs: Iterable[QueuedJob]
    most_gpus: int

    def __iter__(self) -> Iterator[QueuedJob]:
        """Jobs in order of arrival."""
        for job in self.jobs:
            curve = SpeedCurve(
                compute=1.0,
                overhead=0.05,
                communication=0.01,
                most_gpus=max(self.most_gpus, job.num_gpus),
                noise_scale=8.0,
            )
            yield replace(job, curve=curve)


def workload_hash(jobs: Iterable[QueuedJob], most_jobs: int) -> str:
    """Hash of the first jobs of a workload: equal hashes, equal jobs."""
    digest = hashlib.sha256()
    for job in itertools.islice(jobs, most_jobs):
        row = (job.job_id, job.arrival_s, job.num_gpus, job.service_s, job.tenant, job.model)
        digest.update(repr(row).encode())
    return digest.hexdigest()[:16]
