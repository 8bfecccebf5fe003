"""Cases computed by Blox: a cluster, jobs, a policy, and the job times and rounds that came out."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from agents.cluster.admission import AcceptAll, LoadThreshold
from agents.cluster.placing import FirstFree
from agents.cluster.table import BLOX_ORDERINGS
from des.base.checks import require_known
from des.cluster.node_set import ClusterPlace, NodeSet
from des.cluster.policy import Policy
from des.cluster.queued_job import QueuedJob
from des.cluster.world import BloxRules, World
from scenarios.reproduce.cases import CasePart, existing_cases, read_form

NonNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class _Node(CasePart):
    gpus: Annotated[int, Field(gt=0)]
    joins_at_s: NonNegative = 0.0


class _ClusterForm(CasePart):
    nodes: Annotated[tuple[_Node, ...], Field(min_length=1)]


class _AdmissionForm(CasePart):
    kind: Literal["accept_all", "load_threshold"]
    threshold: Positive | None = None


class _PolicyForm(CasePart):
    scheduler: str
    admission: _AdmissionForm
    service_rate_multiplier: Positive = 1.0
    placement: str = "scattered"


class _Job(CasePart):
    id: Annotated[int, Field(ge=0)]
    arrival_s: NonNegative
    gpus: Annotated[int, Field(gt=0)]
    duration_s: Positive
    iteration_s: Positive = 1.0
    placement_preference: str | None = None


class ExpectedJob(CasePart):
    """Times of a job as Blox computed them; those that a case lacks are None."""

    id: int
    finish_s: float
    jct_s: float
    responsiveness_s: float
    admitted_s: float | None = None
    first_launch_s: float | None = None
    launches: int | None = None
    suspensions: int | None = None
    first_gpus: tuple[int, ...] | None = None


class ExpectedRound(CasePart):
    """State of a round as Blox counted it."""

    t_s: float
    total_jobs: int
    jobs_in_queue: int
    jobs_running: int
    free_gpus: int
    gpu_demand: int
    suspended: int
    launched: int


class _Expected(CasePart):
    avg_jct_s: float
    avg_responsiveness_s: float
    total_suspensions: int
    rounds_executed: int
    makespan_s: float
    jobs: Annotated[tuple[ExpectedJob, ...], Field(min_length=1)]
    series: tuple[ExpectedRound, ...] = ()


class BloxCase(CasePart):
    """A whole case."""

    name: str
    cluster: _ClusterForm
    round_s: Positive
    policy: _PolicyForm
    tracked_ids: Annotated[tuple[int, ...], Field(min_length=2, max_length=2)]
    jobs: Annotated[tuple[_Job, ...], Field(min_length=1)]
    expected: _Expected

    @field_validator("jobs")
    @classmethod
    def _have_own_ids(cls, jobs: tuple[_Job, ...]) -> tuple[_Job, ...]:
        (number, count), *_ = Counter(job.id for job in jobs).most_common(1)
        if count > 1:
            raise ValueError(f"id must be that of one job each, got {number} in {count}")
        return jobs

    def world(self, rules: BloxRules | None = None) -> World:
        """World of the case, under the rules of Blox or under some variant of them."""
        nodes = [
            ClusterPlace(name=f"n{number}", num_gpus=node.gpus, joins_at_s=node.joins_at_s)
            for number, node in enumerate(self.cluster.nodes)
        ]
        default = "consolidated" if self.policy.placement.startswith("consolidated") else ""
        jobs = [
            QueuedJob(
                job_id=job.id,
                arrival_s=job.arrival_s,
                num_gpus=job.gpus,
                service_s=job.duration_s,
                iteration_s=job.iteration_s,
                consolidated=(job.placement_preference or default) == "consolidated",
            )
            for job in self.jobs
        ]
        first, last = self.tracked_ids
        return World(
            nodes=NodeSet(nodes=tuple(nodes)),
            jobs=tuple(sorted(jobs, key=lambda job: (job.arrival_s, job.job_id))),
            tracked_ids=(first, last),
            round_s=self.round_s,
            blox=rules or BloxRules(rate=self.policy.service_rate_multiplier),
        )

    def scheduler(self) -> Policy:
        """Policy of the case.

        Raises
        ------
        ValueError
            If Blox has no scheduler of that name, or a threshold is missing.
        """
        name, admission = self.policy.scheduler, self.policy.admission
        require_known(f"case {self.name}: unknown scheduler", name, BLOX_ORDERINGS)
        if admission.kind == "load_threshold" and admission.threshold is None:
            raise ValueError(f"case {self.name}: threshold must be given, got none")
        return Policy(
            admission=AcceptAll()
            if admission.threshold is None or admission.kind == "accept_all"
            else LoadThreshold(threshold=admission.threshold),
            ordering=BLOX_ORDERINGS[name](),
            placing=FirstFree(),
        )


def read_blox_cases(folder: Path) -> dict[str, BloxCase]:
    """Read all cases of a folder, by the stems of their files.

    Raises
    ------
    UsageError
        If there is no such folder.
    ValueError
        If it holds no case, or one is wrong, naming file, field, what is allowed and what came.
    """
    paths = sorted(existing_cases(folder, kind="folder").glob("*.json"))
    if not paths:
        raise ValueError(f"{folder}: must hold cases (*.json), got none")
    return {path.stem: read_form(path, BloxCase) for path in paths}
