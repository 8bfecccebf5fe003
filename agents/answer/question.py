"""Question that an answer is for: the job on the network, the plan in force and what counts."""

from dataclasses import dataclass, replace
from functools import cached_property

from agents.decision.families import SYNCHRONOUS
from agents.decision.situation import TIME_ONLY, Preference, Situation
from agents.decision.token_prices import require_token_factor
from agents.decision.whole_plan import WholeProblem
from des import Plan, Topology, Workload
from des.plan.replacement import Replacement
from des.world.domain_load import DomainLoad

UNLESS_GIVEN = Replacement()
"""Cost of a change of plan: a restart, and the bytes that are missing."""


@dataclass(frozen=True, kw_only=True)
class PlanInForce:
    """The plan by which the training runs, and the microbatches that it runs with."""

    workload: Workload
    plan: Plan


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question to the whole decision.

    Attributes
    ----------
    problem
        With what ``loads`` leave of the domains.
    bare
        The network before the loads.
    base
        The network at base figures, for the trained policies; None: as it is now.
    loads
        One a domain; none given means that no other jobs are known.
    token_factor
        Price in tokens of every plan that changes the training, at least 1; None: published ones.
    most_slowdown
        No plan is taken whose step is longer, by more than this share, than the shortest.
    max_judged
        See `agents.planners.whole.search_whole.search_whole`; None: its own budget.
    notes
        Sentences of the reader, such as on rounded tokens.
    """

    problem: WholeProblem
    bare: Topology
    base: Topology | None = None
    loads: tuple[DomainLoad, ...] = ()
    in_force: PlanInForce | None = None
    replacement: Replacement = UNLESS_GIVEN
    token_factor: float | None = None
    most_slowdown: float | None = None
    max_judged: int | None = None
    epoch_s: float = 300.0
    iterations_per_epoch: int = 10
    preference: Preference = TIME_ONLY
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        space = self.problem.space
        if self.token_factor is not None:
            require_token_factor("question", self.token_factor)
            if set(space.families) <= set(SYNCHRONOUS) and space.compressions == (1.0,):
                raise ValueError(
                    "question: token_factor must be left out where no family changes the "
                    f"training, got {self.token_factor!r} for {', '.join(space.families)}"
                )
        slowdown = self.most_slowdown
        if slowdown is not None and not 0.0 < slowdown < float("inf"):
            raise ValueError(
                f"question: most_slowdown must be positive and finite, or None; got {slowdown!r}"
            )
        if self.in_force is not None:
            self.in_force.plan.check_against(self.bare, self.in_force.workload)

    @cached_property
    def domain_names(self) -> tuple[str, ...]:
        """Names of the domains by their position."""
        return tuple(domain.name for domain in self.bare.domains)

    def situation(self, workload: Workload) -> Situation:
        """Return the question as the trained policies see it, for a grouping of the step."""
        in_force = self.in_force
        is_pipeline = in_force is not None and not in_force.plan.replicas
        domains = tuple(
            replace(bare, attainable_fraction=left.attainable_fraction)
            for bare, left in zip(self.bare.domains, self.problem.topology.domains, strict=True)
        )
        return Situation(
            topology=replace(self.bare, domains=domains),
            base=self.base or self.bare,
            workload=workload,
            epoch=0,
            epoch_s=self.epoch_s,
            iterations_per_epoch=self.iterations_per_epoch,
            replacement=self.replacement,
            last_plan=in_force.plan if in_force is not None and is_pipeline else None,
            loads=self.loads,
            preference=self.preference,
            corrections=self.problem.corrections,
        )
