"""The scheduler that the policies make together: it proposes, weighs, validates and keeps time."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial

import numpy as np

from agents.decision.levels import level_of
from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import TIME_ONLY, Decision, Situation
from agents.decision.threshold import ReplanThreshold
from agents.hi_ppo.bound_proposals import BoundProposer, plan_bound
from agents.hi_ppo.fallback import planned
from agents.hi_ppo.moves.choosing import Chooser, NamesRules
from agents.hi_ppo.moves.known_plans import KnownPlans
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.plan_source import ProposesPlans
from agents.hi_ppo.policies import Policies, TrainedRange
from agents.hi_ppo.validation import plan_of_other_domains, require_valid
from agents.judge.look_ahead import LookAhead
from agents.search.trainer_search import TrainerSearch
from des import (
    InfeasiblePlacementError,
    Plan,
    Topology,
    UnreachableError,
    Workload,
)
from des.base.checks import require_count

QUICK = LookAhead(budget=2000, width=1, num_refined=16, order_fraction=0.5)
"""A look-ahead of a few milliseconds over 10 domains, for proposers of coordinators."""

FIRST = LookAhead(budget=16_000, width=32, num_refined=64, order_fraction=0.75, num_samples=128)
"""A look-ahead for the first decision of a job: eight times the plans of `QUICK`."""


class NoValidPlanError(ValueError):
    """Neither the plan that was chosen nor the one before can be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts of a coordinator's decisions since it was made."""

    decisions: int = 0
    fallbacks: int = 0
    losses_of_domain: int = 0


