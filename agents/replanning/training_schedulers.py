"""Schedulers and rules of re-planning in a training run: they decide at its borders of epochs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from agents.decision.situation import Scheduler, Situation
from agents.replanning.pool import Pool, candidate_pool
from agents.replanning.rules import Rule
from agents.replanning.tables import tables_of
from des import (
    NO_CORRECTIONS,
    Corrections,
    InfeasiblePlacementError,
    Placement,
    Plan,
    Topology,
    Workload,
)
from des.compiled.simulate import simulate_compiled
from des.plan.replacement import Replacement
from des.training.background import beside_jobs
from des.training.foresight import foreseen_views
from des.training.training_settings import EpochView, TrainingRun
from des.world.domain_load import DomainLoad

SAMPLE_SHIFT = 1 << 40
"""Added to a seed for draws from which a rule learns the law of the network."""


@dataclass(frozen=True, kw_only=True)
class ScheduledRun:
    """Lets a scheduler decide every epoch of a training run.

    It sees the links as they stand, the speeds that other jobs leave and what memory they hold.
    """

    scheduler: Scheduler
    topology: Topology
    workload: Workload
    run: TrainingRun
    corrections: Corrections = NO_CORRECTIONS

    def decide(self) -> Callable[[EpochView], Plan]:
        """Return the planner of a run; the scheduler forgets what it saw before."""
        self.scheduler.begin()
        return self._plan

    def _plan(self, view: EpochView) -> Plan:
        try:
            return self.scheduler.decide(self._situation(view)).plan
        except InfeasiblePlacementError:
            if view.plan is None:
                raise
            return view.plan  # no plan fits with the present jobs: it waits for room

    def _situation(self, view: EpochView) -> Situation:
        speed_alone = [DomainLoad(utilisation=load.utilisation) for load in view.loads]
        loads = view.loads if any(_is_busy(load) for load in view.loads) else ()
        return Situation(
            topology=beside_jobs(view.topology, speed_alone),
            base=replace(self.topology, movement=None),
            workload=self.workload,
            epoch=view.epoch,
            epoch_s=self.run.epoch_s,
            replacement=Replacement(restart_s=self.run.restart_s, pays_bytes=self.run.pays_bytes),
            last_plan=view.plan,
            loads=loads,
            corrections=self.corrections,
        )


def _is_busy(load: DomainLoad) -> bool:
    return load.utilisation > 0 or load.memory_occupancy > 0 or load.queue_length > 0


@dataclass(frozen=True, kw_only=True)
class TrainingEpisode:
    """A training run as a world that is decided epoch by epoch, on the networks of its epochs.

    The network of an epoch is that of its nominal start, ``epoch * epoch_s``, with the jobs that
    run then; in the run an epoch may begin later, with its first iteration. Each draw has a seed of
    its own; that of the run is the run itself.
    """

    topology: Topology
    workload: Workload
    schedule: str
    run: TrainingRun
    corrections: Corrections = NO_CORRECTIONS
    name: str = "training run"

    def __post_init__(self) -> None:
        if self.run.num_epochs is None:
            raise ValueError("training episode: num_epochs of the run must be given, got none")

    @property
    def epoch_s(self) -> float:
        """Nominal length of an epoch. [s]"""
        return self.run.epoch_s

    @property
    def num_epochs(self) -> int:
        """Decisions of the run."""
        assert self.run.num_epochs is not None
        return self.run.num_epochs

    @property
    def replacement(self) -> Replacement:
        """Price of a change of plan."""
        return Replacement(restart_s=self.run.restart_s, pays_bytes=self.run.pays_bytes)

    @cached_property
    def _known(self) -> dict[int, tuple[Topology, ...]]:
        return {}

    def networks(self, draw_seed: int) -> tuple[Topology, ...]:
        """Return the networks of all epochs of a draw, standing still."""
        known = self._known
        if draw_seed not in known:
            run = replace(self.run, seed=draw_seed)
            known[draw_seed] = tuple(
                beside_jobs(view.topology, view.loads)
                for view in foreseen_views(self.topology, run)
            )
        return known[draw_seed]

    def epoch_topology(self, draw_seed: int, epoch: int) -> Topology:
        """World as an epoch of a draw finds it."""
        return self.networks(draw_seed)[epoch]

    @cached_property
    def iterations_per_epoch(self) -> int:
        """Iterations of the even plan over all domains in an epoch at base figures, at least 1."""
        base = replace(self.topology, movement=None)
        num_layers = self.workload.num_layers
        placement = Placement.even(min(base.num_domains, num_layers), num_layers)
        plan = Plan(placement=placement, schedule=self.schedule)
        step_s = simulate_compiled(base, self.workload, plan, self.corrections).makespan_s
        return max(1, round(self.epoch_s / step_s))


def plans_of_rule(
    rule: Rule, episode: TrainingEpisode, bind: Callable[[Pool], Pool] | None = None
) -> tuple[Plan, ...]:
    """Plan of each epoch of a run by a rule of re-planning.

    The plans to choose from are those of `agents.replanning.pool.candidate_pool`: a rule takes
    none before an epoch whose network yields it, but for the clairvoyant. Rules that know the law
    see another draw of it.

    Parameters
    ----------
    bind
        Makes plans of a trainer of those found; None: they stay.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits at base figures.
    """
    seed, corrections = episode.run.seed, episode.corrections
    pool = candidate_pool(episode, seed, corrections=corrections, networks=episode.networks(seed))
    pool = pool if bind is None else bind(pool)
    tables = tables_of(
        episode,
        seed,
        pool.plans,
        corrections=corrections,
        networks=episode.networks(seed),
        known_from=pool.known_from,
    )
    samples = tables_of(episode, seed + SAMPLE_SHIFT, pool.plans, corrections=corrections)
    return tuple(pool.plans[number] for number in np.asarray(rule(tables, samples)).tolist())


def plan_ahead(plans: tuple[Plan, ...]) -> Callable[[EpochView], Plan]:
    """Return the planner of a run that takes the plan of each epoch from a list."""
    return lambda view: plans[view.epoch]
