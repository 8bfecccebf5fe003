"""Admission by look-ahead: candidates are simulated to the end, and the best one decides."""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from des.base.checks import require_positive
from des.cluster.live_job import LiveJob
from des.cluster.policy import Admission, Policy, View
from des.cluster.running import run
from des.cluster.world import World
from des.plan.replacement import Replacement


@dataclass(slots=True, kw_only=True)
class LookAheadAdmission:
    """Admission that chooses among others, as the dynamic choice of Blox does.

    Every ``every_s`` each candidate is simulated, under a policy made by ``policy_with``, on the
    jobs that are in the cluster or wait outside, with what they still need and no further
    arrivals; the one with the least mean time to their ends decides until the next choice.
    """

    candidates: Mapping[str, Admission]
    policy_with: Callable[[Admission], Policy]
    every_s: float = 3600.0
    chosen: str = field(default="", init=False)
    _chosen_at_s: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        require_positive("admission by look-ahead", "every_s", self.every_s)
        if not self.candidates:
            raise ValueError("admission by look-ahead: candidates must be at least one, got none")

    def admit(self, view: View, arrived: deque[LiveJob]) -> list[LiveJob]:
        """Admit as the candidate does that is best now."""
        is_new_run = view.now_s < self._chosen_at_s
        if is_new_run or view.now_s - self._chosen_at_s >= self.every_s:
            self._chosen_at_s = view.now_s
            world = self._rest(view, arrived)
            self.chosen = min(
                self.candidates,
                key=lambda name: run(world, self.policy_with(self.candidates[name])).mean_jct_s,
            )
        return self.candidates[self.chosen].admit(view, arrived)

    def _rest(self, view: View, arrived: deque[LiveJob]) -> World:
        """World of now: every job with the service left, all at time 0."""
        jobs = [
            replace(job.job, arrival_s=0.0, service_s=max(job.left_by(view.now_s), 1e-9))
            for job in (*view.live_jobs(), *arrived)
        ]
        return World(
            nodes=view.free.nodes, jobs=tuple(jobs), replacement=Replacement(restart_s=0.0)
        )
