"""Accounts of a run: GPU seconds by what became of them, and which jobs are still to end."""

import math
from collections.abc import Mapping
from typing import Any

from des.cluster.free_gpus import FreeCounts
from des.cluster.history import GpuSeconds, History, Recorder, Stay
from des.cluster.live_job import LiveJob
from des.cluster.node_set import ChangeKind
from des.cluster.queued_job import QueuedJob
from des.cluster.world import World


class TrackedJobs:
    """Jobs whose ends a run waits for, and sums over those that have ended."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._recorder = Recorder()
        self._unfinished: dict[int, None] = {}
        tracked = world.tracked_ids
        self._num_to_come = math.inf if tracked is None else tracked[1] - tracked[0] + 1

    @property
    def is_complete(self) -> bool:
        """Whether all tracked jobs have ended."""
        return not self._unfinished and self._num_to_come <= 0

    @property
    def time_of_ended_s(self) -> float:
        """Sum of the times from arrival to end of the jobs that have ended. [s]"""
        return self._recorder.jct_sum_s

    def all_arrived(self) -> None:
        """Expect no more jobs.

        Raises
        ------
        ValueError
            If tracked jobs were not among those that arrived.
        """
        if self._world.tracked_ids is not None and self._num_to_come > 0:
            first, last = self._world.tracked_ids
            raise ValueError(
                f"cluster world: tracked_ids must be of jobs that arrive, got {first} to {last}, "
                f"of which {self._num_to_come:g} do not"
            )
        self._num_to_come = 0

    def arrive(self, job: QueuedJob) -> None:
        """Count a job that arrives.

        Raises
        ------
        ValueError
            If another job of its number has not ended.
        """
        if job.job_id in self._unfinished:
            raise ValueError(f"job {job.job_id}: job_id must be that of one job, got two")
        if self._world.is_tracked(job.job_id):
            self._unfinished[job.job_id] = None
            self._num_to_come -= 1

    def finish(self, job: LiveJob, now_s: float) -> None:
        """Record a job that has ended."""
        is_kept = self._world.is_tracked(job.job.job_id)
        self._recorder.add(job, now_s, is_kept=is_kept)
        if is_kept:
            del self._unfinished[job.job.job_id]

    def summed_up(self, **figures: Any) -> History:
        """History of a run, by its figures of other things than jobs."""
        num_ended = self._recorder.num_ended
        return History(
            jobs=tuple(self._recorder.rows()),
            first_gpus=self._recorder.first_gpus,
            unfinished=tuple(self._unfinished),
            num_ended=num_ended,
            mean_jct_of_all_s=self._recorder.jct_sum_s / num_ended if num_ended else math.nan,
            **figures,
        )


class Accounts(TrackedJobs):
    """Sums over time and over jobs."""

    def __init__(self, world: World, free: FreeCounts) -> None:
        super().__init__(world)
        self._free = free
        self._now_s = 0.0
        self._sizes = [node.num_gpus for node in world.nodes.nodes]
        self._is_there = [False] * len(self._sizes)
        self._num_there = self.num_held = self.num_lent = self.num_suspensions = 0
        self._num_failures = 0
        self._present = self._free_s = self._part = 0.0
        self._held = self._restart = self._lost = self._lent = 0.0
        self._link_bytes: dict[tuple[str, str], float] = {}
        self._refused: list[int] = []

    def refuse(self, job: QueuedJob) -> None:
        """Count or refuse a job that can never run.

        Raises
        ------
        ValueError
            If such jobs are to be refused.
        """
        if self._world.too_wide == "refuse":
            raise ValueError(
                f"job {job.job_id}: num_gpus must be at most those of the cluster, "
                f"{self._world.nodes.num_gpus}, got {job.num_gpus}"
            )
        self._refused.append(job.job_id)
        if self._world.is_tracked(job.job_id):
            self._num_to_come -= 1

    def until(self, now_s: float) -> None:
        """Sum over the time up to now, before anything changes."""
        stretch_s = now_s - self._now_s
        if stretch_s > 0:
            free = self._free
            self._present += self._num_there * stretch_s
            self._free_s += (self._num_there - self.num_held - self.num_lent) * stretch_s
            self._lent += self.num_lent * stretch_s
            self._part += (free.num_free - free.num_whole) * stretch_s
            self._now_s = now_s

    def change(self, node: int, kind: ChangeKind) -> None:
        """Count the GPUs of a node that joins or goes; a draining node is still there."""
        is_there = self._is_there[node] if kind == "drain" else kind == "join"
        if is_there != self._is_there[node]:
            self._is_there[node] = is_there
            self._num_there += self._sizes[node] * (1 if is_there else -1)

    def stop(self, job: LiveJob, now_s: float) -> None:
        """Count what a job held."""
        self.until(now_s)
        self.num_held -= job.held
        self._held += job.held * (now_s - job.launch_s)
        self._restart += job.held * (min(max(job.ready_s, job.launch_s), now_s) - job.launch_s)

    def carry(self, num_bytes: Mapping[tuple[str, str], float], times: float) -> None:
        """Count bytes on links, by (source, target)."""
        for link, each in num_bytes.items():
            self._link_bytes[link] = self._link_bytes.get(link, 0.0) + each * times

    def fall_back(self, job: LiveJob) -> None:
        """Set a job back to its last checkpoint and count what it lost."""
        every_s = self._world.checkpoint_every_s
        if every_s < math.inf:
            job.saved_s = max(job.saved_s, job.done_s // every_s * every_s)
        self._lost += job.held * (job.done_s - job.saved_s) / job.rate
        job.done_s = job.saved_s
        self._num_failures += 1

    def history(self, now_s: float, *, stays: tuple[Stay, ...]) -> History:
        """Sum up at the end."""
        self.until(now_s)
        return self.summed_up(
            stays=stays,
            refused=tuple(self._refused),
            gpu_seconds=GpuSeconds(
                present=self._present,
                held=self._held,
                useful=self._held - self._restart - self._lost,
                restart=self._restart,
                lost=self._lost,
                free=self._free_s,
                free_in_part=self._part,
                lent=self._lent,
            ),
            link_bytes=tuple(sorted(self._link_bytes.items())),
            num_suspensions=self.num_suspensions,
            num_failures=self._num_failures,
            end_s=now_s,
        )
