"""Costs of plans in an epoch: their times, and what a change between two of them moves."""

import math
from collections.abc import Sequence

import numpy as np

from agents.decision.world import DecisionWorld
from agents.judge.change_costs import MoveRates
from agents.judge.copy_moves import CopyChanges
from agents.judge.moves import Ways, change_times, count_ways, fill_ways
from agents.judge.steady_judge import MISFIT, SteadyJudge
from agents.judge.step_times import step_times_on, step_wan_bytes
from agents.search.schedule_choice import INTERLEAVED
from agents.trainers.trainer import base_schedule
from des import (
    NO_CORRECTIONS,
    Corrections,
    Plan,
    Topology,
    UnreachableError,
    Workload,
    cross_domain_bytes,
    domain_memory,
    migration_s,
)
from des.compiled.eligibility import has_plain_transport
from des.compiled.many.layout import Real, Small, Whole
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Job, Plans
from des.compiled.simulate import moves_end_s, simulate_compiled
from des.costs.message_times import direct_links
from des.plan.replacement import Replacement
from des.program.moves import layer_moves
from des.schedules import is_static


class Changes:
    """All changes of S plans of a job into C others: what they send, and how long that takes.

    Where a change goes over direct links that stand still, serve in turn and each way by itself,
    its time is worked out in compiled code; others are simulated one by one.

    Parameters
    ----------
    plans
        Plans after a change.
    sources
        Plans before a change; None: the same plans.

    Attributes
    ----------
    moved_bytes
        Model state that is sent from row to column, shaped (S, C); 0 where it need not be paid for.
    """

    def __init__(
        self,
        workload: Workload,
        plans: Sequence[Plan],
        num_domains: int,
        replacement: Replacement,
        *,
        sources: Sequence[Plan] | None = None,
    ) -> None:
        self.workload, self.plans, self.replacement = workload, tuple(plans), replacement
        self.sources = self.plans if sources is None else tuple(sources)
        numbers: dict[Plan, int] = {}
        old, new = (
            np.array([numbers.setdefault(plan, len(numbers)) for plan in given], dtype=np.int64)
            for given in (self.sources, self.plans)
        )
        self._is_change = old[:, np.newaxis] != new
        self.moved_bytes: Real = np.zeros(self._is_change.shape)
        self._ways: Ways | None = None
        self._copies: CopyChanges | None = None
        if not replacement.pays_bytes:
            return
        if any(plan.replicas for plan in numbers):
            self._copies = CopyChanges(workload, self.sources, self.plans, num_domains)
            self.moved_bytes[:] = self._copies.moved_bytes
        else:
            self._ways = self._fill_ways(num_domains)

    def times_s(self, topology: Topology, corrections: Corrections = NO_CORRECTIONS) -> Real:
        """Time of each change as `des.migration_s` has it, from row to column, (S, C). [s]

        ``inf`` where a layer has to go where no links lead; 0 between equal plans.
        """
        restart_s = float(self.replacement.restart_s)
        if not self.replacement.pays_bytes:
            return np.where(self._is_change, restart_s, 0.0)
        times_s: Real = np.full(self._is_change.shape, np.nan)
        is_plain = topology.movement is None and has_plain_transport(topology)
        if is_plain and corrections.transport is None:
            goodput, latency_s = direct_links(topology, corrections)
            overhead_s = float(corrections.message_overhead_s)
            if self._ways is not None:
                change_times(self._ways, goodput, latency_s, overhead_s, restart_s, times_s)
            elif self._copies is not None:
                times_s = (
                    self._copies.times_s(MoveRates(goodput, latency_s, overhead_s)) + restart_s
                )
                times_s[np.isinf(times_s)] = np.nan
        times_s[~self._is_change] = 0.0
        for old, new in np.argwhere(np.isnan(times_s)).tolist():
            times_s[old, new] = self._simulated_s(topology, old, new, corrections)
        return times_s

    def _fill_ways(self, num_domains: int) -> Ways:
        old, new = (
            np.array([plan.placement.domain_of_layer for plan in given], dtype=np.int32)
            for given in (self.sources, self.plans)
        )
        layer_bytes = state_bytes_of_layers(self.workload)
        return ways_of(old, new, num_domains, layer_bytes, self.moved_bytes)

    def _simulated_s(
        self, topology: Topology, old: int, new: int, corrections: Corrections
    ) -> float:
        plans = self.sources[old], self.plans[new]
        moves = tuple(layer_moves(topology, self.workload, *plans, corrections))
        try:
            last_s = moves_end_s(topology, moves, corrections)
        except UnreachableError:
            return math.inf
        restart_s = float(self.replacement.restart_s)
        if last_s is None:  # the readable engine says which layer never arrives
            return migration_s(
                topology, self.workload, *plans, restart_s=restart_s, corrections=corrections
            )
        return last_s + restart_s


def state_bytes_of_layers(workload: Workload) -> Real:
    """Model state of each layer, (L,). [bytes]"""
    return workload.state_bytes * np.array(workload.num_parameters, dtype=np.float64)


def ways_of(old: Small, new: Small, num_domains: int, layer_bytes: Real, moved_bytes: Real) -> Ways:
    """Messages of changes between placements, by link; ``moved_bytes`` is written.

    Parameters
    ----------
    old, new
        Domains of the layers before and after, (S, L) and (C, L).
    layer_bytes
        As `state_bytes_of_layers`, (L,).
    moved_bytes
        Of each change, (S, C). [bytes]
    """
    first = np.empty(len(old) * len(new) + 1, dtype=np.int64)
    count_ways(old, new, num_domains, first)
    ways = Ways(
        first=first,
        way=np.empty(first[-1], dtype=np.int32),
        num_bytes=np.empty(first[-1]),
        num_messages=np.empty(first[-1]),
    )
    fill_ways(old, new, num_domains, layer_bytes, ways, moved_bytes)
    return ways


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

    def on_all(self, topologies: Sequence[Topology], *, since: int = 0) -> Real:
        """Times of all plans on each of some networks, (T, C), see `on`. [s]"""
        jobs = [self._judge.job_of(topology) for topology in topologies]
        return self._on(topologies, jobs, since)

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
