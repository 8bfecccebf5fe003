"""Plans that a watch could move to: those it knows, those a search finds, the same one re-bound."""

from contextlib import suppress
from dataclasses import dataclass, field, replace

from agents.decision.bound_plan import BoundPlan
from agents.decision.other_domains import plan_on_domains
from agents.judge.placed_plans import placed_on
from agents.search.bind import PlanBinder
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.search.sketches import sketch_of
from des import Topology

_MOST_PLANS = 5
"""Plans that are remembered, and judged at each observation."""


@dataclass(kw_only=True)
class OtherPlans:
    """Plans besides the one in force, on any of the worlds that there have been.

    Attributes
    ----------
    request
        Job and trainer; its world is replaced by the one that is looked at.
    plans
        Those remembered, the one used or found last at the end.
    """

    request: PlanRequest
    plans: list[BoundPlan] = field(default_factory=list)

    def remember(self, bound: BoundPlan) -> None:
        """Keep a plan, in place of the one that has not been used for longest."""
        same = [one for one in self.plans if is_same_plan(one, bound)]
        self.plans = [*(one for one in self.plans if one not in same), bound][-_MOST_PLANS:]

    def known(self, present: BoundPlan) -> list[BoundPlan]:
        """Remembered plans that can run on the world of the present one and exchange like it."""
        found = []
        for one in self.plans:
            if is_same_plan(one, present) or not _exchange_alike(one, present):
                continue
            with suppress(ValueError):
                found.append(placed_on(one, present.topology))
        return found

    def search(
        self, topology: Topology, present: BoundPlan | None, like: BoundPlan | None
    ) -> list[BoundPlan]:
        """Search, remember what is found, and return all plans known besides the present one.

        Parameters
        ----------
        like
            Plan whose way to keep copies in step is kept, as another one changes the training;
            None: any.

        Raises
        ------
        ValueError
            If no plan can run.
        """
        asked = replace(self.request, topology=topology)
        found = search_bound(asked, in_force=present, is_best_alone=True)
        rows = [row.bound for row in found.rows]
        alike = [one for one in rows if like is not None and _exchange_alike(one, like)]
        best = min(alike, key=lambda one: one.step_s) if alike else rows[0]
        if present is None:
            self.remember(best)
            return [best]
        if alike and not is_same_plan(best, present):
            self.remember(best)
        return self.known(present)

    def rebound(self, bound: BoundPlan, topology: Topology) -> BoundPlan | None:
        """Bind a plan anew inside its sites, whose layers stay; None where that cannot run."""
        plan = plan_on_domains(bound.plan, list(bound.topology.index_of), list(topology.index_of))
        if plan is None:
            return None
        binder = PlanBinder(
            topology=topology,
            workload=bound.workload,
            trainer=self.request.trainer,
            corrections=bound.corrections,
            model=self.request.job.model,
        )
        with suppress(ValueError):
            return binder.bind(sketch_of(plan))
        return None


def is_same_plan(one: BoundPlan, other: BoundPlan) -> bool:
    """Whether two bound plans are the same, whatever the worlds are that they stand on."""
    there = plan_on_domains(one.plan, list(one.topology.index_of), list(other.topology.index_of))
    return (one.workload, there) == (other.workload, other.plan)


def _exchange_alike(one: BoundPlan, other: BoundPlan) -> bool:
    return one.plan.synchronisation == other.plan.synchronisation
