"""Iteration times and bytes sent of some plans on one network after another."""

import math
from collections.abc import Sequence

import numpy as np

from agents.decision.world import DecisionWorld
from agents.judge.steady_judge import MISFIT, SteadyJudge
from des import (
    NO_CORRECTIONS,
    Corrections,
    Plan,
    Topology,
    UnreachableError,
    Workload,
    cross_domain_bytes,
)
from des.compiled.many.layout import Real
from des.compiled.simulate import simulate_compiled


class PlanTimes:
    """Iteration times of some plans on one network after another."""

    def __init__(self, judge: SteadyJudge, plans: Sequence[Plan]) -> None:
        self._judge, self._plans = judge, plans
        self._held = np.array([judge.can_hold(plan) for plan in plans])
        held = [plan for plan, is_held in zip(plans, self._held, strict=True) if is_held]
        self._together = judge.plans_of(held)

    def on(self, topology: Topology) -> Real:
        """Times of all plans, (C,); ``inf`` of those that do not fit or cannot send. [s]"""
        times_s = np.empty(len(self._plans))
        if self._held.any():
            scores = self._judge.scores(self._judge.job_of(topology), self._together)
            times_s[self._held] = np.where(scores < MISFIT, scores, np.inf)
        for row in np.flatnonzero(~self._held).tolist():
            times_s[row] = fitting_iteration_s(
                topology, self._judge.workload, self._plans[row], self._judge.corrections
            )
        return times_s


def fitting_iteration_s(
    topology: Topology, workload: Workload, plan: Plan, corrections: Corrections = NO_CORRECTIONS
) -> float:
    """Time of an iteration by `des`; ``inf`` where the plan does not fit or cannot send. [s]"""
    try:
        result = simulate_compiled(topology, workload, plan, corrections)
    except UnreachableError:
        return math.inf
    return result.makespan_s if result.fits_memory else math.inf


def cost_bytes_of(world: DecisionWorld, plan: Plan) -> float:
    """Bytes of an iteration over all WAN links at base figures; ``nan`` where none lead on."""
    topology, placement = world.topology, plan.placement
    borders = {
        (upper.domain, lower.domain)
        for upper, lower in zip(placement.stages, placement.stages[1:], strict=False)
    }
    ways = borders | {(lower, upper) for upper, lower in borders}
    if ways <= topology.link_index.keys() and plan == Plan(
        placement=placement, schedule=plan.schedule
    ):
        return cross_domain_bytes(world.workload, placement)
    try:
        return simulate_compiled(topology, world.workload, plan).communication_cost_bytes
    except UnreachableError:
        return math.nan
