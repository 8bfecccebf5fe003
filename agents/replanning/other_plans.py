"""Plans that a watch could move to: those it knows, those a search finds, the same one re-bound."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import fmean

from agents.decision.bound_plan import BoundPlan
from agents.decision.other_domains import plan_on_domains
from agents.judge.placed_plans import place_on
from agents.search.bind import PlanBinder
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.search.shared_parts import SharedParts
from agents.search.sketches import rebind_plan
from des import Topology

_FIRST_LASTING_S = 3600.0
"""Time that advantages last on average, before any were seen; an assumption. [s]"""

_FIRST_AHEAD_S = 360.0
"""Squares of shares times time that it counts as much as: 10 % for ten hours. [s]"""

_LEARN_AFTER_S = 3600.0
"""Time after which advantages are compared with those of before: in a shorter one errors of
measurements look like advantages that fade. [s]"""

_MOST_FADED = 0.95
"""Share of advantages that has faded after that time at most."""

_MOST_PLANS = 8
"""Plans that are remembered, and judged time and again."""


@dataclass(frozen=True, kw_only=True)
class RememberedPlan:
    """A plan that a watch remembers.

    Attributes
    ----------
    step_s
        Its step when it was judged last; None where it could not run. [s]
    before_s
        Its step when advantages were compared last; None where it was not known. [s]
    lost_s
        Time that staying has lost against it since it became the better one, at least 0. [s]
    """

    bound: BoundPlan
    step_s: float | None = None
    before_s: float | None = None
    lost_s: float = 0.0

    @property
    def figures(self) -> dict[str, float | None]:
        """All but the plan."""
        return {"step_s": self.step_s, "before_s": self.before_s, "lost_s": self.lost_s}


@dataclass(kw_only=True)
class OtherPlans:
    """Plans besides the one in force, on any of the worlds that there have been.

    Attributes
    ----------
    request
        Job and trainer; its world is replaced by the one that is looked at.
    plans
        Those remembered, that in force too. In place of a new one too many the first is forgotten;
        the quickest and the one in force are the last.
    ahead_s, faded
        Squares of the shares by which one remembered plan was quicker than another, times their
        time, and shares times that by which they have become smaller in it, means over the pairs: a
        regression of the later share on the former. [s, 1]
    unlearnt_s
        Time since advantages were compared last. [s]
    """

    request: PlanRequest
    plans: list[RememberedPlan] = field(default_factory=list)
    ahead_s: float = 0.0
    faded: float = 0.0
    unlearnt_s: float = 0.0
    _shared: SharedParts = field(default_factory=SharedParts, repr=False, compare=False)

    @property
    def learnt(self) -> dict[str, float]:
        """Figures of advantages, by the names of their fields."""
        return {"ahead_s": self.ahead_s, "faded": self.faded, "unlearnt_s": self.unlearnt_s}

    def remember(self, bound: BoundPlan) -> None:
        """Keep a plan as the last one."""
        others, found = [], RememberedPlan(bound=bound)
        for one in self.plans:
            if is_same_plan(one.bound, bound):
                found = one
            else:
                others.append(one)
        self.plans = [*others[1 - _MOST_PLANS :], found]

    def put_in_force(self, bound: BoundPlan) -> None:
        """Keep a plan as the last one; against it nothing is lost yet."""
        self.remember(bound)
        self.plans = [replace(one, lost_s=0.0) for one in self.plans]

    def judge(self, present: BoundPlan, passed_s: float) -> list[RememberedPlan]:
        """Judge the plans on the world of the present one; return those that may take its place.

        Those that cannot run, or exchange in another way, are left out of the answer.
        """
        own_s = next((one.step_s for one in self.plans if is_same_plan(one.bound, present)), None)
        placed = [self._placed(one.bound, present) for one in self.plans]
        now = [None if one is None else one.step_s for one in placed]
        self._learn(now, passed_s)
        shares = [1.0 - one.step_s / own_s if one.step_s and own_s else 0.0 for one in self.plans]
        self.plans = [
            replace(one, step_s=step_s, lost_s=max(0.0, one.lost_s + passed_s * share))
            for one, step_s, share in zip(self.plans, now, shares, strict=True)
        ]
        found = [
            replace(known, bound=one)
            for known, one in zip(self.plans, placed, strict=True)
            if one is not None and one is not present
        ]
        self.remember(min((present, *(one.bound for one in found)), key=lambda one: one.step_s))
        self.remember(present)
        return found

    def _placed(self, bound: BoundPlan, present: BoundPlan) -> BoundPlan | None:
        if is_same_plan(bound, present):
            return present
        if _exchange_alike(bound, present):
            with suppress(ValueError):
                return place_on(bound, present.topology)
        return None

    def _learn(self, now: Sequence[float | None], passed_s: float) -> None:
        """Learn from each pair of plans how much of an advantage is left after some time.

        Not from what was before a gap in which nothing was judged.
        """
        self.unlearnt_s += passed_s
        if self.unlearnt_s < _LEARN_AFTER_S:
            return
        before = [one.before_s for one in self.plans]
        pairs = [
            (1.0 - quick / slow, 1.0 - later_quick / later_slow)
            for quick, later_quick in zip(before, now, strict=True)
            for slow, later_slow in zip(before, now, strict=True)
            if quick and slow and later_quick and later_slow and quick < slow
        ]
        if pairs and self.unlearnt_s < 2.0 * _LEARN_AFTER_S:
            self.ahead_s += self.unlearnt_s * fmean(share**2 for share, _ in pairs)
            self.faded += fmean(share * (share - later) for share, later in pairs)
        self.plans = [
            replace(one, before_s=step_s) for one, step_s in zip(self.plans, now, strict=True)
        ]
        self.unlearnt_s = 0.0

    @property
    def fades_per_s(self) -> float:
        """Rate at which advantages fade.

        Notes
        -----
        After an hour ``h`` the share ``f = h (faded + known) / (ahead_s + 360 s)`` has faded, at
        most 0.95, where ``known`` is what makes the rate one an hour before anything was seen. The
        rate is ``-ln(1 - f) / h``.
        """
        known = -_FIRST_AHEAD_S / _LEARN_AFTER_S * math.expm1(-_LEARN_AFTER_S / _FIRST_LASTING_S)
        lost = _LEARN_AFTER_S * (max(self.faded, 0.0) + known) / (self.ahead_s + _FIRST_AHEAD_S)
        return -math.log1p(-min(lost, _MOST_FADED)) / _LEARN_AFTER_S

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
        found = search_bound(asked, in_force=present, shared=self._shared, is_best_alone=True)
        rows = [row.bound for row in found.rows]
        alike = [one for one in rows if like is not None and _exchange_alike(one, like)]
        best = min(alike, key=lambda one: one.step_s) if alike else rows[0]
        if present is None or alike:
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
        return rebind_plan(binder, plan)


def is_same_plan(one: BoundPlan, other: BoundPlan) -> bool:
    """Whether two bound plans are the same, even if their worlds differ."""
    there = plan_on_domains(one.plan, list(one.topology.index_of), list(other.topology.index_of))
    return (one.workload, there) == (other.workload, other.plan)


def _exchange_alike(one: BoundPlan, other: BoundPlan) -> bool:
    return one.plan.synchronisation == other.plan.synchronisation
