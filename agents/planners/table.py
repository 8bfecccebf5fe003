"""Table of all planners: one row makes a planner known to every command."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from agents.decision.problem import Planner, PlanningProblem
from agents.planners.choice.depth import with_best_depth
from agents.planners.dtfm.dtfm import dtfm
from agents.planners.exact.cp_sat import cp_sat
from agents.planners.exact.exact import exact
from agents.planners.names import PLANNERS_GROUP
from agents.planners.rules.atlas import atlas
from agents.planners.rules.crosspipe import crosspipe
from agents.planners.rules.data_parallel import data_parallel
from agents.planners.rules.diloco import diloco, streaming_diloco
from agents.planners.rules.formula import formula
from agents.planners.rules.mast import mast
from agents.planners.rules.megatron import megatron
from agents.planners.rules.single_domain import single_domain
from agents.planners.rules.static import proportional, random, round_robin, uniform
from agents.planners.rules.zero import zero1, zero3
from agents.planners.sailor.sailor import sailor, sailor_overlapped, sailor_with_parallelism
from agents.planners.search.families import best_of_families
from agents.planners.search.search import search_planner
from des import Plan
from des.base.offers import OfferedRows

PlanKind = Literal["placement", "pipeline", "plan"]
"""Output of a planner: the domain of every layer; the schedule as well; or a whole plan,
which may have replicas, parallelism and other ways to exchange gradients."""

PlannerCost = Literal["milliseconds", "seconds"]
"""Time of a decision on worlds of a few domains: of a rule, or of a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerRow:
    """A planner with what commands need to know of it; a planner itself.

    Attributes
    ----------
    is_reference
        Whether training judges its policy against the planner by default.
    groups_microbatches
        Whether the planner, as published, chooses the size of microbatches as well; see
        `agents.planners.choice.microbatches`.
    most_domains
        Domains of the largest world on which a decision takes less than half a minute; None: any.
    """

    name: str
    planner: Planner
    kind: PlanKind
    cost: PlannerCost = "milliseconds"
    is_reference: bool = False
    groups_microbatches: bool = False
    most_domains: int | None = None

    def __call__(self, problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        """Return the plan of the planner."""
        return self.planner(problem, rng)

    @property
    def over_depths(self) -> Planner:
        """The planner with the best of all schedules: those of seconds choose it by themselves."""
        return with_best_depth(self.planner) if self.cost == "milliseconds" else self.planner


def _row(
    planner: Planner,
    kind: PlanKind,
    cost: PlannerCost = "milliseconds",
    *,
    is_reference: bool = False,
    groups_microbatches: bool = False,
    most_domains: int | None = None,
    name: str = "",
) -> PlannerRow:
    return PlannerRow(
        name=name or planner.__name__,
        planner=planner,
        kind=kind,
        cost=cost,
        is_reference=is_reference,
        groups_microbatches=groups_microbatches,
        most_domains=most_domains,
    )


_ROWS = (
    _row(exact, "placement", is_reference=True),
    _row(uniform, "placement", is_reference=True),
    _row(proportional, "placement", is_reference=True),
    _row(round_robin, "placement", is_reference=True),
    _row(random, "placement", is_reference=True),
    _row(single_domain, "placement", is_reference=True),
    _row(data_parallel, "plan"),
    _row(megatron, "plan"),
    _row(zero1, "plan"),
    _row(zero3, "plan"),
    _row(diloco, "plan"),
    _row(streaming_diloco, "plan"),
    _row(mast, "pipeline"),
    _row(atlas, "plan", most_domains=16),
    _row(formula, "placement"),
    _row(sailor, "pipeline", "seconds", most_domains=10),
    _row(sailor_overlapped, "pipeline", "seconds", most_domains=10),
    _row(sailor_with_parallelism, "plan", "seconds", groups_microbatches=True, most_domains=10),
    _row(dtfm, "pipeline", "seconds", most_domains=10),
    _row(crosspipe, "plan", "seconds", most_domains=10),
    _row(cp_sat, "pipeline", "seconds", most_domains=10),
    _row(search_planner, "pipeline", "seconds", most_domains=10, name="search"),
    _row(best_of_families, "plan", "seconds", groups_microbatches=True, name="decide"),
)


def _planner_offered(name: str, loaded: object) -> PlannerRow:
    """Row of a planner of another package: its own row, or one for its function."""
    if isinstance(loaded, PlannerRow):
        return replace(loaded, name=name)
    if not callable(loaded):
        raise ValueError(f"planner {name}: must be a function of a problem and a generator")
    return PlannerRow(name=name, planner=loaded, kind="plan")


PLANNERS: Mapping[str, PlannerRow] = OfferedRows(
    {row.name: row for row in _ROWS}, PLANNERS_GROUP, _planner_offered
)
"""All planners by the name that users write.

Other packages add theirs by entry points of the group ``eastwest.planners``.

`crosspipe` makes a schedule of its own, of halved backward passes, which no other may choose.
"""


def reference_planners() -> dict[str, PlannerRow]:
    """Return the planners of a placement that training judges its policy against by default."""
    return {name: row for name, row in PLANNERS.items() if row.is_reference}


def quick_planners() -> dict[str, PlannerRow]:
    """Return the planners of milliseconds, those of whole plans too."""
    return {name: row for name, row in PLANNERS.items() if row.cost == "milliseconds"}
