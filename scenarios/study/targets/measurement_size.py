"""Worlds of a measurement and columns of its table; nothing is drawn for one column alone."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from agents.decision.frozen_network import freeze_topology
from agents.decision.problem import PlanningProblem
from agents.decision.run_epochs import CourseResult, epoch_situation, run_course
from agents.decision.situation import TIME_ONLY, MakeScheduler, Preference, Scheduler
from agents.hi_ppo.local.decide import LocalAgent
from agents.planners.pareto.proposals import Propose
from agents.replanning.bound_schedulers import bound_scheduler, complete_plan
from agents.search.trainer_search import TrainerSearch
from agents.trainers.ideal import IDEAL
from agents.trainers.trainer import Trainer
from des import STEADY, Plan, Topology, UniformLaw
from scenarios.study.targets.sizes import FULL, Sizes
from scenarios.study.targets.world_file import MOVING_CELLS, as_in_suite
from scenarios.study.trained_plans import trained_world
from scenarios.suites import SuiteWorld, suite

SMALL = (4, 5, 6)
"""Numbers of domains for which all orders can be searched."""

LARGE = 10

SITE_COUNTS = (2, 3, 4, 6, 8, LARGE)
"""Numbers of real sites whose worlds are measured: those for which references take seconds."""

LEAST_DRAWS = 32
"""Least number of draws of a suite for a figure that is claimed."""

FoundT = TypeVar("FoundT")


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Worlds, sizes and seed shared by all targets.

    Attributes
    ----------
    world
        A world from a file that takes the place of all suites; None: the suites.
    has_sites
        Whether the suites of real sites take the place of those on a plane.
    num_domains
        Numbers of domains of the worlds of suites on a plane, where a group names none.
    trainer
        Trainer that runs all plans; ideal for perfect devices.
    """

    sizes: Sizes
    seed: int = 0
    world: SuiteWorld | None = None
    has_sites: bool = False
    num_domains: tuple[int, ...] = SMALL
    trainer: Trainer = IDEAL
    _known: dict[Hashable, object] = field(default_factory=dict, repr=False, compare=False)

    def once(self, key: Hashable, find: Callable[[], FoundT]) -> FoundT:
        """Return the value of a key, found once for all columns; an error is raised again."""
        if key not in self._known:
            try:
                self._known[key] = find()
            except ValueError as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, ValueError):
            raise found.with_traceback(None)
        return found  # type: ignore[return-value]

    @cached_property
    def search(self) -> TrainerSearch:
        """Search of the trainer's plans, cached: columns ask for the same ones."""
        return TrainerSearch(trainer=self.trainer, once=self.once)

    def on_perfect_devices(self) -> "Scope":
        """Return the scope with perfect devices in place of the trainer."""
        if self.trainer.is_ideal:
            return self
        return self.once("perfect devices", lambda: replace(self, trainer=IDEAL, _known={}))

    def as_run(self, make: MakeScheduler) -> MakeScheduler:
        """Make schedulers whose plans the trainer runs, not for timing: `search` is cached."""
        if self.trainer.is_ideal:
            return make
        return lambda: bound_scheduler(make(), self.search)

    def plan_as_run(self, problem: PlanningProblem, plan: Plan) -> Plan | None:
        """Complete a plan to what the trainer runs; None where it cannot."""
        if self.trainer.is_ideal:
            return plan
        try:
            return complete_plan(problem, plan, self.search)
        except ValueError:
            return None

    @property
    def is_short(self) -> bool:
        """Whether too little is measured to claim anything."""
        return self.sizes.num_worlds * self.sizes.num_draws < LEAST_DRAWS

    def worlds(
        self, name: str, num: int | None = None, domains: Sequence[int] | None = None
    ) -> tuple[SuiteWorld, ...]:
        """First worlds of a suite with some numbers of domains, with the job as it is trained.

        By default these are ``num_domains``; a suite without worlds of these sizes yields none.
        Of real sites, where they take the place of that suite, none given are `SITE_COUNTS`.

        A world from a file takes their place if no numbers are given, or if it is as small, or as
        large; else there is none.
        """
        found = self._given_worlds(name, self.sizes.num_worlds if num is None else num, domains)
        return tuple(trained_world(world, self.trainer) for world in found)

    def _given_worlds(
        self, name: str, count: int, domains: Sequence[int] | None
    ) -> tuple[SuiteWorld, ...]:
        if self.has_sites:
            counts = domains or SITE_COUNTS
            of_sites = suite(f"sites_{name.removeprefix('eval_')}")
            return of_sites.with_domains(*counts).worlds(count, self.seed)
        if self.world is None:
            of_name = suite(name)
            if domains is None and not of_name.has_domains(*self.num_domains):
                return ()
            return of_name.with_domains(*(domains or self.num_domains)).worlds(count, self.seed)
        is_of_size = domains is None or _is_of_size(self.world.num_domains, domains)
        if name not in MOVING_CELLS or not is_of_size:
            return ()
        return (as_in_suite(name, self.world, FULL.num_epochs),)

    def draws(self, world: SuiteWorld) -> range:
        """Seeds of the draws of a world."""
        return range(self.seed, self.seed + self.sizes.num_draws)


