"""A watch over one job: observations come, and each gets a verdict on the plan in force."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import read_document, write_document
from agents.judge.placed_plans import place_on
from agents.replanning.lasting_sites import lasting_sites
from agents.replanning.move_cost import NO_MOVE, MoveCost, reachable_move
from agents.replanning.observed_world import ObservedWorld, Taken, WorldObservation
from agents.replanning.other_plans import OtherPlans, RememberedPlan
from agents.replanning.search_triggers import LastSearch, SearchTriggers
from agents.replanning.stay_or_move import PayoffRule, Stakes, saved_s, short_time, weigh_move
from agents.trainers.plan_checks import domains_in_use
from des import Topology
from des.plan.replacement import Replacement

Action = Literal["first", "stay", "move", "rebind", "wait"]
"""A first plan, the same one, another, the same layers on other GPUs; or nothing can run."""

_JUDGE_EVERY_S = 300.0
"""Time between judgements of other plans, where nothing calls for a search. [s]"""

_NUM_DRAWS = 8
"""Worlds drawn by the spread of measurements before a move."""


@dataclass(frozen=True, kw_only=True)
class WatchVerdict:
    """Decision after an observation, and why.

    Attributes
    ----------
    plan
        The plan in force from now on, on the world as it is; None where none can run.
    present_s
        Time of a step of the plan in force until now; None where it cannot run. [s]
    cost
        Cost of the change.
    searched
        Why plans were searched; empty: they were not.
    """

    time_s: float
    action: Action
    plan: BoundPlan | None
    why: str
    present_s: float | None = None
    cost: MoveCost = NO_MOVE
    searched: str = ""


@dataclass(kw_only=True)
class Watch:
    """Watches a job: keeps the world as it was observed, the plan in force, and other plans.

    A plan that cannot run is left at once. GPUs and loads that change re-bind the plan inside its
    sites first. The plan in force is judged at every observation, other plans that are known every
    `_JUDGE_EVERY_S`; a search finds more where `SearchTriggers` say so. `weigh_move` takes moves.

    Attributes
    ----------
    replacement
        Cost of a move; None: as assumed, until restarts are measured.
    judged_s
        Time at which other plans were judged last. [s]
    insides
        GPUs and loads of sites when the plan in force was last bound.
    """

    world: ObservedWorld
    others: OtherPlans
    rule: PayoffRule = field(default_factory=PayoffRule)
    triggers: SearchTriggers = field(default_factory=SearchTriggers)
    replacement: Replacement | None = None
    in_force: BoundPlan | None = None
    time_s: float = 0.0
    judged_s: float = 0.0
    searched: LastSearch | None = None
    insides: dict[str, tuple[float, ...]] = field(default_factory=dict)
    _documents: list[tuple[BoundPlan, dict[str, object]]] = field(
        default_factory=list, repr=False, compare=False
    )

    def take(self, seen: WorldObservation) -> Taken:
        """Take an observation without a verdict.

        Raises
        ------
        ValueError
            If the world does not know its link or site.
        """
        return self.world.take(seen)

    def decide(self, time_s: float) -> WatchVerdict:
        """Return the verdict on the world as it is known, and take it.

        Parameters
        ----------
        time_s
            The present, since 1970; a clock that runs backwards stands still. [s]
        """
        self.time_s = max(time_s, self.time_s)
        verdict = self._verdict()
        if verdict.action == "stay" or verdict.plan is None:
            return verdict
        self.others.put_in_force(verdict.plan)
        self.in_force, self.judged_s = verdict.plan, self.time_s
        self.insides = self.world.insides()
        return verdict

    def plain(self) -> dict[str, object]:
        """Return all that the watch knows as plain values, of which `with_plain` makes it again."""
        return {
            "world": self.world.plain(),
            "in_force": None if self.in_force is None else self._document(self.in_force),
            "others": [
                {**one.figures, "bound": self._document(one.bound)} for one in self.others.plans
            ],
            "learnt": self.others.learnt,
            "time_s": self.time_s,
            "judged_s": self.judged_s,
            "searched": None if self.searched is None else self.searched.plain(),
            "insides": {name: list(own) for name, own in self.insides.items()},
        }

    def _document(self, bound: BoundPlan) -> dict[str, object]:
        """Document of a plan, made once."""
        for one, document in self._documents:
            if one is bound:
                return document
        kept = [self.in_force, *(one.bound for one in self.others.plans)]
        self._documents = [one for one in self._documents if any(one[0] is own for own in kept)]
        self._documents.append((bound, write_document(bound)))
        return self._documents[-1][1]

    def with_plain(self, content: Mapping[str, Any]) -> "Watch":
        """Return the watch with what `plain` returned."""
        own, searched = content["in_force"], content["searched"]
        plans = [
            RememberedPlan(**{**one, "bound": read_document(one["bound"])})
            for one in content["others"]
        ]
        return replace(
            self,
            world=self.world.with_plain(content["world"]),
            others=replace(self.others, plans=plans, **content["learnt"]),
            in_force=None if own is None else read_document(own),
            time_s=content["time_s"],
            judged_s=content["judged_s"],
            searched=None if searched is None else LastSearch.of_plain(searched),
            insides={name: tuple(one) for name, one in content["insides"].items()},
        )

    def _verdict(self) -> WatchVerdict:
        topology, reason = self.world.topology(), "a first plan"
        if topology is None:
            return self._waits("no site is there")
        if self.in_force is not None:
            try:
                present = place_on(self.in_force, topology)
            except ValueError as error:
                reason = f"the plan in force cannot run: {error}"
            else:
                return self._rebinds(present) or self._stays_or_moves(present)
        return self._forced(topology, reason)

    def _stays_or_moves(self, present: BoundPlan) -> WatchVerdict:
        topology = present.topology
        searched = self.triggers.why(self.searched, topology, present.step_s, self.time_s)
        since_s = self.time_s - self.judged_s
        stay = WatchVerdict(
            time_s=self.time_s,
            action="stay",
            plan=present,
            why=f"other plans were judged {short_time(since_s)} ago",
            present_s=present.step_s,
            searched=searched,
        )
        if searched:
            self._search(topology, present)
        elif since_s < _JUDGE_EVERY_S:
            return stay
        self.judged_s = self.time_s
        return self._weighed(stay, present, self.others.judge(present, since_s))

    def _weighed(
        self, stay: WatchVerdict, present: BoundPlan, others: Sequence[RememberedPlan]
    ) -> WatchVerdict:
        """Stay, or move to the plan that saves most while it stays better, move included."""
        quicker = [
            self._stakes(present, one) for one in others if one.bound.step_s < present.step_s
        ]
        if not quicker:
            return replace(stay, why="no other plan is quicker")
        quicker.sort(key=lambda one: saved_s(self.rule, one[1]), reverse=True)
        for best, stakes in quicker:
            weighed = weigh_move(self.rule, stakes)
            if weighed.moves:
                ratios = tuple(self._draw_ratios(present, best))
                weighed = weigh_move(self.rule, replace(stakes, ratios=ratios))
            if weighed.moves and stakes.cost is not None:
                return replace(stay, action="move", plan=best, why=weighed.why, cost=stakes.cost)
        return replace(stay, why=weigh_move(self.rule, quicker[0][1]).why)

    def _stakes(self, present: BoundPlan, other: RememberedPlan) -> tuple[BoundPlan, Stakes]:
        best = other.bound
        return best, Stakes(
            present_s=present.step_s,
            step_s=best.step_s,
            cost=reachable_move(present.topology, present, best, self._replacement),
            fades_per_s=self.others.fades_per_s,
            lost_s=other.lost_s,
            lasts=lasting_sites(self.world, _sites(best) - _sites(present), self.time_s),
        )

    def _draw_ratios(self, present: BoundPlan, best: BoundPlan) -> Iterator[float]:
        """Steps of the best over those of the present plan, on worlds drawn by the spread."""
        rng = np.random.default_rng(0)
        for _ in range(_NUM_DRAWS):
            drawn = self.world.topology(rng)
            assert drawn is not None
            yield place_on(best, drawn).step_s / place_on(present, drawn).step_s

    def _rebinds(self, present: BoundPlan) -> WatchVerdict | None:
        """Bind the plan again where GPUs or loads of its sites have changed, if that pays."""
        now = self.world.insides()
        if all(now.get(one) == self.insides.get(one) for one in _sites(present)):
            return None
        self.insides = now
        found = self.others.rebound(present, present.topology)
        if found is None or found.step_s >= present.step_s:
            return None
        cost = reachable_move(present.topology, present, found, self._replacement)
        stakes = Stakes(present_s=present.step_s, step_s=found.step_s, cost=cost)
        weighed = weigh_move(self.rule, stakes)
        if not weighed.moves or cost is None:
            return None
        return WatchVerdict(
            time_s=self.time_s,
            action="rebind",
            plan=found,
            why=f"GPUs or loads have changed: the same layers {weighed.why}",
            present_s=present.step_s,
            cost=cost,
        )

    def _forced(self, topology: Topology, reason: str) -> WatchVerdict:
        """A plan where none is in force, or the one that is cannot run: first inside its sites."""
        own = self.in_force
        kept = None if own is None else self.others.rebound(own, topology)
        searched = "" if kept is not None else "none in force can run"
        try:
            best = self._search(topology, None) if kept is None else kept
        except ValueError as error:
            return self._waits(f"{reason}; {error}")
        cost = None if own is None else reachable_move(topology, own, best, self._replacement)
        return WatchVerdict(
            time_s=self.time_s,
            action="rebind" if kept is not None else "first" if own is None else "move",
            plan=best,
            why=f"{reason}; its layers stay where they are" if kept is not None else reason,
            cost=cost or NO_MOVE,
            searched=searched,
        )

    def _waits(self, reason: str) -> WatchVerdict:
        return WatchVerdict(
            time_s=self.time_s, action="wait", plan=None, why=f"no plan can run: {reason}"
        )

    def _search(self, topology: Topology, present: BoundPlan | None) -> BoundPlan:
        found = self.others.search(topology, present, self.in_force)
        step_s = found.step_s if present is None else present.step_s
        self.searched = LastSearch.of(self.time_s, step_s, topology)
        return found

    @property
    def _replacement(self) -> Replacement | None:
        """Cost of a move: as measured, else as given, else None."""
        measured_s, given = self.world.restart_s, self.replacement
        if measured_s is None:
            return given
        return Replacement(restart_s=measured_s, pays_bytes=given is None or given.pays_bytes)


def _sites(bound: BoundPlan) -> set[str]:
    """Names of the domains that a plan uses."""
    return {bound.topology.domains[site].name for site in domains_in_use(bound.plan)}
