"""A whole decision: a job on a network, the plans allowed, and a plan that was judged."""

from dataclasses import dataclass, field
from functools import cached_property

from agents.decision.families import Family, family_of
from agents.decision.plan_space import PlanSpace
from agents.decision.problem import require_planned_domains
from agents.decision.training_job import TrainingJob
from des import (
    NO_CORRECTIONS,
    Corrections,
    Plan,
    Topology,
    Workload,
)


@dataclass(frozen=True, kw_only=True)
class WholeProblem:
    """One decision over all families of plans.

    Attributes
    ----------
    topology
        Links standing still at their present figures; speeds of the domains under their load.
    """

    topology: Topology
    job: TrainingJob
    space: PlanSpace = field(default_factory=PlanSpace)
    corrections: Corrections = NO_CORRECTIONS

    def __post_init__(self) -> None:
        if self.topology.movement is not None:
            raise ValueError("whole problem: topology must stand still; give topology.at_start()")
        require_planned_domains("whole problem", self.topology)
        if not self.job.sizes_among(self.space.microbatch_sizes):
            allowed = ", ".join(map(str, self.space.microbatch_sizes))
            raise ValueError(
                f"whole problem: one of the microbatch_sizes {allowed} must divide the "
                f"{self.job.num_sequences} sequences of a step, got none that does"
            )

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """The step in microbatches of every size allowed."""
        return tuple(
            self.job.workload(size) for size in self.job.sizes_among(self.space.microbatch_sizes)
        )


@dataclass(frozen=True, kw_only=True)
class JudgedPlan:
    """A plan of the job in microbatches of one size, and the time of its step.

    Attributes
    ----------
    step_s
        Time of a step, mean over a period of the synchronisation. [s]
    """

    workload: Workload
    plan: Plan
    step_s: float

    @property
    def family(self) -> Family:
        """Kind of the plan."""
        return family_of(self.plan)

    @property
    def tokens_per_s(self) -> float:
        """Tokens trained a second."""
        return self.workload.tokens_per_iteration / self.step_s
