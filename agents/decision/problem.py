"""Input and output of a planner."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agents.decision.simulator import Simulator
from des import (
    DEFAULT_SCHEDULE,
    NO_CORRECTIONS,
    Corrections,
    IterationResult,
    Placement,
    Plan,
    Topology,
    Workload,
    simulate,
)
from des.base.lazy import lazy_imports
from des.program.lowering import lower
from des.schedules import require_quick

with lazy_imports(__name__):
    from des.compiled import simulate as compiled

MOST_PLANNED_DOMAINS = 128
"""Bound of the domains among which plans are searched: searches are made for up to 64, and their
tables of orders, links and moves grow with the square of the domains and more."""


def require_planned_domains(owner: str, topology: Topology) -> None:
    """Refuse a network of more domains than plans are searched for."""
    if topology.num_domains > MOST_PLANNED_DOMAINS:
        raise ValueError(
            f"{owner}: topology must have at most {MOST_PLANNED_DOMAINS} domains to plan for, "
            f"got {topology.num_domains}"
        )


@dataclass(frozen=True, kw_only=True)
class PlanningProblem:
    """One decision: the links as they are now, the job, the schedules, and who judges plans.

    Attributes
    ----------
    schedule
        Schedule of planners that choose none.
    schedules
        Schedules to choose from; none given means ``schedule`` alone.
    last_plan
        The plan in force; None before the first decision.
    """

    topology: Topology
    workload: Workload
    schedule: str = DEFAULT_SCHEDULE
    schedules: tuple[str, ...] = ()
    simulator: Simulator = simulate
    corrections: Corrections = NO_CORRECTIONS
    last_plan: Plan | None = None

    def __post_init__(self) -> None:
        require_planned_domains("planning problem", self.topology)
        for name in (self.schedule, *self.schedules):
            require_quick("planning problem", name)

    @property
    def choices(self) -> tuple[str, ...]:
        """Schedules to choose from."""
        return self.schedules or (self.schedule,)

    def plan(self, placement: Placement, schedule: str | None = None) -> Plan:
        """Complete a placement to a plan."""
        return Plan(placement=placement, schedule=schedule or self.schedule)

    def judge(self, plan: Plan) -> IterationResult:
        """Simulate an iteration of a plan."""
        return self.simulator(self.topology, self.workload, plan, self.corrections)

    def makespan_s(self, plan: Plan) -> float:
        """Time of an iteration of a plan, that of `judge` without all else. [s]"""
        if self.simulator is not compiled.simulate_compiled:
            return self.judge(plan).makespan_s
        program = lower(self.topology, self.workload, plan, self.corrections)
        return compiled.makespan_compiled_s(self.topology, program, self.corrections)


Planner = Callable[[PlanningProblem, np.random.Generator], Plan]
"""Chooses a plan; the generator is for planners that draw."""
