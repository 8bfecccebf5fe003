"""Deciders whose plans a trainer runs: what others propose is bound, or the search decides."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from agents.decision.levels import level_of
from agents.decision.problem import Planner, PlanningProblem
from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import Decision, Scheduler, Situation
from agents.decision.world import DecisionWorld
from agents.replanning.pool import Pool
from agents.replanning.search_schedulers import PlanEveryEpoch
from agents.search.schedule_choice import survey_schedules, unpaced_schedules
from agents.search.sketches import sketch_of
from agents.search.trainer_search import TrainerSearch
from agents.trainers.trainer import Trainer
from des import (
    DEFAULT_SCHEDULE,
    Plan,
    Topology,
    Workload,
    check_memory,
)

BINDING = "binding"
"""Part of `agents.decision.situation.Decision.response_s`: completing a plan to its GPUs."""


def complete_plan(problem: PlanningProblem, plan: Plan, search: TrainerSearch) -> Plan:
    """Complete a plan of perfect devices, under whichever schedule of the trainer is quickest.

    Its own schedule was chosen for devices that the trainer does not have. Refused as
    `PlanBinder.bind` refuses.
    """
    binder = search.binder(problem.topology, problem.workload, problem.corrections)
    return search.bind(binder, without_schedule(plan, search.trainer)).plan


def schedule_plan(problem: PlanningProblem, plan: Plan, trainer: Trainer) -> Plan:
    """Complete a plan under the quickest of all schedules that the trainer runs, or its own.

    Unlike `complete_plan` also where the trainer has no list of its own. Refused as
    `PlanBinder.bind` refuses.
    """
    topology, workload, corrections = problem.topology, problem.workload, problem.corrections
    paced = survey_schedules(trainer, ())
    search = TrainerSearch(trainer=trainer)
    binder = search.binder(topology, workload, corrections, paced)
    bound = binder.bind(plan)
    found = [bound]
    for name in dict.fromkeys((plan.schedule, *unpaced_schedules(trainer, ()))):
        with suppress(ValueError):  # no order of it for these stages, or no room
            if trainer.runs_schedule(name):
                other = replace(bound.plan, schedule=name)
                check_memory(topology, workload, other)
                found.append(binder.bind(other))
    return min(found, key=lambda one: one.step_s).plan


def without_schedule(plan: Plan, trainer: Trainer) -> Plan:
    """Return the plan as `complete_plan` looks at it: equal ones are completed alike.

    A plan that says how GPUs are used keeps its schedule, and so do all where the trainer has any.
    """
    if plan.parallelism or not trainer.schedules:
        return plan
    return replace(plan, schedule=DEFAULT_SCHEDULE)


class BoundScheduler:
    """Binds what a scheduler of perfect devices decides; it sees its own plans as the last ones.

    A plan that stays keeps its GPUs. Where a plan cannot be bound the last one stays, and before
    the first one the search of bound plans decides; both are fallbacks.
    """

    def __init__(self, inner: Scheduler, search: TrainerSearch) -> None:
        self.name = str(getattr(inner, "name", type(inner).__name__))
        self._inner, self._search = inner, search
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
        begin_s = time.perf_counter()
        if last is not None and decision.plan == known:
            plan, is_fallback = last, decision.is_fallback
        else:
            plan, is_fallback = self._bound(situation, decision)
            self._sketches[plan] = sketch_of(plan) if is_fallback else decision.plan
        return Decision(
            plan=plan,
            level=level_of(last, plan),
            is_fallback=is_fallback,
            response_s={**decision.response_s, BINDING: time.perf_counter() - begin_s},
        )

    def _bound(self, situation: Situation, decision: Decision) -> tuple[Plan, bool]:
        """The decided plan as the trainer runs it, or a fallback and that it is one."""
        topology, workload = leave_reserved_memory(situation), situation.workload
        corrections = situation.corrections
        problem = PlanningProblem(topology=topology, workload=workload, corrections=corrections)
        try:
            plan = complete_plan(problem, decision.plan, self._search)
        except ValueError:
            last = situation.last_plan
            return last or self._search.quickest(topology, workload, corrections).plan, True
        return plan, decision.is_fallback


@runtime_checkable
class WeighsBound(Protocol):
    """A scheduler that weighs plans as a trainer runs them, such as Hi-PPO's coordinator."""

    def bound_for(self, search: TrainerSearch) -> Scheduler:
        """Return the scheduler for the trainer of a search."""


def bound_scheduler(inner: Scheduler, search: TrainerSearch) -> Scheduler:
    """Return a scheduler of what the trainer of a search runs; of perfect devices the one given.

    Those that do not weigh bound plans themselves get theirs completed.
    """
    if search.trainer.is_ideal:
        return inner
    if isinstance(inner, WeighsBound):
        return inner.bound_for(search)
    return BoundScheduler(inner, search)


def search_bound_scheduler(search: TrainerSearch, horizon_epochs: float) -> Scheduler:
    """Return the scheduler that searches bound plans in every epoch, see `PlanEveryEpoch`."""

    def find_plan(topology: Topology, workload: Workload) -> Plan:
        return search.quickest(topology, workload).plan

    return PlanEveryEpoch(horizon_epochs, find_plan)


def bound_planner(planner: Planner, trainer: Trainer) -> Planner:
    """Return a planner whose plans the trainer runs; of perfect devices the one given.

    Its plans are refused with an error where they cannot be bound, see `PlanBinder.bind`.
    """
    search = TrainerSearch(trainer=trainer)
    return planner if trainer.is_ideal else partial(_plan, planner, search)


def _plan(
    planner: Planner, search: TrainerSearch, problem: PlanningProblem, rng: np.random.Generator
) -> Plan:
    last = None if problem.last_plan is None else sketch_of(problem.last_plan)
    return complete_plan(problem, planner(replace(problem, last_plan=last), rng), search)


def pool_binder(world: DecisionWorld, search: TrainerSearch) -> Callable[[Pool], Pool]:
    """Return what binds the plans of a pool at the base figures of a world.

    The quickest plan of the search comes first. Plans that cannot be bound are left out.
    """
    topology, workload = replace(world.topology, movement=None), world.workload

    def bound(pool: Pool) -> Pool:
        binder = search.binder(topology, workload)
        known = {search.quickest(topology, workload).plan: 0}
        for plan, epoch in zip(pool.plans, pool.known_from, strict=True):
            try:
                own = search.bind(binder, without_schedule(plan, search.trainer)).plan
            except ValueError:
                continue
            known[own] = min(epoch, known.get(own, epoch))
        return Pool(plans=tuple(known), known_from=tuple(known.values()))

    return bound
