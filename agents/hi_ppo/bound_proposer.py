"""Bound proposals epoch by epoch: what a coordinator weighs and moves between under a trainer."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from agents.decision.occupied import occupied
from agents.decision.problem import PlanningProblem
from agents.decision.situation import Situation
from agents.hi_ppo.bound_proposals import bindings
from agents.hi_ppo.plan_source import ProposesPlans
from agents.judge.look_ahead import LookAhead, PlanJudge
from agents.planners.choice.depth import with_best_schedule
from agents.search.bind import PlanBinder
from agents.search.schedule_choice import surveyed_schedules
from agents.search.sketches import quickest_bound, sketch_of
from agents.trainers.trainer import Trainer
from des import Corrections, Plan, Topology, Workload
from des.compiled.simulate import simulate_compiled


def planned_bound(trainer: Trainer, situation: Situation, seed: int) -> Plan:
    """Plan by the search of bound plans, which draws nothing, on the network as it is.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits.
    """
    topology, workload = occupied(situation), situation.workload
    return quickest_bound(topology, workload, trainer, situation.corrections).plan


@dataclass(frozen=True, kw_only=True)
class BoundPlans:
    """Bound plans proposed, the quickest first."""

    plans: tuple[Plan, ...]


@dataclass(frozen=True, kw_only=True)
class _PassesOn:
    """Proposer around another one, whose look-ahead and judge it has.

    The judge leaves plans that it does not hold, under other schedules or bound, to the simulator.
    """

    inner: ProposesPlans

    @property
    def look_ahead(self) -> LookAhead:
        """Look-ahead of a decision but the first."""
        return self.inner.look_ahead

    @property
    def most_domains(self) -> int:
        """Largest number of domains that plans are proposed for."""
        return self.inner.most_domains

    def judge_of(
        self, workload: Workload, topology: Topology, corrections: Corrections
    ) -> PlanJudge:
        """Judge of a job."""
        return self.inner.judge_of(workload, topology, corrections)


@dataclass(frozen=True, kw_only=True)
class ScheduledProposer(_PassesOn):
    """Proposes what another does, each plan also under the quickest of some schedules."""

    schedules: tuple[str, ...]

    def propose(
        self,
        situation: Situation,
        *,
        look_ahead: LookAhead | None = None,
        num_plans: int = 8,
        seed: int = 0,
    ) -> BoundPlans:
        """Propose plans for a situation, the quickest schedule of each before its own."""
        found = self.inner.propose(
            situation, look_ahead=look_ahead, num_plans=num_plans, seed=seed
        ).plans[:num_plans]
        problem = PlanningProblem(
            topology=occupied(situation),
            workload=situation.workload,
            corrections=situation.corrections,
            simulator=simulate_compiled,
        )
        rng = np.random.default_rng(seed)
        scheduled = [
            with_best_schedule(partial(_given, one), self.schedules)(problem, rng) for one in found
        ]
        return BoundPlans(plans=tuple(dict.fromkeys([*scheduled, *found])))


def _given(plan: Plan, problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    return plan


@dataclass(frozen=True, kw_only=True)
class BoundProposer(_PassesOn):
    """Proposes what a trainer runs: another's proposals bound, the quickest first."""

    trainer: Trainer

    def propose(
        self,
        situation: Situation,
        *,
        look_ahead: LookAhead | None = None,
        num_plans: int = 8,
        seed: int = 0,
    ) -> BoundPlans:
        """Bind proposals for a situation; none where none can be bound."""
        last = situation.last_plan
        seen = replace(situation, last_plan=None if last is None else sketch_of(last))
        found = self.inner.propose(seen, look_ahead=look_ahead, num_plans=num_plans, seed=seed)
        binder = PlanBinder(
            topology=occupied(situation),
            workload=situation.workload,
            trainer=self.trainer,
            corrections=situation.corrections,
            schedules=surveyed_schedules(self.trainer, ()),
        )
        bound = bindings(binder, found.plans[:num_plans])
        return BoundPlans(plans=tuple(one.plan for one in bound))
