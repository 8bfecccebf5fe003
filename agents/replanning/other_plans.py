"""Plans that a watch could move to: those it knows, those a search finds, the same one re-bound."""

import math
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

_PRIOR_S = 36.0
"""Squares of shares times time from which on they tell how long advantages last: 10 % for an hour.
[s]"""

_MOST_PLANS = 5
"""Plans that are remembered, and judged time and again."""


@dataclass(frozen=True, kw_only=True)
class OtherPlan:
    """A plan besides the one in force.

    Attributes
    ----------
    lost_s
        Time that staying has lost against it since it became the better one, at least 0. [s]
    saved_share
        Share of the time that it would have saved when it was judged last.
    """

    bound: BoundPlan
    lost_s: float = 0.0
    saved_share: float = 0.0


@dataclass(kw_only=True)
class OtherPlans:
    """Plans besides the one in force, on any of the worlds that there have been.

    Attributes
    ----------
    request
        Job and trainer; its world is replaced by the one that is looked at.
    plans
        Those remembered; in place of a new one too many, that against which staying loses least is
        forgotten, the oldest of equals.
    ahead_s, faded
        Squares of the shares that better plans would have saved, times their time, and shares times
        that by which they have become smaller in it: a regression of the later share on the former.
        [s, 1]
    """

    request: PlanRequest
    plans: list[OtherPlan] = field(default_factory=list)
    ahead_s: float = 0.0
    faded: float = 0.0

    def remember(self, bound: BoundPlan) -> None:
        """Keep a plan, unless it is kept."""
        if any(is_same_plan(one.bound, bound) for one in self.plans):
            return
        if len(self.plans) == _MOST_PLANS:
            self.plans.remove(min(self.plans, key=lambda one: one.lost_s))
        self.plans.append(OtherPlan(bound=bound))

    def begin(self, left: BoundPlan | None, in_force: BoundPlan) -> None:
        """Remember the plan that was left; against another one nothing is lost yet."""
        self.plans = [
            OtherPlan(bound=one.bound)
            for one in self.plans
            if not is_same_plan(one.bound, in_force)
        ]
        if left is not None:
            self.remember(left)

    def judge(self, present: BoundPlan, passed_s: float) -> list[OtherPlan]:
        """Judge the plans on the world of the present one, and what was lost in the meantime.

        Those that cannot run, or exchange in another way, are left out of the answer.
        """
        found = []
        for place, one in enumerate(self.plans):
            if is_same_plan(one.bound, present) or not _exchange_alike(one.bound, present):
                continue
            with suppress(ValueError):
                placed = placed_on(one.bound, present.topology)
                lost_s = max(0.0, one.lost_s + passed_s * one.saved_share)
                share = 1.0 - placed.step_s / present.step_s
                if one.saved_share > 0.0 and passed_s > 0.0:
                    self.ahead_s += passed_s * one.saved_share**2
                    self.faded += one.saved_share * (one.saved_share - share)
                now = OtherPlan(bound=placed, lost_s=lost_s, saved_share=share)
                self.plans[place] = replace(now, bound=one.bound)
                found.append(now)
        return found

    def lasting_s(self, horizon_s: float) -> float:
        """Time for which a plan that is better now may be counted on to stay so. [s]

        The mean of an advantage that fades at the rate ``faded / ahead_s`` of those there have
        been, over the horizon, in terms of the one now; before there were any, the horizon.

        Notes
        -----
        ``(1 - exp(-h q)) / q`` with the rate ``q = max(faded, 0) / (ahead_s + 36 s)``.
        """
        rate = max(self.faded, 0.0) / (self.ahead_s + _PRIOR_S)
        if rate * horizon_s < 1e-9:
            return horizon_s
        return -math.expm1(-horizon_s * rate) / rate

    def search(
        self, topology: Topology, present: BoundPlan | None, like: BoundPlan | None
    ) -> BoundPlan:
        """Search, remember what is found, and return it.

        Parameters
        ----------
        like
            Plan whose way to keep copies in step is kept, as another one changes the training;
            None, or where no plan has it: any.

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
        if present is None or (alike and not is_same_plan(best, present)):
            self.remember(best)
        return best

    def rebound(self, bound: BoundPlan, topology: Topology) -> BoundPlan | None:
        """Bind a plan again inside its sites, whose layers stay; None where that cannot run."""
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
    """Whether two bound plans are the same, even if their worlds differ."""
    there = plan_on_domains(one.plan, list(one.topology.index_of), list(other.topology.index_of))
    return (one.workload, there) == (other.workload, other.plan)


def _exchange_alike(one: BoundPlan, other: BoundPlan) -> bool:
    return one.plan.synchronisation == other.plan.synchronisation
