"""Facts of the answer of the whole decision, which its page and its document show."""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.answer.change import PlanChange
from agents.answer.inside_domains import InsideDomains
from agents.answer.question import Question
from agents.answer.rows import FamilyRow
from agents.answer.takeovers import Takeover
from agents.decision.families import Family
from agents.hi_ppo.explanation import Explanation
from agents.planners.bounds.step_bound import StepBound


@dataclass(frozen=True, kw_only=True)
class AnswerFacts:
    """A decision over all families allowed.

    Attributes
    ----------
    best
        Plan that reaches a loss first, at the prices in tokens.
    best_at_par
        The same if no plan needed more tokens than unchanged training.
    rows
        Best plan of each family that fits somewhere.
    misfits
        What the families that fit nowhere lack at least.
    change
        Change from the plan in force; None where there is none.
    candidates
        The plan in force, if it fits, and the ``rows`` that its layers can be sent to: what
        ``takeovers`` number.
    takeovers
        Nearest bandwidths at which another candidate is the best.
    bound
        Time that no plan of the space has a shorter step than; None where the proof does not cover
        the question, and ``why_no_bound`` says why.
    inside
        Parallelism and GPUs inside the domains; None where they are left open, and
        ``why_not_inside`` gives the reason, if the local level was wanted.
    """

    question: Question
    best: FamilyRow
    best_at_par: FamilyRow
    rows: tuple[FamilyRow, ...]
    misfits: Mapping[Family, str]
    change: PlanChange | None
    candidates: tuple[FamilyRow, ...]
    takeovers: tuple[Takeover, ...]
    inside: InsideDomains | None
    why_not_inside: str
    bound: StepBound | None
    why_no_bound: str
    explanation: Explanation | None
    num_judged: int

    @property
    def step_s(self) -> float:
        """Time of a mean step of the best plan. [s]"""
        return self.best.step_s

    @property
    def tokens_per_s(self) -> float:
        """Tokens that the best plan trains a second."""
        return self.best.judged.tokens_per_s

    @property
    def bottleneck(self) -> tuple[str, float]:
        """Domain or link that is busy longest under the best plan, and its share of a step."""
        name, busy_s = max(self.best.use.busy_s.items(), key=lambda one: one[1])
        return name, busy_s / self.step_s
