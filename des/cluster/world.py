"""World of a queue: nodes, jobs in order of arrival, and the rules of time and of failures."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from des.base.checks import require_count, require_non_negative, require_positive
from des.cluster.node_set import NodeChange, NodeSet, check_changes
from des.cluster.queued_job import QueuedJob
from des.dynamics.law import Law
from des.plan.replacement import Replacement


@dataclass(frozen=True, slots=True, kw_only=True)
class BloxRules:
    """Rules of time and placement of Blox (EuroSys'24).

    Attributes
    ----------
    rate
        Service of a running job per second.
    takes_exactly
        Its first accident: GPUs are taken node by node, all free ones of each, and the placement
        fails unless this makes exactly the number needed.
    keeps_vain
        Its second accident: suspensions that did not help stay.
    starves_after_s
        Time without running, the round that suspends it left out, after which a job goes before all
        others, for ever. [s]
    """

    rate: float = 1.0
    takes_exactly: bool = True
    keeps_vain: bool = True
    starves_after_s: float = 3_600_000.0

    def __post_init__(self) -> None:
        require_positive("blox rules", "rate", self.rate)
        require_positive("blox rules", "starves_after_s", self.starves_after_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A cluster and the jobs that arrive there.

    Attributes
    ----------
    jobs
        Jobs in order of arrival; may be an endless or a lazy one that can be gone through again.
    tracked_ids
        First and last number of the jobs that are recorded; the run ends when the last of them
        has. None: all jobs, which must then end.
    round_s
        Decisions are made at multiples of it only; 0: at every event. [s]
    blox
        Rules of Blox in place of the engine's own, with rounds of ``round_s``.
    changes, failures
        Nodes that come and go at given times; a law whose states with a factor of 0 are failures.
    replacement
        Cost of a launch after a suspension.
    checkpoint_every_s
        Service between checkpoints; a suspension makes one, too. [s]
    keeps_stays
        Whether the history has the stays of tracked jobs on nodes.
    too_wide
        Whether jobs wider than the cluster ever is are refused with an error or counted.
    until_s
        End of the run in any case. [s]
    """

    nodes: NodeSet
    jobs: Iterable[QueuedJob]
    tracked_ids: tuple[int, int] | None = None
    round_s: float = 0.0
    blox: BloxRules | None = None
    changes: tuple[NodeChange, ...] = ()
    failures: Law | None = None
    replacement: Replacement = field(default_factory=Replacement)
    checkpoint_every_s: float = math.inf
    keeps_stays: bool = False
    too_wide: Literal["refuse", "count"] = "refuse"
    until_s: float = math.inf

    def __post_init__(self) -> None:
        require_non_negative("cluster world", "round_s", self.round_s)
        check_changes(self.nodes, self.changes)
        if self.blox is not None:
            require_positive("cluster world under rules of Blox", "round_s", self.round_s)
            if self.changes or self.failures is not None:
                raise ValueError(
                    "cluster world: changes and failures must be none under the rules of Blox"
                )
        if not self.checkpoint_every_s > 0:
            raise ValueError(
                f"cluster world: checkpoint_every_s must be positive, "
                f"got {self.checkpoint_every_s!r}"
            )
        if not self.until_s > 0:
            raise ValueError(f"cluster world: until_s must be positive, got {self.until_s!r}")
        if self.tracked_ids is not None:
            first, last = self.tracked_ids
            if first < 0 or last < first:
                raise ValueError(
                    "cluster world: tracked_ids must be a first and a last number, "
                    f"got {first} and {last}"
                )
            require_count("cluster world", "tracked jobs", last - first + 1)

    def arrivals(self) -> Iterator[QueuedJob]:
        """Jobs as they arrive, checked on the way.

        Raises
        ------
        ValueError
            If a job arrives before the one ahead of it.
        """
        before_s = 0.0
        for job in self.jobs:
            if job.arrival_s < before_s:
                raise ValueError(
                    f"job {job.job_id}: arrival_s must be at least that of the job before it, "
                    f"{before_s!r}, got {job.arrival_s!r}"
                )
            before_s = job.arrival_s
            yield job

    def is_tracked(self, job_id: int) -> bool:
        """Whether a job is recorded."""
        return self.tracked_ids is None or self.tracked_ids[0] <= job_id <= self.tracked_ids[1]
