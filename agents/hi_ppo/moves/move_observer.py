"""Observations of the move policy at work: candidates epoch by epoch, known by their plans."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agents.decision.situation import TIME_ONLY, Preference
from agents.hi_ppo.moves.move_costs import CostScale
from agents.hi_ppo.moves.move_observation import MoveMemory
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES, MoveRule, RuleSet
from agents.replanning.levels import Levels, PlanLevels
from des import Plan
from des.compiled.many.layout import Real, Whole

Changes = Callable[[Sequence[Plan]], tuple[Real, Real]]
"""Time [s] and bytes of all changes from some plans, (P, C) each: to the candidates in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCandidates:
    """The plans among which an epoch's is chosen, C of them.

    Attributes
    ----------
    iteration_s
        On the network as it is, (C,). [s]
    base_iteration_s
        At base figures, (C,). [s]
    cost_bytes
        Over WAN links in an iteration, (C,). [bytes]
    changes
        Present costs of changes from some of them to each of them.
    """

    plans: tuple[Plan, ...]
    iteration_s: Real
    base_iteration_s: Real
    cost_bytes: Real
    changes: Changes

    def __post_init__(self) -> None:
        if not self.plans:
            raise ValueError("candidates: plans must be one or more, got none")
        for name in ("iteration_s", "base_iteration_s", "cost_bytes"):
            values = getattr(self, name)
            if values.shape != (len(self.plans),) or not np.isfinite(values).all():
                raise ValueError(
                    f"candidates: {name} must be {len(self.plans)} finite numbers, got {values!r}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveObservation:
    """Observation of one epoch, with the plan that each rule would take.

    Attributes
    ----------
    values
        As `agents.hi_ppo.moves.move_observation.observation_names` says, (D,).
    targets
        Candidate that each rule takes, by its place among the known ones, (R,).
    plans
        All candidates known, in order.
    is_first
        Whether no plan is in force yet.
    rule_set
        The rules.
    """

    values: npt.NDArray[np.float32]
    targets: Whole
    plans: tuple[Plan, ...]
    is_first: bool = False
    rule_set: RuleSet = PIPELINE_RULES

    def plan_of(self, rule: MoveRule) -> Plan:
        """Plan that a rule takes."""
        return self.plans[int(self.targets[self.rule_set.rules.index(rule)])]


class MoveObserver:
    """Builds observations epoch by epoch; what it sees is what training saw in tables.

    Candidates are known by their plans and may become more from epoch to epoch. The unit of costs
    is that of the first candidates' quickest plan at base figures; that plan is also where
    the fixed rules that run in parallel to the policy start.
    """

    _memory: MoveMemory
    _start: int

    def __init__(
        self,
        epoch_s: float,
        preference: Preference = TIME_ONLY,
        rule_set: RuleSet = PIPELINE_RULES,
    ) -> None:
        self._epoch_s, self._preference, self._rule_set = epoch_s, preference, rule_set
        self.begin()

    def begin(self) -> None:
        """Forget what was seen: another episode begins."""
        self._is_begun = False

    def observe(self, candidates: MoveCandidates, present: Plan | None) -> MoveObservation:
        """Take an epoch in.

        Parameters
        ----------
        candidates
            All that were given before, and maybe more.
        present
            The plan in force, one of them; None before the first decision.

        Raises
        ------
        ValueError
            If a candidate given before, or the present plan, is missing, or one is there twice.
        """
        if not self._is_begun:
            self._take_up(candidates)
        order = np.argsort(self._places_of(candidates))
        place = self._start if present is None else self._place_of(present)
        if place is None:
            raise ValueError("move observer: the present plan must be one of the candidates")
        sources = np.unique(np.append(self._memory.occupied, place))
        move_s, moved_bytes = candidates.changes([self._plans[at] for at in sources.tolist()])
        move = self._scale.move(move_s, moved_bytes)[:, order]
        levels = self._levels.between(sources)

        def rows(places: Whole) -> tuple[Real, Levels]:
            asked = np.searchsorted(sources, places)
            return move[asked], levels[asked]

        now = self._scale.run(candidates.iteration_s, candidates.cost_bytes)
        self._memory.see(now[order], rows)
        view = self._memory.view(np.array([place]))
        return MoveObservation(
            values=view.observation[0],
            targets=view.targets[0],
            plans=self._plans,
            is_first=present is None,
            rule_set=self._rule_set,
        )

    def forget(self, plans: Collection[Plan]) -> tuple[Plan, ...]:
        """Let go of some of the candidates, so that they need not be given any more.

        The present plans of the fixed rules that run in parallel to the policy, and their first
        ones, are kept. What was seen of the others stays as it was.

        Returns
        -------
        tuple[Plan, ...]
            Those that are forgotten: of the plans named and known, all but those kept.
        """
        if not self._is_begun:
            return ()
        places = {self._place_of(plan) for plan in plans} - {None, self._start}
        gone = places - set(self._memory.occupied.tolist())
        kept = np.array([place for place in range(len(self._plans)) if place not in gone])
        forgotten = tuple(plan for place, plan in enumerate(self._plans) if place in gone)
        self._memory.keep(kept)
        self._start = int(np.searchsorted(kept, self._start))
        self._know([self._plans[place] for place in kept.tolist()])
        return forgotten

    def _take_up(self, candidates: MoveCandidates) -> None:
        """Begin an episode with its first candidates."""
        self._scale = CostScale.of(
            quickest=int(candidates.base_iteration_s.argmin()),
            base_iteration_s=candidates.base_iteration_s,
            cost_bytes=candidates.cost_bytes,
            epoch_s=self._epoch_s,
            preference=self._preference,
        )
        base = self._scale.run(candidates.base_iteration_s, candidates.cost_bytes)
        self._start = int(base.argmin())
        if len(set(candidates.plans)) < len(candidates.plans):
            raise ValueError("move observer: candidates must hold each plan once")
        self._memory = MoveMemory(base, self._start, self._rule_set)
        self._know(candidates.plans)
        self._is_begun = True

    def _know(self, plans: Sequence[Plan]) -> None:
        """Give plans their places; those that there were are forgotten."""
        self._plans: tuple[Plan, ...] = ()
        self._place: dict[Plan, int] = {}
        self._place_of_object: dict[int, int] = {}  # the same ones come back, and hashes take long
        self._levels = PlanLevels()
        self._given: tuple[Plan, ...] = ()  # candidates of the last epoch, and their places
        self._given_places: list[int] = []
        self._add(plans)

    def _places_of(self, candidates: MoveCandidates) -> Whole:
        """Places of candidates; new ones get those after all others."""
        count = len(self._given)
        if candidates.plans[:count] == self._given:
            behind = [self._place_of(plan) for plan in candidates.plans[count:]]
            places = [*self._given_places, *behind]
        else:
            places = [self._place_of(plan) for plan in candidates.plans]
        new = [at for at, place in enumerate(places) if place is None]
        added = [candidates.plans[at] for at in new]
        present = set(places) - {None}
        if len(present) + len(set(added)) < len(places):
            raise ValueError("move observer: candidates must hold each plan once")
        if len(present) < len(self._plans):
            raise ValueError(
                "move observer: candidates must hold all given before, "
                f"{len(self._plans) - len(present)} are missing"
            )
        for place, at in enumerate(new, start=len(self._plans)):
            places[at] = place
        if new:
            base = self._scale.run(candidates.base_iteration_s[new], candidates.cost_bytes[new])
            self._memory.add(base)
            self._add(added)
        found = np.array(places)
        self._given, self._given_places = candidates.plans, found.tolist()
        return found

    def _add(self, plans: Sequence[Plan]) -> None:
        for place, plan in enumerate(plans, start=len(self._plans)):
            self._place[plan] = self._place_of_object[id(plan)] = place
        self._plans += tuple(plans)
        self._levels.add(plans)

    def _place_of(self, plan: Plan) -> int | None:
        place = self._place_of_object.get(id(plan))
        return self._place.get(plan) if place is None else place
