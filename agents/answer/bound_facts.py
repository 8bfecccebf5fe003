"""Facts of an answer with a bound plan, which its page and its document show."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agents.answer.sureness import Sureness
from agents.answer.transport_times import TransportTimes
from agents.answer.whole_run import WholeRun
from agents.decision.bound_plan import BoundPlan
from agents.replanning.move_cost import MoveCost
from agents.search.bound_rows import BoundRow
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest

Decider = Literal["search", "hi_ppo"]
"""The search of bound plans, or the policies of Hi-PPO, whose proposals are bound."""


@dataclass(frozen=True, kw_only=True)
class OtherTrainer:
    """Best plan of another trainer for the same job; ``row`` is None where nothing fits."""

    title: str
    row: BoundRow | None
    misfit: str = ""


@dataclass(frozen=True, kw_only=True)
class BoundChange:
    """Change from a bound plan in force.

    Attributes
    ----------
    present
        The plan in force on the network as it is; None where it cannot run, and ``misfit`` says
        why.
    cost
        Cost of the change; None where a layer would have to go where no links lead.
    """

    in_force: BoundPlan
    present: BoundPlan | None
    cost: MoveCost | None
    misfit: str = ""

    @property
    def present_s(self) -> float | None:
        """Time of a step of the plan in force on the network as it is. [s]"""
        return None if self.present is None else self.present.step_s

    @property
    def num_bytes(self) -> float:
        """Model state that the sites of the answer lack. [bytes]"""
        return 0.0 if self.cost is None else self.cost.num_bytes

    @property
    def change_s(self) -> float:
        """Time for which the training stands still; 0 where the plan stays. [s]"""
        return math.inf if self.cost is None else self.cost.total_s


@dataclass(frozen=True, kw_only=True)
class BoundFacts:
    """A bound plan for a job on a network, its rivals, and what else was found.

    Attributes
    ----------
    rows
        The best plan, then the best one of every other kind.
    bound_s
        Time below which no plan of the trainer can be with the settings that are searched. [s]
    conditional
        Quicker plans whose price in tokens is beyond what is published, the best of each kind.
    sureness
        Answers where one thing is otherwise; None where they were not asked for.
    transport
        Times over NCCL's sockets, or torch's gloo; None where nothing leaves a site.
    run
        The whole run under the plan; None where its tokens are not known.
    rows_of
        Rows that each decider found alone, its best first.
    """

    request: PlanRequest
    objective: PlanObjective
    rows: tuple[BoundRow, ...]
    others: tuple[OtherTrainer, ...]
    num_judged: int
    bound_s: float
    change: BoundChange | None = None
    notes: tuple[str, ...] = ()
    conditional: tuple[BoundRow, ...] = ()
    sureness: Sureness | None = None
    transport: TransportTimes | None = None
    run: WholeRun | None = None
    rows_of: Mapping[Decider, tuple[BoundRow, ...]] = field(default_factory=dict)

    @property
    def best(self) -> BoundRow:
        """The plan that answers."""
        return self.rows[0]

    @property
    def step_s(self) -> float:
        """Time of a step of the plan. [s]"""
        return self.best.bound.step_s

    @property
    def over_bound(self) -> float:
        """Share by which a step is longer than the bound."""
        return self.step_s / self.bound_s - 1.0

    def decided_by(self, row: BoundRow) -> str:
        """Decider that found one of the rows; of equal plans that which comes first, the search."""
        return next(name for name, rows in self.rows_of.items() if any(own is row for own in rows))