@dataclass(eq=False)
class Coordinator:
    """Decides epoch by epoch on two time scales, `agents.decision.situation.Scheduler`.

    In every epoch the placement policy proposes plans for the network as it is; the move policy,
    which remembers what the network did, names how far to move and for which horizon that must
    pay. The resulting plan is validated as a whole. A plan that is not valid is not used: the last
    one stays if it is, and `Decision.is_fallback` and `counts` tell.

    On a world outside ``trained_range`` a planner proposes too; also where the policy finds no
    plan that fits; above 16 domains it proposes alone. ``misfits`` names what is outside.
    `bound_for` a trainer all plans are bound to GPUs, and weighed by their times as bound.

    A domain that is gone since the last decision takes the plan in force with it: if that used
    it, the decision is made as a first one. The last plan of such a situation still has the
    numbers that domains had at the last decision.

    Attributes
    ----------
    proposer
        With its look-ahead, such as `QUICK`. The first decision of a draw has a longer one,
        `FIRST`, half of it for base figures unless they are those of the network.
    moves
        None takes the plan of each epoch that is best by the preference as it comes, whatever the
        change costs. Where a policy has no say either, see `agents.hi_ppo.moves.choosing.Chooser`.
    trained_range
        None means that every world is within.
    num_new
        Proposals of an epoch that are kept, in addition to the best changes of the plan in force.
    validate
        Raises where a plan cannot be used; by default `require_valid`.
    most_slowdown
        A bound for steady iteration times: no plan is taken of which an iteration takes longer, by
        more than this share, than one of the quickest plan known does on the network as it is.
        Where bytes count, plans for time alone are proposed too, so that quick ones are known.
        `agents.hi_ppo.moves.choosing.Chooser` describes what is taken instead, and when none is. It
        does not hold where the plan is not valid and the last one stays. None: no bound.
    replan_threshold
        The last plan stays, without a proposal, while it can be used and no link or domain that it
        uses has changed by more than this since the last decision. None: decides in every epoch.
    planner
        Plans for a situation and a seed, by default `agents.hi_ppo.fallback.planned`.
    searches
        Whether the planner proposes in every decision that is made, not where it has to alone.
    """

    proposer: ProposesPlans
    moves: NamesRules | None
    _: KW_ONLY
    trained_range: TrainedRange | None = None
    num_new: int = 3
    validate: Callable[[Situation, Plan], None] = require_valid
    most_slowdown: float | None = None
    replan_threshold: ReplanThreshold | None = None
    planner: Callable[[Situation, int], Plan] = planned
    searches: bool = False

    def __post_init__(self) -> None:
        require_count("coordinator", "num_new", self.num_new)
        self._chooser = Chooser(self.moves, self.most_slowdown)
        self.counts = Counts()
        self.begin()

    def bound_for(self, search: TrainerSearch) -> "Coordinator":
        """Return the coordinator that proposes, weighs and takes plans as a trainer runs them.

        As policies do not see the stages of a domain's GPUs it searches in every decision.
        """
        proposer = BoundProposer(inner=self.proposer, search=search)
        planner = partial(plan_bound, search)
        return replace(self, proposer=proposer, planner=planner, searches=True)

    def begin(self) -> None:
        """Forget what was seen: another draw begins."""
        self._known: KnownPlans | None = None
        self._chooser.begin()
        self._names: tuple[str, ...] = ()
        self._asked: Topology | None = None
        self._seed = 0
        self._judged_range: tuple[Topology, Workload] | None = None
        self.misfits: tuple[str, ...] = ()

    @property
    def overruled(self) -> Plan | None:
        """The plan that the last decision would have taken but for the bound, if it did not."""
        return self._chooser.overruled

    def decide(self, situation: Situation) -> Decision:
        """Return the plan for the epoch.

        Raises
        ------
        InfeasiblePlacementError
            If no plan fits, naming the domain that lacks least, what it needs and what it has.
        NoValidPlanError
            If neither the plan that was chosen nor the last one can be used.
        ValueError
            If a figure of the situation is not a number, or the last plan is not one of the job.
        """
        began_s = time.perf_counter()
        situation = self._of_these_domains(situation)
        last = situation.last_plan
        if last is not None and self._is_calm(situation, last):
            return self._unasked(last, began_s)
        self._asked = leave_reserved_memory(situation)
        known = self._remembered(situation)
        proposed_s = time.perf_counter()
        plan, self._known = self._chooser.choose(situation, known)
        chosen_s = time.perf_counter()
        plan, is_fallback = self._valid(situation, plan)
        ended_s = time.perf_counter()
        self.counts = replace(
            self.counts,
            decisions=self.counts.decisions + 1,
            fallbacks=self.counts.fallbacks + is_fallback,
        )
        return Decision(
            plan=plan,
            level=level_of(last, plan),
            is_fallback=is_fallback,
            response_s={
                "proposals": proposed_s - began_s,
                "move": chosen_s - proposed_s,
                "validation": ended_s - chosen_s,
                "inter_domain": ended_s - began_s,
            },
        )

    def _is_calm(self, situation: Situation, last: Plan) -> bool:
        """Whether the last plan can be used and little has changed since the last question."""
        if self.replan_threshold is None or self._asked is None:
            return False
        if self.replan_threshold.is_exceeded(last, self._asked, leave_reserved_memory(situation)):
            return False
        try:
            self.validate(situation, last)
        except (InfeasiblePlacementError, UnreachableError):
            return False
        return True

    def _unasked(self, last: Plan, began_s: float) -> Decision:
        self.counts = replace(self.counts, decisions=self.counts.decisions + 1)
        return Decision(
            plan=last, level="nothing", response_s={"inter_domain": time.perf_counter() - began_s}
        )

    def _of_these_domains(self, situation: Situation) -> Situation:
        """Forget, and the last plan too if it used them, when domains are not what they were."""
        names = tuple(domain.name for domain in situation.topology.domains)
        known, self._names = self._names or names, names
        if names == known:
            return situation
        last = situation.last_plan
        renamed = None if last is None else plan_of_other_domains(last, known, names)
        self.begin()
        self._names = names
        is_loss = bool(set(known) - set(names))
        self.counts = replace(self.counts, losses_of_domain=self.counts.losses_of_domain + is_loss)
        return replace(situation, last_plan=renamed)

    def _remembered(self, situation: Situation) -> KnownPlans:
        """All plans known so far, with those that are new; at first also those for base figures."""
        base, workload = situation.base, situation.workload
        if self.trained_range is not None and self._judged_range != (base, workload):
            self._judged_range = base, workload
            self.misfits = self.trained_range.misfits(base, workload)
        known = self._known_of(situation)
        how = self.proposer.look_ahead if known.plans else FIRST
        if not known.plans and situation.topology != base:
            half = replace(FIRST, budget=FIRST.budget // 2)
            at_base = replace(situation, topology=base)
            with contextlib.suppress(InfeasiblePlacementError):  # else all depends on what is now
                known.add(self._propose(at_base, 2 * self.num_new, half))
                how = half
        if situation.last_plan is not None:
            known.add([situation.last_plan])
        try:
            known.add(self._propose(situation, self.num_new, how))
            if self._chooser.is_bounded and situation.preference.communication > 0.0:
                by_time = replace(situation, preference=TIME_ONLY)
                known.add(self._propose(by_time, self.num_new, how))
        except InfeasiblePlacementError:
            if not np.isfinite(known.times_s(situation, known.job_of(situation))).any():
                raise
        return known

    def _known_of(self, situation: Situation) -> KnownPlans:
        """Plans known for the job at these base figures; another job has its own."""
        judge = self.proposer.judge_of(
            situation.workload, situation.topology, situation.corrections
        )
        known = self._known
        if known is None or known.judge is not judge:
            known = KnownPlans(judge, situation.base)
            self._chooser.begin()
        elif known.base != situation.base:
            known = KnownPlans(judge, situation.base, known.plans)
            self._chooser.begin()
        self._known = known
        return known

    def _propose(self, situation: Situation, count: int, how: LookAhead) -> tuple[Plan, ...]:
        """Proposals for a network, those of the placement policy first, the best before others."""
        self._seed += 1
        found: tuple[Plan, ...] = ()
        if situation.topology.num_domains <= self.proposer.most_domains:
            with contextlib.suppress(InfeasiblePlacementError):  # the planner says what is lacking
                found = self.proposer.propose(
                    situation, look_ahead=how, num_plans=count, seed=self._seed
                ).plans
        if self.searches or self.misfits or not found:
            try:
                found += (self.planner(situation, self._seed),)
            except InfeasiblePlacementError:
                if not found:
                    raise
        return found

    def _valid(self, situation: Situation, plan: Plan) -> tuple[Plan, bool]:
        """Return the plan if it can be used, else the last one; and whether that is so."""
        try:
            self.validate(situation, plan)
        except (InfeasiblePlacementError, UnreachableError) as error:
            last = situation.last_plan
            if last is None:
                raise
            try:
                self.validate(situation, last)
            except (InfeasiblePlacementError, UnreachableError) as second:
                raise NoValidPlanError(
                    f"coordinator: epoch {situation.epoch}: neither the new plan ({error}) nor the "
                    f"last one can be used ({second})"
                ) from second
            return last, True
        return plan, False


def coordinator_of(
    policies: Policies, most_slowdown: float | None = None, proposer: Proposer | None = None
) -> Coordinator:
    """Put a coordinator together from trained policies, with a bound on iteration times or none."""
    return Coordinator(
        proposer or Proposer(policies.placement, look_ahead=QUICK),
        policies.moves,
        trained_range=policies.trained_range,
        most_slowdown=most_slowdown,
    )
