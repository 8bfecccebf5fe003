"""Plans of all families proposed for a situation, and the schedulers that decide among them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.decision.families import SYNCHRONOUS, Family
from agents.decision.plan_space import PlanSpace
from agents.decision.problem import MOST_PLANNED_DOMAINS
from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import Situation
from agents.hi_ppo.coordinator import Coordinator
from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.hi_ppo.moves.move_rules import WHOLE_RULES
from agents.hi_ppo.schedulers import FixedRule
from agents.judge.look_ahead import LookAhead, PlanJudge
from agents.planners.names import MOVING_NAMES
from agents.ppo.shipped_weights import shipped_weights_of
from agents.replanning.plan_costs import PlanTimes
from agents.search.ideal_plans import ideal_plans
from des import Corrections, Placement, Plan, Topology, Workload
from des.base.checks import require_one_of
from des.schedules import DEFAULT_SCHEDULE

_FEW_SCHEDULES = "1f1b", "1f1b_4x", "zb_h1_32x", "zb_h1_4x"
"""Schedules that the last plan is judged under."""

_MOST_NEAR = 64
"""Changes of the last plan that are judged, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeProposals:
    """Plans to choose from, those that were searched first, each once."""

    plans: tuple[Plan, ...]


class WholeProposer:
    """Proposes plans of some families, in microbatches of the size that the job has.

    They are those of `agents.search.ideal_plans.ideal_plans`; look-aheads play no part.
    """

    most_domains = MOST_PLANNED_DOMAINS
    look_ahead = LookAhead()

    def __init__(self, *, families: Sequence[Family] = SYNCHRONOUS) -> None:
        self._space = PlanSpace(families=tuple(families))
        self._judges: dict[tuple[Workload, int, Corrections], PlanJudge] = {}

    def judge_of(
        self, workload: Workload, topology: Topology, corrections: Corrections
    ) -> PlanJudge:
        """Judge of a job on networks of this number of domains, under one schedule."""
        key = workload, topology.num_domains, corrections
        if key not in self._judges:
            self._judges[key] = PlanJudge(
                workload,
                topology.num_domains,
                schedules=(DEFAULT_SCHEDULE,),
                corrections=corrections,
            )
        return self._judges[key]

    def propose(
        self,
        situation: Situation,
        *,
        look_ahead: LookAhead | None = None,
        num_plans: int = 8,
        seed: int = 0,
    ) -> WholeProposals:
        """Propose the best plans of the search, and the best near changes of the last plan.

        As many of either as given. ``look_ahead`` and ``seed`` play no part: nothing is drawn.

        Raises
        ------
        InfeasiblePlacementError
            If no plan fits.
        """
        topology, workload = leave_reserved_memory(situation), situation.workload
        found = ideal_plans(topology, workload, self._space, situation.corrections)
        searched = [one.plan for one in found]
        near = self._best_near(situation, topology)[:num_plans]
        return WholeProposals(plans=tuple(dict.fromkeys((*searched[:num_plans], *near))))

    def _best_near(self, situation: Situation, topology: Topology) -> list[Plan]:
        """Near changes of the last plan that work, the quickest first."""
        if situation.last_plan is None:
            return []
        plans = near_changes(situation.last_plan)[:_MOST_NEAR]
        judge = self.judge_of(situation.workload, topology, situation.corrections)
        times_s = PlanTimes(judge, plans).on(topology)
        order = np.argsort(times_s, kind="stable")
        return [plans[at] for at in order.tolist() if np.isfinite(times_s[at])]


def near_changes(plan: Plan) -> list[Plan]:
    """Return a plan under a few schedules, and with one layer on the other side of a border.

    Examples
    --------
    >>> plan = Plan(placement=Placement.parse("0*2,1*1"), schedule="zb_h1_4x")
    >>> [str(near.placement) for near in near_changes(plan) if near.schedule == plan.schedule]
    ['0*1,1*2']
    """
    found = [replace(plan, schedule=name) for name in _FEW_SCHEDULES]
    placements = plan.placements
    for copy, placement in enumerate(placements):
        for near in _resplit(placement):
            changed = (*placements[:copy], near, *placements[copy + 1 :])
            found.append(replace(plan, placement=changed[0], replicas=changed[1:]))
    return [near for near in dict.fromkeys(found) if near != plan]


def _resplit(placement: Placement) -> list[Placement]:
    """The placement with a layer of each border's sides given to the other, either way."""
    stages = placement.stages
    domains, counts = [one.domain for one in stages], [one.num_layers for one in stages]
    found = []
    for border in range(len(stages) - 1):
        for giver, taker in ((border, border + 1), (border + 1, border)):
            if counts[giver] > 1:
                near = list(counts)
                near[giver], near[taker] = near[giver] - 1, near[taker] + 1
                found.append(Placement.contiguous(domains, near))
    return found


_RULE, _LEARNED = "decide_h", "decide_learned"


def moving_scheduler(name: str, families: Sequence[Family] = SYNCHRONOUS) -> Coordinator:
    """Make one of the schedulers of `agents.planners.names.MOVING_NAMES`.

    All search in every epoch and remember what they found. ``decide_h8`` and its like move where
    that pays within that number of epochs, ``decide_learned`` by the shipped policy of seed 0 for
    moves among all families.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    require_one_of("moving scheduler", "name", name, MOVING_NAMES)
    proposer = WholeProposer(families=families)
    if name == _LEARNED:
        return Coordinator(proposer, MovePolicy.load(shipped_weights_of("moves", 0)))
    rule = WHOLE_RULES.rule(WHOLE_RULES.top, float(name.removeprefix(_RULE)))
    return Coordinator(proposer, FixedRule(rule, WHOLE_RULES))
