"""Plans of all families proposed for a situation: a search on a budget, and near changes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.decision.families import SYNCHRONOUS, Family
from agents.decision.occupied import occupied
from agents.decision.plan_space import PlanSpace
from agents.decision.problem import MOST_PLANNED_DOMAINS
from agents.decision.situation import Situation
from agents.decision.whole_plan import ProposeGroups
from agents.judge.look_ahead import LookAhead, PlanJudge
from agents.judge.paced_judge import FEW_SCHEDULES
from agents.replanning.plan_times import PlanTimes
from agents.replanning.whole_pool import whole_plans
from des import Corrections, Placement, Plan, Topology, Workload
from des.schedules import DEFAULT_SCHEDULE

WHOLE_QUICK = LookAhead(budget=1000)
"""Budget of a decision among all families, in plans; see `WholeProposer`."""

_MOST_NEAR = 64
"""Changes of the last plan that are judged, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeProposals:
    """Plans to choose from, those that were searched first, each once."""

    plans: tuple[Plan, ...]


class WholeProposer:
    """Proposes plans of some families, in microbatches of the size that the job has.

    Of a look-ahead the budget alone counts: the plans that
    `agents.planners.whole.search_whole.search_whole` judges of pipelines, and of groups of domains.

    Parameters
    ----------
    propose
        Groups of domains that the search begins from too; None: none.
    """

    most_domains = MOST_PLANNED_DOMAINS

    def __init__(
        self,
        propose: ProposeGroups | None = None,
        *,
        families: Sequence[Family] = SYNCHRONOUS,
        look_ahead: LookAhead = WHOLE_QUICK,
    ) -> None:
        self.look_ahead, self._propose = look_ahead, propose
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

        As many of either as given. ``seed`` plays no part: nothing is drawn.

        Raises
        ------
        InfeasiblePlacementError
            If no plan fits.
        """
        how = look_ahead or self.look_ahead
        topology, workload = occupied(situation), situation.workload
        searched = whole_plans(
            topology,
            workload,
            self._space,
            situation.corrections,
            max_judged=how.budget,
            propose=self._propose,
        )
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
    found = [replace(plan, schedule=name) for name in sorted(FEW_SCHEDULES)]
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
