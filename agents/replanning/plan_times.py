"""Step times and bytes sent of some plans on one network after another."""

import math
from collections.abc import Sequence

import numpy as np

from agents.decision.world import DecisionWorld
from agents.judge.steady_judge import MISFIT, SteadyJudge
from agents.judge.step_times import step_times_on, step_wan_bytes
from agents.search.schedule_choice import INTERLEAVED
from agents.trainers.trainer import base_schedule
from des import (
    Corrections,
    Plan,
    Topology,
    UnreachableError,
    Workload,
    cross_domain_bytes,
    domain_memory,
)
from des.compiled.many.layout import Real, Whole
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Job, Plans
from des.compiled.simulate import simulate_compiled
from des.schedules import is_static


class PlanTimes:
    """Mean step times of some plans of a job on one network after another.

    Pipelines that the judge can hold are judged by it, all others side by side by
    `agents.judge.step_times`. What memory a plan needs is looked at once.
    """

    def __init__(self, judge: SteadyJudge, plans: Sequence[Plan] = ()) -> None:
        self._judge = judge
        self._plans: tuple[Plan, ...] = ()
        self._held: Whole = np.empty(0, dtype=np.int64)
        self._together = judge.plans_of([])
        self._needs: dict[int, Real] = {}
        self.add(plans)

    def add(self, plans: Sequence[Plan]) -> None:
        """Take in more plans, behind those there are."""
        held = np.flatnonzero([self._judge.can_hold(plan) for plan in plans])
        new = self._judge.plans_of([plans[row] for row in held.tolist()])
        self._together = Plans(*map(np.concatenate, zip(self._together, new, strict=True)))
        self._held = np.append(self._held, len(self._plans) + held)
        self._plans += tuple(plans)

    def on(self, topology: Topology, job: Job | None = None, *, since: int = 0) -> Real:
        """Times of all plans, (C,); ``inf`` of those that do not fit or cannot send. [s]

        Parameters
        ----------
        job
            What the judge says of the network, where it is at hand.
        since
            Row of the first plan to look up.
        """
        known = self._judge.job_of(topology) if job is None else job
        times_s: Real = self._on([topology], [known], since)[0]
        return times_s

    def on_all(self, topologies: Sequence[Topology]) -> Real:
        """Times of all plans on each of some networks, (T, C), see `on`. [s]"""
        return self._on(topologies, [self._judge.job_of(topology) for topology in topologies])

    def _on(self, topologies: Sequence[Topology], jobs: Sequence[Job], since: int = 0) -> Real:
        times_s = np.full((len(topologies), len(self._plans)), np.inf)
        asked = np.flatnonzero(self._held >= since)
        if asked.size:
            plans = plan_rows(self._together, asked)
            for row, job in enumerate(jobs):
                scores = self._judge.scores(job, plans)
                times_s[row, self._held[asked]] = np.where(scores < MISFIT, scores, np.inf)
        others = np.setdiff1d(np.arange(since, len(self._plans)), self._held).tolist()
        fits = np.array([[self._fits(row, one) for row in others] for one in topologies])
        some = [row for at, row in enumerate(others) if fits[:, at].any()]
        if some:
            found_s = _reached_times_s(
                topologies,
                self._judge.workload,
                [self._plans[row] for row in some],
                self._judge.corrections,
            )
            times_s[:, some] = np.where(fits[:, fits.any(axis=0)], found_s, np.inf)
        asked_s: Real = times_s[:, since:]
        return asked_s

    def _fits(self, row: int, topology: Topology) -> bool:
        room = np.array([domain.memory_bytes for domain in topology.domains])
        return bool((self._need(row, topology) <= room).all())

    def _need(self, row: int, topology: Topology) -> Real:
        """Memory that a plan needs in each domain, (K,): of most schedules always the same."""
        need = self._needs.get(row)
        if need is None:
            plan = self._plans[row]
            memories = domain_memory(topology, self._judge.workload, plan)
            need = np.array([memory.required_bytes for memory in memories])
            if is_static(plan.schedule) or base_schedule(plan.schedule) == INTERLEAVED:
                self._needs[row] = need
        return need


def _reached_times_s(
    topologies: Sequence[Topology],
    workload: Workload,
    plans: Sequence[Plan],
    corrections: Corrections,
) -> Real:
    """Times of steps, (T, P); ``inf`` where a plan cannot send. [s]"""
    try:
        return step_times_on(topologies, workload, plans, corrections, simulator=simulate_compiled)
    except UnreachableError:
        if len(topologies) == len(plans) == 1:
            return np.array([[np.inf]])
    if len(topologies) > 1:
        rows = [_reached_times_s([one], workload, plans, corrections) for one in topologies]
        return np.concatenate(rows)
    columns = [_reached_times_s(topologies, workload, [one], corrections) for one in plans]
    return np.concatenate(columns, axis=1)


def cost_bytes_of(world: DecisionWorld, plan: Plan) -> float:
    """Bytes of a step over all WAN links at base figures; ``nan`` where none lead on.

    Those of several copies of the model are `agents.judge.step_times.step_wan_bytes`.
    """
    topology, placement = world.topology, plan.placement
    if plan.replicas:
        return float(step_wan_bytes(world.workload, [plan])[0])
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
