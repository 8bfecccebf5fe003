"""Choice among known plans and those next to them: by the move policy, within a bound."""

import math
from typing import Protocol

import numpy as np

from agents.decision.situation import Situation
from agents.hi_ppo.moves.known_plans import KnownPlans
from agents.hi_ppo.moves.move_costs import CostScale
from agents.hi_ppo.moves.move_observer import MoveCandidates, MoveObservation, MoveObserver
from agents.hi_ppo.moves.move_rules import MoveRule, RuleSet, work_left
from agents.hi_ppo.moves.near_plans import near_plans
from agents.judge.look_ahead import aim_of
from des import Plan, Topology
from des.compiled.many.layout import Real, Whole
from des.compiled.many.steady import Job

_LEAST_LEFT = 0.1
"""Least work in the epochs to come of a plan within the bound, its change first, as a share of that
of the plan beyond it: else a large model would move in every epoch and never work."""

_BASE_EPOCHS = 2.0
"""Epochs at base figures that are weighed with those to come: loads are spread around these, and a
plan that is quick there has to give way less often. Chosen on worlds of seed 4."""

MOST_KNOWN = 160
"""Plans that are remembered; with more the worse half is forgotten."""


class NamesRules(Protocol):
    """Whatever names the rule to decide by, such as
    `agents.hi_ppo.moves.move_policy.MovePolicy`.
    """

    @property
    def rule_set(self) -> RuleSet:
        """Rules that it chooses among."""

    def choose(self, observation: MoveObservation) -> MoveRule:
        """Return one of the rules."""


class Chooser:
    """Takes a plan of those known, epoch by epoch.

    The move policy names the rule that takes it. Without one the plan of least cost under the
    preference is taken, whatever the change costs; of equals the last one, else the quickest. So
    it is with a policy too where bytes count and the quickest plan at base figures sends none, as
    there is no unit for them then; where bytes alone count and a plan costs nothing; and where no
    plan works at base figures.

    A plan of which an iteration takes too long, by ``most_slowdown``, gives way to one within the
    bound: to that of most work in the epochs to come, the change first, and in two epochs at base
    figures, in the costs that the move policy weighs. The epochs to come are the next one, and as
    many more as the network has stood still. A plan beyond the bound stays if all others would do
    less than a tenth of its work in these. Where no rule decides it gives way to the plan of least
    cost under the preference.

    Parameters
    ----------
    most_slowdown
        So much longer than the quickest plan known takes on the network as it is may an iteration
        take at most, as a share of the former; None: as long as it likes.

    Attributes
    ----------
    overruled
        The plan that would have been taken last but for the bound; None if it was taken.

    Raises
    ------
    ValueError
        If ``most_slowdown`` is not positive.
    """

    def __init__(self, moves: NamesRules | None, most_slowdown: float | None = None) -> None:
        if most_slowdown is not None and not 0.0 < most_slowdown < math.inf:  # NaN fails too
            raise ValueError(
                "coordinator: most_slowdown must be positive and finite, or None for no bound; "
                f"got {most_slowdown!r}"
            )
        self._moves, self.most_slowdown = moves, most_slowdown
        self.begin()

    def begin(self) -> None:
        """Forget what plans took."""
        self.overruled: Plan | None = None
        self._observer: MoveObserver | None = None
        self._weighed: tuple[object, ...] = ()
        self._seen: Topology | None = None
        self._num_stayed = 0

    @property
    def is_bounded(self) -> bool:
        """Whether iterations may take no longer than a bound."""
        return self.most_slowdown is not None

    def choose(self, situation: Situation, known: KnownPlans) -> tuple[Plan, KnownPlans]:
        """Take a plan; the last one must be known.

        Returns
        -------
        Plan, KnownPlans
            The plan, and what is worth to be remembered of those known.
        """
        self.overruled = None
        self._num_stayed = self._num_stayed + 1 if situation.topology == self._seen else 0
        self._seen = situation.topology
        job, last = known.job_of(situation), situation.last_plan
        now_s = known.times_s(situation, job)
        costs = known.costs(aim_of(situation.topology, job, situation.preference), now_s)
        works = np.isfinite(now_s) & np.isfinite(known.base_s)
        left, rows = known, np.arange(len(known))
        if self._moves is not None and works.any():
            if not works.all() or len(known) > MOST_KNOWN:
                left, rows = self._thin(known, last, np.where(works, costs, np.inf))
            if _has_unit(left, situation.preference.communication):
                plan = self._by_rule(self._moves, situation, left, job, now_s[rows])
                among_s = np.full(len(known), np.inf)
                among_s[rows] = now_s[rows]
                if not self._is_within(plan, known, among_s):
                    plan = self._nearest(situation, known, job, among_s)
                return plan, left
        plan = _least(known, costs, now_s, last)
        if not self._is_within(plan, known, now_s):
            costs = np.where(now_s <= self._limit_s(now_s), costs, np.inf)
            plan = _least(known, costs, now_s, last)
        return plan, left

    def _by_rule(
        self, moves: NamesRules, situation: Situation, known: KnownPlans, job: Job, now_s: Real
    ) -> Plan:
        """Take the plan of the rule that the policy names."""
        candidates = MoveCandidates(
            plans=known.plans,
            iteration_s=now_s,
            base_iteration_s=known.base_s,
            cost_bytes=known.cost_bytes,
            changes=lambda sources: known.changes(situation, job, sources),
        )
        last = situation.last_plan
        present = last if last is not None and last in known else None
        observation = self._observer_of(situation, moves.rule_set).observe(candidates, present)
        return observation.plan_of(moves.choose(observation))

    def _limit_s(self, now_s: Real) -> float:
        """Longest iteration within the bound; ``now_s`` is ``inf`` for plans not available. [s]"""
        if self.most_slowdown is None:
            return math.inf
        return (1.0 + self.most_slowdown) * float(now_s.min())

    def _is_within(self, plan: Plan, known: KnownPlans, now_s: Real) -> bool:
        """Whether a plan is quick enough; if not it is noted as overruled."""
        is_within = bool(now_s[known.row_of(plan)] <= self._limit_s(now_s))
        self.overruled = None if is_within else plan
        return is_within

    def _nearest(self, situation: Situation, known: KnownPlans, job: Job, now_s: Real) -> Plan:
        """Take the plan of most work of those within the bound and near the last, see the class."""
        limit_s, last = self._limit_s(now_s), situation.last_plan
        beyond = self.overruled
        assert beyond is not None  # this is called where a plan is not within the bound
        within = [known.plans[row] for row in np.flatnonzero(now_s <= limit_s).tolist()]
        if last is not None:
            within += [last, *near_plans(known.judge, job, last, limit_s)]
        steady = KnownPlans(known.judge, known.base, [*within, beyond])
        steady_s = steady.times_s(situation, job)
        to_come, at_base = _costs_of_work(situation, steady, job, steady_s, 1 + self._num_stayed)
        costs = np.where(steady_s <= limit_s, to_come + _BASE_EPOCHS * at_base, np.inf)
        plan = _least(steady, costs, steady_s, last)
        if to_come[steady.row_of(plan)] > _LEAST_LEFT * to_come[steady.row_of(beyond)]:
            self.overruled = None
            return beyond
        return plan

    def _observer_of(self, situation: Situation, rule_set: RuleSet) -> MoveObserver:
        """Observer of plan costs; a new one if the unit of costs has changed."""
        weighed = (situation.epoch_s, situation.preference)
        if self._observer is None or self._weighed != weighed:
            self._weighed = weighed
            self._observer = MoveObserver(*weighed, rule_set)
        return self._observer

    def _thin(self, known: KnownPlans, last: Plan | None, costs: Real) -> tuple[KnownPlans, Whole]:
        """Let go of plans that do not work, and of the worse half where there are too many.

        The move policy keeps those on which its own rules stand; if one of these works no longer
        its memory is cleared. Returns the plans that are kept, and their rows.
        """
        order = np.argsort(costs, kind="stable")
        most = len(known) if len(known) <= MOST_KNOWN else MOST_KNOWN // 2
        stays = set(order[:most].tolist()) & set(np.flatnonzero(np.isfinite(costs)).tolist())
        if last is not None and np.isfinite(costs[known.row_of(last)]):
            stays.add(known.row_of(last))
        gone = [plan for row, plan in enumerate(known.plans) if row not in stays]
        if self._observer is not None:
            kept = {known.row_of(plan) for plan in set(gone) - set(self._observer.forget(gone))}
            if np.isfinite(costs[list(kept)]).all():
                stays |= kept
            else:
                self._observer = None
        rows = np.array(sorted(stays))
        return KnownPlans(known.judge, known.base, [known.plans[row] for row in rows]), rows


