"""Re-planning during a training: a planner's proposal, taken where it pays for itself."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agents.decision.problem import Planner, PlanningProblem
from agents.decision.threshold import ReplanThreshold
from agents.replanning.payoff import pays, reachable_iteration_s
from des import (
    NO_CORRECTIONS,
    Corrections,
    InfeasiblePlacementError,
    Plan,
    Topology,
    UnreachableError,
    Workload,
)
from des.base.checks import require_count, require_positive
from des.costs.feasibility import domain_memory
from des.simulation.migration import migration_s
from des.training.background import beside_jobs
from des.training.training_settings import EpochView, TrainingRun
from des.world.domain_load import DomainLoad


@dataclass(frozen=True, kw_only=True)
class ChangePayoff:
    """Whether a change of plan saves more time in a run than it costs.

    Iteration times of both plans are those on the links as they stand and with the jobs that
    run, see `agents.replanning.payoff.pays`.

    Parameters
    ----------
    schedule
        For planners that decide on none.
    horizon_epochs
        Number of epochs for which the world is expected to stay as it is.
    """

    workload: Workload
    schedule: str
    run: TrainingRun
    horizon_epochs: float
    corrections: Corrections = NO_CORRECTIONS

    def __post_init__(self) -> None:
        require_positive("replanning", "horizon_epochs", self.horizon_epochs)

    def problem(self, view: EpochView) -> PlanningProblem:
        """Return what there is to plan in an epoch."""
        return PlanningProblem(
            topology=beside_jobs(view.topology, view.loads),
            workload=self.workload,
            schedule=self.schedule,
            corrections=self.corrections,
            last_plan=view.plan,
        )

    def pays(self, view: EpochView, old: Plan, new: Plan) -> bool:
        """Whether the change from the old plan to the new one pays."""
        problem = self.problem(view)
        new_s, old_s = reachable_iteration_s(problem, new), reachable_iteration_s(problem, old)
        if new_s >= old_s:  # no move needs to be simulated
            return False
        try:
            move_s = migration_s(
                view.topology,
                self.workload,
                old,
                new,
                restart_s=self.run.restart_s,
                pays_bytes=self.run.pays_bytes,
                corrections=self.corrections,
            )
        except UnreachableError:  # over links that are down now
            return False
        return pays(move_s, new_s, old_s, self.horizon_epochs * self.run.epoch_s)


@dataclass(frozen=True, kw_only=True)
class Replanning:
    """Asks a planner at every epoch and moves if that pays; the first plan is the planner's."""

    planner: Planner
    payoff: ChangePayoff

    def decide(self, rng: np.random.Generator) -> Callable[[EpochView], Plan]:
        """Return the planner of a run; the generator is for planners that draw."""
        return lambda view: self._plan(view, rng)

    def _plan(self, view: EpochView, rng: np.random.Generator) -> Plan:
        old = view.plan
        try:
            new = self.planner(self.payoff.problem(view), rng)
        except InfeasiblePlacementError:
            if old is None:
                raise
            return old  # no plan fits with the present jobs: the old one waits for room
        if old is None or new == old:
            return new
        return new if self.payoff.pays(view, old, new) else old


@dataclass(kw_only=True)
class TwoLevels:
    """A planner of a run in two levels: whole plans now and then, GPUs inside sites always.

    The planner is asked for the first plan, where a figure in use has changed by more than a
    threshold since, after some iterations, and where no binding of the plan in force fits. In
    between, changed loads of its sites bind its layers again where they are, if that pays.

    Attributes
    ----------
    threshold, every_iterations
        See above; None: no change, no number of iterations is enough.
    rebound
        Binds a plan again on a world, see `rebind_plan`; None: plans have no GPUs to bind.
    num_asked, num_rebound, longest_s
        Calls of the planner, new bindings, and the longest time that one took to find. [s]
    """

    planner: Callable[[EpochView], Plan]
    payoff: ChangePayoff
    threshold: ReplanThreshold | None = None
    every_iterations: int | None = None
    rebound: Callable[[Plan, Topology], Plan | None] | None = None
    num_asked: int = 0
    num_rebound: int = 0
    longest_s: float = 0.0
    _asked: tuple[Topology, int] | None = None
    _loads: tuple[DomainLoad, ...] = ()

    def __post_init__(self) -> None:
        if self.every_iterations is not None:
            require_count("two levels", "every_iterations", self.every_iterations)

    def __call__(self, view: EpochView) -> Plan:
        """Return the plan of an epoch."""
        now = beside_jobs(view.topology, view.loads)
        plan = None if self._is_due(view, now) else self._inside(view, now)
        if plan is not None:
            return plan
        self._asked, self._loads = (now, view.num_iterations), view.loads
        self.num_asked += 1
        return self.planner(view)

    def _is_due(self, view: EpochView, now: Topology) -> bool:
        if view.plan is None or self._asked is None:
            return True
        asked, since = self._asked
        every, threshold = self.every_iterations, self.threshold
        return (every is not None and view.num_iterations >= since + every) or (
            threshold is not None and threshold.is_exceeded(view.plan, asked, now)
        )

    def _inside(self, view: EpochView, now: Topology) -> Plan | None:
        """The plan in force, bound again where that pays or it does not fit; None: none fits."""
        old, loads = view.plan, self._loads
        assert old is not None
        fits = all(memory.fits for memory in domain_memory(now, self.payoff.workload, old))
        self._loads = view.loads
        used = {site for one in old.placements for site in one.domain_of_layer}
        is_calm = all(view.loads[site] == loads[site] for site in used)
        if self.rebound is None or (fits and is_calm):
            return old if fits else None
        began_s = time.perf_counter()
        new = self.rebound(old, now)
        self.longest_s = max(self.longest_s, time.perf_counter() - began_s)
        if new is None or new == old or (fits and not self.payoff.pays(view, old, new)):
            return old if fits else None
        self.num_rebound += 1
        return new