@dataclass(frozen=True, kw_only=True)
class SchedulerColumn:
    """One scheduler on a scope: a column of the table. Episodes are run once each.

    Attributes
    ----------
    make
        Makes the scheduler as it plans for perfect devices; `Scope.as_run` of it is measured.
    propose
        All plans that the method has for a preference; None: the one that it decides for.
    only_world
        Reason why it can run on the world of the scope only; empty: on any.
    local
        Agent inside the domains; None: no decisions there.
    make_bounded
        Makes schedulers of the same policies with a bound on iteration times; None: has none.
    fixed_rules
        Make schedulers, by name, that choose by a fixed rule among plans that the method itself
        proposes; none where it has no proposals of its own.
    """

    name: str
    make: MakeScheduler
    scope: Scope
    propose: Propose | None = None
    only_world: str = ""
    local: LocalAgent | None = None
    make_bounded: MakeScheduler | None = None
    fixed_rules: Mapping[str, MakeScheduler] = field(default_factory=dict)
    _known: dict[tuple[str, int, str], CourseResult] = field(default_factory=dict, repr=False)

    def timed_scheduler(self) -> Scheduler:
        """Make the scheduler for timing: plans as the trainer runs them, without a cache."""
        return bound_scheduler(self.make(), TrainerSearch(trainer=self.scope.trainer))

    def on_perfect_devices(self) -> "SchedulerColumn":
        """Return the column with perfect devices in place of the trainer."""
        return replace(self, scope=self.scope.on_perfect_devices(), _known={})

    def still_plan(self, world: SuiteWorld, draw: int, preference: Preference = TIME_ONLY) -> Plan:
        """Decide on the first epoch of a draw, as if the world stayed like that.

        The figures of that epoch are the base figures too: of `SuiteWorld.topology` the load of
        the draw may be another, and a scheduler that expected it to come back would plan for that.
        """
        topology = freeze_topology(world, draw, 0)
        scheduler = self.scope.as_run(self.make)()
        scheduler.begin()
        situation = epoch_situation(world, topology, 0, None, preference=preference)
        return scheduler.decide(replace(situation, base=topology)).plan

    def episode(self, world: SuiteWorld, draw: int, fixed_rule: str = "") -> CourseResult:
        """Return the draw of a world under the scheduler, or one of ``fixed_rules``, by name."""
        key = (world.name, draw, fixed_rule)
        if key not in self._known:
            num_epochs = min(world.num_epochs, self.scope.sizes.num_epochs)
            make = self.fixed_rules[fixed_rule] if fixed_rule else self.make
            self._known[key] = run_course(
                world, draw, self.scope.as_run(make)(), num_epochs=num_epochs, must_fit=False
            )
        return self._known[key]


def misfits_of(column: SchedulerColumn, worlds: Sequence[SuiteWorld]) -> tuple[str, ...]:
    """Say in how many epochs the scheduler's plans do not fit into memory; nothing where all do.

    They are judged as if they did, so their times cannot be claimed.
    """
    episodes = [
        column.episode(world, draw) for world in worlds for draw in column.scope.draws(world)
    ]
    epochs = [epoch for episode in episodes for epoch in episode.rows]
    misfits = sum(not epoch.fits_memory for epoch in epochs)
    if not misfits:
        return ()
    return (f"missed as its plan does not fit into memory in {misfits} of {len(epochs)} epochs",)


def _is_of_size(num_domains: int, domains: Sequence[int]) -> bool:
    """Whether a world counts as small or large, as those of these numbers of domains do."""
    most_small = max(SMALL)
    if min(domains) > most_small:
        return num_domains > most_small
    return num_domains <= min(max(domains), most_small)


def on_still_links(world: SuiteWorld) -> SuiteWorld:
    """Return the world with links that never move; its load does."""
    return moving_by(world, STEADY, "still")


def fluctuating(world: SuiteWorld, fluctuation: float, jitter: float) -> SuiteWorld:
    """Return the world with uniform bandwidths and latencies, redrawn when the load is."""
    law = UniformLaw(
        bandwidth_fluctuation=fluctuation,
        latency_jitter=jitter,
        update_interval_s=world.load.dwell_epochs * world.epoch_s,
    )
    return moving_by(world, law, "fluctuating")


def moving_by(world: SuiteWorld, law: object, name: str) -> SuiteWorld:
    """Return the world under another law of the links, and draws of the load as they were."""
    topology: Topology = replace(world.topology, dynamics=law)  # type: ignore[arg-type]
    return replace(world, name=f"{world.name}-{name}", topology=topology, law=name)


def by_world(
    scope: Scope, worlds: Sequence[SuiteWorld], figure: Callable[[SuiteWorld, int], float]
) -> list[float]:
    """Mean of a figure over the draws of each world: one number per world, as draws share it."""
    return [
        float(np.mean([figure(world, draw) for draw in scope.draws(world)])) for world in worlds
    ]


def by_draw(
    scope: Scope, worlds: Sequence[SuiteWorld], figure: Callable[[SuiteWorld, int], float | None]
) -> list[list[float]]:
    """Figures of the draws of each world that has any; None is left out."""
    found = [
        [value for draw in scope.draws(world) if (value := figure(world, draw)) is not None]
        for world in worlds
    ]
    return [values for values in found if values]


def independent(groups: Sequence[Sequence[float]]) -> list[float]:
    """Values to make an interval of: a mean a world, or the draws where there is one world."""
    if len(groups) == 1:
        return list(groups[0])
    return [float(np.mean(values)) for values in groups]