def _has_unit(known: KnownPlans, by_bytes: float) -> bool:
    """Whether costs of plans and changes can be weighed, if bytes count so much."""
    if by_bytes > 0.0 and not known.cost_bytes[int(known.base_s.argmin())] > 0.0:
        return False
    return by_bytes < 1.0 or bool(known.cost_bytes.all())


def _costs_of_work(
    situation: Situation, known: KnownPlans, job: Job, now_s: Real, num_epochs: int
) -> tuple[Real, Real]:
    """Minus the work of epochs to come, the change first, and of one at base figures, (C,) each."""
    scale = CostScale.of(
        quickest=int(known.base_s.argmin()),
        base_iteration_s=known.base_s,
        cost_bytes=known.cost_bytes,
        epoch_s=situation.epoch_s,
        preference=situation.preference,
    )
    move: Real = np.zeros(len(known))
    if situation.last_plan is not None:
        move_s, moved_bytes = known.changes(situation, job, [situation.last_plan])
        move = scale.move(move_s[0], moved_bytes[0])
    at_base = scale.run(known.base_s, known.cost_bytes)
    to_come = work_left(move, scale.run(now_s, known.cost_bytes), num_epochs)
    return to_come, work_left(0.0, at_base)


def _least(known: KnownPlans, costs: Real, now_s: Real, last: Plan | None) -> Plan:
    """Plan of least cost; of equals the last one, else the quickest."""
    if last is not None and last in known and costs[known.row_of(last)] <= costs.min():
        return last
    return known.plans[int(np.lexsort((now_s, costs))[0])]
