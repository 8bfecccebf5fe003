"""Planners, rules, schedulers and trained policies that decide in a training run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agents.planners.names import PLANNER_NAMES, POLICY, RULE_NAMES, SEARCH_BOUND
from des import Corrections, Plan, Topology, Workload
from des.base.command import UsageError
from des.base.lazy import lazy_imports
from des.training.training_settings import Planner, TrainingRun

with lazy_imports(__name__):
    from agents.decision import threshold
    from agents.decision.situation import Scheduler
    from agents.hi_ppo import schedulers
    from agents.planners import table
    from agents.replanning import bound_schedulers, training_planner, training_schedulers
    from agents.replanning import table as replanning_table
    from agents.search import bind, sketches, trainer_search
    from agents.trainers.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class Decided:
    """A training run that is decided epoch by epoch, by plans of a trainer."""

    topology: Topology
    workload: Workload
    schedule: str
    run: TrainingRun
    horizon_epochs: float
    corrections: Corrections
    trainer: Trainer


def in_two_levels(
    planner: Planner,
    decided: Decided,
    share: float | None,
    every_iterations: int | None,
) -> training_planner.TwoLevels:
    """Return a planner of whole plans that is asked now and then, see `TwoLevels`.

    Raises
    ------
    ValueError
        If the share of change, the iterations or the horizon are out of range.
    """
    trainer, workload, corrections = decided.trainer, decided.workload, decided.corrections

    def rebound(plan: Plan, topology: Topology) -> Plan | None:
        binder = bind.PlanBinder(
            topology=topology, workload=workload, trainer=trainer, corrections=corrections
        )
        found = sketches.rebind_plan(binder, plan)
        return None if found is None else found.plan

    return training_planner.TwoLevels(
        planner=planner,
        payoff=_payoff(decided),
        threshold=None if share is None else threshold.ReplanThreshold(share=share),
        every_iterations=every_iterations,
        rebound=None if trainer.is_ideal else rebound,
    )


def planner_of(name: str, decided: Decided) -> Planner:
    """Return what decides in a run, by its name.

    Raises
    ------
    UsageError
        If the name is that of the policies and none are shipped.
    ValueError
        If the horizon is out of range, or no plan of a rule fits.
    """
    if name in RULE_NAMES:
        episode = training_schedulers.TrainingEpisode(
            topology=decided.topology,
            workload=decided.workload,
            schedule=decided.schedule,
            run=decided.run,
            corrections=decided.corrections,
        )
        rule, search = replanning_table.RULES[name], _search_of(decided)
        is_ideal = decided.trainer.is_ideal
        bound = None if is_ideal else bound_schedulers.pool_binder(episode, search)
        return training_schedulers.plan_ahead(
            training_schedulers.plans_of_rule(rule, episode, bound)
        )
    if name not in PLANNER_NAMES:
        scheduled = training_schedulers.ScheduledRun(
            scheduler=_scheduler(name, decided),
            topology=decided.topology,
            workload=decided.workload,
            run=decided.run,
            corrections=decided.corrections,
        )
        return scheduled.decide()
    replanning = training_planner.Replanning(
        planner=bound_schedulers.bound_planner(table.PLANNERS[name], decided.trainer),
        payoff=_payoff(decided),
    )
    return replanning.decide(np.random.default_rng(decided.run.seed))


def _payoff(decided: Decided) -> training_planner.ChangePayoff:
    return training_planner.ChangePayoff(
        workload=decided.workload,
        schedule=decided.schedule,
        run=decided.run,
        horizon_epochs=decided.horizon_epochs,
        corrections=decided.corrections,
    )


def _scheduler(name: str, decided: Decided) -> Scheduler:
    """Make the scheduler of a name, whose plans the trainer runs."""
    search = _search_of(decided)
    if name == SEARCH_BOUND:
        if decided.trainer.is_ideal:
            raise UsageError(f"planner {name} needs a trainer that binds GPUs, got ideal")
        return bound_schedulers.search_bound_scheduler(search, decided.horizon_epochs)
    make = (
        schedulers.make_shared_scheduler() if name == POLICY else replanning_table.SCHEDULERS[name]
    )
    if make is None:
        raise UsageError(f"planner must be another than {POLICY}, as no policy is shipped")
    return bound_schedulers.bound_scheduler(make(), search)


def _search_of(decided: Decided) -> trainer_search.TrainerSearch:
    return trainer_search.TrainerSearch(trainer=decided.trainer)
