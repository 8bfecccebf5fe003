"""What a planner gets, and what it returns."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agents.simulator import Simulator
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
from des.schedules import require_quick


@dataclass(frozen=True, kw_only=True)
class PlanningProblem:
    """One decision: the links as they are now, the job, the schedule, and who judges plans.

    ``last_placement`` is where the layers are now; None before the first decision.
    """

    topology: Topology
    workload: Workload
    schedule: str = DEFAULT_SCHEDULE
    simulator: Simulator = simulate
    corrections: Corrections = NO_CORRECTIONS
    last_placement: Placement | None = None

    def __post_init__(self) -> None:
        require_quick("planning problem", self.schedule)

    def plan(self, placement: Placement) -> Plan:
        """Complete a placement to a plan."""
        return Plan(placement=placement, schedule=self.schedule)

    def simulate(self, placement: Placement) -> IterationResult:
        """Judge a placement."""
        return self.simulator(self.topology, self.workload, self.plan(placement), self.corrections)


Planner = Callable[[PlanningProblem, np.random.Generator], Placement]
"""Chooses a placement; the generator is for planners that draw."""
