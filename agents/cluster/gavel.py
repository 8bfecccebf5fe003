"""Orderings of Gavel (OSDI'20): shares of time by linear programs, rounds by priorities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from des.base.checks import require_positive
from des.base.lazy import lazy_imports
from des.cluster.live_job import LiveJob
from des.cluster.policy import View
from des.cluster.quantum import is_tick

with lazy_imports(__name__):
    from scipy import optimize

ROUND_S = 360.0
"""Default round, as in the paper. [s]"""

_TOLERANCE = 1e-2
"""Relative width at which the search for the best finish-time fairness stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedJob:
    """A job as the programs see it: its width and its speed on each type of GPU, 0 where none."""

    width: int
    speeds: tuple[float, ...]
    left_s: float
    elapsed_s: float
    alone_s: float


def max_min_shares(jobs: Sequence[SharedJob], gpus: Sequence[int]) -> np.ndarray:
    """Shares of time (jobs, types) that make the least normalised throughput as large as possible.

    A job's throughput is normalised by what an equal share of every type would give it. After the
    least one is maximal the sum is made large, so nothing is left idle that helps a job.

    Examples
    --------
    >>> job = SharedJob(width=1, speeds=(1.0,), left_s=1.0, elapsed_s=0.0, alone_s=1.0)
    >>> max_min_shares([job, job], [1]).round(6).tolist()
    [[0.5], [0.5]]
    """
    equal = [
        sum(speed * count for speed, count in zip(job.speeds, gpus, strict=True))
        / (len(jobs) * job.width)
        for job in jobs
    ]
    weights = [1.0 / max(least, 1e-12) for least in equal]
    return _solved(jobs, gpus, [(weight, 0.0) for weight in weights])


def fair_finish_shares(jobs: Sequence[SharedJob], gpus: Sequence[int]) -> np.ndarray:
    """Shares of time (jobs, types) that make the worst finish-time fairness as good as possible.

    Fairness is ``(elapsed + left / throughput) / alone``. For a given bound each job needs a
    throughput, so the best bound is found by bisection over linear programs.
    """
    low, high = 0.0, 1.0
    while (found := _within(jobs, gpus, high)) is None:
        low, high = high, 2.0 * high
        if high > 1e9:
            return max_min_shares(jobs, gpus)
    while high - low > _TOLERANCE * high:
        middle = 0.5 * (low + high)
        better = _within(jobs, gpus, middle)
        if better is None:
            low = middle
        else:
            high, found = middle, better
    return found


def _within(jobs: Sequence[SharedJob], gpus: Sequence[int], bound: float) -> np.ndarray | None:
    """Shares under which no job is worse than a bound; None if there are none."""
    needed = []
    for job in jobs:
        room_s = bound * job.alone_s - job.elapsed_s
        if room_s <= 0:
            return None
        needed.append(job.left_s / room_s)
    shares = _solved(jobs, gpus, [(1.0, least) for least in needed], is_bound=True)
    return shares if shares.size else None


def _solved(
    jobs: Sequence[SharedJob],
    gpus: Sequence[int],
    rows: Sequence[tuple[float, float]],
    *,
    is_bound: bool = False,
) -> np.ndarray:
    """Shares that maximise the least of weight * throughput, or that keep throughputs above bounds.

    Empty where bounds cannot be kept.
    """
    num_jobs, num_types = len(jobs), len(gpus)
    size = num_jobs * num_types
    cost = np.zeros(size + 1)
    cost[size] = 0.0 if is_bound else -1.0
    above, limits = [], []
    for place, (job, (weight, least)) in enumerate(zip(jobs, rows, strict=True)):
        row = np.zeros(size + 1)
        row[place * num_types : (place + 1) * num_types] = -weight * np.array(job.speeds)
        row[size] = 0.0 if is_bound else 1.0
        above.append(row)
        limits.append(-least)
        cost[place * num_types : (place + 1) * num_types] = -1e-6 * weight * np.array(job.speeds)
        whole = np.zeros(size + 1)
        whole[place * num_types : (place + 1) * num_types] = 1.0
        above.append(whole)
        limits.append(1.0)
    for kind, count in enumerate(gpus):
        row = np.zeros(size + 1)
        row[kind:size:num_types] = [job.width for job in jobs]
        above.append(row)
        limits.append(float(count))
    answer = optimize.linprog(cost, A_ub=np.array(above), b_ub=np.array(limits), method="highs")
    if not answer.success:
        return np.empty((0, 0))
    return np.asarray(answer.x)[:size].reshape(num_jobs, num_types)


