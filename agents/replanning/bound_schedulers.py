"""Deciders whose plans a trainer runs: what others propose is bound, or the search decides."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from agents.decision.levels import level_of
from agents.decision.occupied import occupied
from agents.decision.problem import Planner, PlanningProblem
from agents.decision.situation import Decision, Scheduler, Situation
from agents.decision.world import DecisionWorld
from agents.replanning.pool import Pool
from agents.replanning.search_schedulers import PlanEveryEpoch
from agents.search.bind import PlanBinder
from agents.search.sketches import quickest_bound, sketch_of
from agents.trainers.trainer import Trainer
from des import Plan, Topology, Workload


class BoundScheduler:
    """Binds what a scheduler of perfect devices decides; it sees its own plans as the last ones.

    A plan that stays keeps its GPUs. Where a plan cannot be bound the last one stays, and before
    the first one the search of bound plans decides; both are fallbacks.
    """

    def __init__(self, inner: Scheduler, trainer: Trainer) -> None:
        self.name = str(getattr(inner, "name", type(inner).__name__))
        self._inner, self._trainer = inner, trainer
        self._sketches: dict[Plan, Plan] = {}

    def begin(self) -> None:
        """Forget what was seen."""
        self._inner.begin()
        self._sketches = {}

    def decide(self, situation: Situation) -> Decision:
        """Return the plan for the epoch."""
        last = situation.last_plan
        known = None if last is None else self._sketches.get(last) or sketch_of(last)
        decision = self._inner.decide(replace(situation, last_plan=known))
        if last is not None and decision.plan == known:
            return replace(decision, plan=last)
        binder = PlanBinder(
            topology=occupied(situation),
            workload=situation.workload,
            trainer=self._trainer,
            corrections=situation.corrections,
        )
        try:
            plan, is_fallback = binder.bind(decision.plan).plan, decision.is_fallback
        except ValueError:
            plan, is_fallback = last or self._searched(situation), True
        self._sketches[plan] = sketch_of(plan) if is_fallback else decision.plan
        level = level_of(last, plan)
        return replace(decision, plan=plan, level=level, is_fallback=is_fallback)

    def _searched(self, situation: Situation) -> Plan:
        topology, workload = occupied(situation), situation.workload
        return quickest_bound(topology, workload, self._trainer, situation.corrections).plan


@runtime_checkable
class WeighsBound(Protocol):
    """A scheduler that weighs plans as a trainer runs them, such as Hi-PPO's coordinator."""

    def bound_for(self, trainer: Trainer) -> Scheduler:
        """Return the scheduler for a trainer."""


def bound_scheduler(inner: Scheduler, trainer: Trainer) -> Scheduler:
    """Return a scheduler of what the trainer runs; of perfect devices the one given."""
    if trainer.is_ideal:
        return inner
    return (
        inner.bound_for(trainer)
        if isinstance(inner, WeighsBound)
        else BoundScheduler(inner, trainer)
    )


def search_bound_scheduler(trainer: Trainer, horizon_epochs: float) -> Scheduler:
    """Return the scheduler that searches bound plans in every epoch, see `PlanEveryEpoch`."""

    def find_plan(topology: Topology, workload: Workload) -> Plan:
        return quickest_bound(topology, workload, trainer).plan

    return PlanEveryEpoch(horizon_epochs, find_plan)


def bound_planner(planner: Planner, trainer: Trainer) -> Planner:
    """Return a planner whose plans the trainer runs; of perfect devices the one given.

    Its plans are refused with an error where they cannot be bound, see `PlanBinder.bind`.
    """
    return planner if trainer.is_ideal else partial(_planned, planner, trainer)


def _planned(
    planner: Planner, trainer: Trainer, problem: PlanningProblem, rng: np.random.Generator
) -> Plan:
    last = None if problem.last_plan is None else sketch_of(problem.last_plan)
    plan = planner(replace(problem, last_plan=last), rng)
    binder = PlanBinder(
        topology=problem.topology,
        workload=problem.workload,
        trainer=trainer,
        corrections=problem.corrections,
    )
    return binder.bind(plan).plan


def pool_binder(world: DecisionWorld, trainer: Trainer) -> Callable[[Pool], Pool]:
    """Return what binds the plans of a pool at the base figures of a world.

    The quickest plan of the search comes first. Plans that cannot be bound are left out.
    """
    topology, workload = replace(world.topology, movement=None), world.workload

    def bound(pool: Pool) -> Pool:
        binder = PlanBinder(topology=topology, workload=workload, trainer=trainer)
        known = {quickest_bound(topology, workload, trainer).plan: 0}
        for plan, epoch in zip(pool.plans, pool.known_from, strict=True):
            try:
                own = binder.bind(plan).plan
            except ValueError:
                continue
            known[own] = min(epoch, known.get(own, epoch))
        return Pool(plans=tuple(known), known_from=tuple(known.values()))

    return bound
