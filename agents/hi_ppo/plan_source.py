"""Interface of what a coordinator gets plans from."""

from typing import Protocol

from agents.decision.situation import Situation
from agents.judge.look_ahead import LookAhead, PlanJudge
from des import Corrections, Plan, Topology, Workload


class ProposedPlans(Protocol):
    """Plans proposed, those that matter most first."""

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Each once."""


class ProposesPlans(Protocol):
    """Proposes plans for a situation, such as `agents.hi_ppo.placement.proposals.Proposer`."""

    @property
    def look_ahead(self) -> LookAhead:
        """Look-ahead of a decision but the first."""

    @property
    def most_domains(self) -> int:
        """Largest number of domains that plans are proposed for."""

    def judge_of(
        self, workload: Workload, topology: Topology, corrections: Corrections
    ) -> PlanJudge:
        """Judge of a job's plans on networks of this number of domains, always the same one."""

    def propose(
        self,
        situation: Situation,
        *,
        look_ahead: LookAhead | None = None,
        num_plans: int = 8,
        seed: int = 0,
    ) -> ProposedPlans:
        """Propose plans; `InfeasiblePlacementError` where none fits."""
