"""Re-planning during a training: a planner's proposal, taken where it pays for itself."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agents.decision.problem import Planner, PlanningProblem
from agents.decision.threshold import ReplanThreshold
from agents.replanning.payoff import pays
from des import (
    NO_CORRECTIONS,
    Corrections,
    InfeasiblePlacementError,
    Plan,
    Topology,
    UnreachableError,
    Workload,
)
from des.base.checks import require_positive
from des.costs.feasibility import domain_memory
from des.simulation.migration import migration_s
from des.training.background import beside_jobs
from des.training.training_settings import EpochView, TrainingRun


@dataclass(frozen=True, kw_only=True)
class Replanning:
    """Asks a planner at every epoch and moves if that saves more time than it costs.

    Iteration times of both plans are those on the links as they stand and with the jobs that
    run; the move is taken if that pays (`agents.replanning.payoff.pays`). The first plan is the
    planner's.

    Parameters
    ----------
    horizon_epochs
        Number of epochs for which the world is expected to stay as it is.
    """

    planner: Planner
    workload: Workload
    schedule: str
    run: TrainingRun
    horizon_epochs: float
    corrections: Corrections = NO_CORRECTIONS

    def __post_init__(self) -> None:
        require_positive("replanning", "horizon_epochs", self.horizon_epochs)

    def decide(self, rng: np.random.Generator) -> Callable[[EpochView], Plan]:
        """Return the planner of a run; the generator is for planners that draw."""
        return lambda view: self._plan(view, rng)

    def _plan(self, view: EpochView, rng: np.random.Generator) -> Plan:
        old = view.plan
        problem = PlanningProblem(
            topology=beside_jobs(view.topology, view.loads),
            workload=self.workload,
            schedule=self.schedule,
            corrections=self.corrections,
            last_plan=old,
        )
        try:
            new = self.planner(problem, rng)
        except InfeasiblePlacementError:
            if old is None:
                raise
            return old  # no plan fits with the present jobs: the old one waits for room
        if old is None or new == old:
            return new
        return new if self._pays(problem, view, old, new) else old

    def _pays(self, problem: PlanningProblem, view: EpochView, old: Plan, new: Plan) -> bool:
        new_s, old_s = _iteration_s(problem, new), _iteration_s(problem, old)
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


def asked_on_change(
    planner: Callable[[EpochView], Plan], threshold: ReplanThreshold, workload: Workload
) -> Callable[[EpochView], Plan]:
    """Return the planner of a run that plans only where a figure in use has changed.

    Before its first plan, and where the plan in force no longer fits into the memory, it plans
    as well. Changes count from its last plan on.
    """
    asked: list[Topology] = []

    def asking(view: EpochView) -> Plan:
        now = beside_jobs(view.topology, view.loads)
        plan = view.plan
        if (
            plan is not None
            and asked
            and not threshold.is_exceeded(plan, asked[-1], now)
            and all(memory.fits for memory in domain_memory(now, workload, plan))
        ):
            return plan
        asked[:] = [now]
        return planner(view)

    return asking


def _iteration_s(problem: PlanningProblem, plan: Plan) -> float:
    """Iteration time of a plan; endless where links that are down cut it apart."""
    try:
        return problem.makespan_s(plan)
    except UnreachableError:
        return math.inf