@dataclass(slots=True, kw_only=True)
class Gavel:
    """Rounds in which jobs furthest below their share of time go first.

    ``is_fair_finish`` takes the shares of finish-time fairness, else those of max-min fairness.
    """

    is_fair_finish: bool = False
    quantum_s: float = ROUND_S
    preempts: bool = True
    blocks: bool = False
    backfills: bool = False
    changes: bool = True
    _rank_of: dict[int, float] = field(default_factory=dict, init=False)
    _received_s: dict[tuple[int, str], float] = field(default_factory=dict, init=False)
    _now_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        require_positive("ordering gavel", "quantum_s", self.quantum_s)

    def prepare(self, view: View) -> None:
        """At a round: solve the program, rank pairs of jobs and types, and give out the GPUs."""
        if view.now_s < self._now_s:
            self._received_s.clear()
        self._count(view)
        if not is_tick(view.now_s, self.quantum_s) and self._rank_of:
            return
        self._rank_of = {}
        if not view.waiting:  # all have GPUs, whatever their shares
            return
        jobs = list(view.live_jobs())
        types, gpus = _types_of(view)
        shares_of = fair_finish_shares if self.is_fair_finish else max_min_shares
        shares = shares_of([_shared(job, types, view.now_s) for job in jobs], gpus)
        pairs = sorted(
            (-share / (self._received_s.get((job.number, kind), 0.0) + 1.0), job.number, at, place)
            for place, job in enumerate(jobs)
            for at, kind in enumerate(types)
            if (share := float(shares[place, at])) > 1e-9
        )
        left = list(gpus)
        for rank, (_, number, at, place) in enumerate(pairs):
            job = jobs[place]
            if number not in self._rank_of and job.width <= left[at]:
                left[at] -= job.width
                self._rank_of[number] = float(rank)
                job.gpu_type = types[at]

    def _count(self, view: View) -> None:
        """Add the time since the last decision to what running jobs have received."""
        for job in view.running.values():
            kind = view.free.nodes.nodes[job.allocation[0][0]].gpu_type
            got = min(view.now_s - self._now_s, view.now_s - job.launch_s)
            key = (job.number, kind)
            self._received_s[key] = self._received_s.get(key, 0.0) + max(0.0, got)
        self._now_s = view.now_s

    def key(self, job: LiveJob, now_s: float) -> float:
        """Rank of the round; jobs without GPUs in it come last, by arrival."""
        return self._rank_of.get(job.number, 1e12 + job.job.arrival_s)


def _types_of(view: View) -> tuple[list[str], list[int]]:
    """Types of GPU of the nodes that take jobs, and how many GPUs there are of each."""
    counts: dict[str, int] = {}
    for position, node in enumerate(view.free.nodes.nodes):
        if view.free.takes_jobs(position):
            counts[node.gpu_type] = counts.get(node.gpu_type, 0) + node.num_gpus
    return list(counts), list(counts.values())


def _shared(job: LiveJob, types: Sequence[str], now_s: float) -> SharedJob:
    value, named = job.job, dict(job.job.speed_of_type)
    return SharedJob(
        width=job.width,
        speeds=tuple(
            named.get(kind, 1.0) if value.gpu_type in ("", kind) else 0.0 for kind in types
        ),
        left_s=max(job.left_by(now_s), 1e-9),
        elapsed_s=now_s - value.arrival_s,
        alone_s=value.service_s,
    )
