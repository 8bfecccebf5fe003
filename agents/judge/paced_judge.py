"""Judge of pipelines over any domains, each with its own number of microbatches."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from agents.judge.paced_refine import paced_refine
from agents.judge.paced_splits import layer_times, paced_fill, paced_levels
from des import Corrections, Placement, Plan, Topology, Workload
from des.compiled.many.job import job_on
from des.compiled.many.layout import Real, Small, Whole
from des.compiled.many.paced import Paces, new_desk, paced_table, paces_of
from des.compiled.many.paced_bound import paced_least_s, paced_scores
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Plans
from des.costs.memory import model_state_bytes

Order = tuple[int, ...]
"""Domains from the input on, each at most once."""


FEW_SCHEDULES = frozenset({"1f1b", "1f1b_4x", "zb_h1_4x", "zb_h1_32x"})
"""Schedules under which many orders and groups are judged, where they are allowed."""

_ANY_ORDER = Paces(depth=np.array([1e9]), behind=np.array([1e9]), ahead=np.array([1e9]))
"""Paces that hold back neither forward passes nor weight gradients."""


class Scored(NamedTuple):
    """Pipelines of some orders: rows of plans (N,), their microbatches and iteration times (N,).

    Times are ``inf`` where a plan does not fit; ``overflow`` (N,) then says what it lacks, see
    `des.compiled.many.steady.overflows`. [s]
    """

    plans: Plans
    counts: Whole
    times_s: Real
    overflow: Real


class PacedJudge:
    """Judges pipelines of a job on one network that stands still, under schedules with a pace.

    Times are those of `des.simulate` to the last bit where links serve in turn and each border has
    a direct link. Elsewhere a relay counts as one link: an estimate, to choose the plans that are
    then simulated.

    Attributes
    ----------
    num_judged
        Plans judged, the same ones counted again.
    """

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        corrections: Corrections,
        *,
        schedules: Sequence[str],
        compression: float = 1.0,
    ) -> None:
        self.workload, self.schedules, self.compression = workload, tuple(schedules), compression
        sent = replace(workload, message_bytes=workload.message_bytes / compression)
        self.job = job_on(topology, sent if compression > 1.0 else workload, corrections)
        self._times = layer_times(self.job)
        self.paces = paces_of(schedules)
        self.most_stages = min(topology.num_domains, workload.num_layers)
        self._desk = new_desk(self.most_stages, workload.num_microbatches)
        self.num_judged = 0

    def with_state(self, extra_bytes: float, num_shards: int = 1) -> "PacedJudge":
        """Judge the same job with another state of the model; nothing is judged by it yet.

        Parameters
        ----------
        extra_bytes
            Memory of a parameter on top of the job's, as of an outer optimiser. [bytes]
        num_shards
            Copies of the model that share the optimiser's state and update a part each.
        """
        other = copy(self)
        held = model_state_bytes(self.workload, 1.0, None, num_shards=num_shards)
        other.job = self.job._replace(
            bytes_per_parameter=held + extra_bytes,
            update_s=self.job.update_s / np.array([num_shards, 1]),
        )
        other.num_judged = 0
        return other

    def least_s(self, plans: Plans, row: int) -> float:
        """Time that no order of the passes of one of the plans is quicker than, about. [s]"""
        count = self.workload.num_microbatches
        one = plan_rows(plans, np.array([row]))
        one.schedule[:] = 0
        found_s: float = paced_least_s(self.job, _ANY_ORDER, one, 0, count, self._desk)
        return found_s

    def scored(
        self,
        orders: Sequence[Order],
        counts: Sequence[int],
        schedules: Sequence[int] = (),
        *,
        slack: float = math.inf,
        best_s: float = math.inf,
    ) -> Scored:
        """Fill and judge the pipelines of orders under some schedules or all, order by order.

        See `judged` for ``slack`` and ``best_s``.
        """
        numbers = np.array(schedules or range(len(self.schedules)), dtype=np.int32)
        plans, num = self._unsplit(orders, numbers), len(numbers)
        repeated = np.repeat(np.asarray(counts, dtype=np.int64), num)
        paced_fill(self.job, self._times, self.paces, plans, repeated, num)
        return self.judged(plans, repeated, slack, best_s)

    def levels_s(self, orders: Sequence[Order], counts: Whole, schedule: int) -> Real:
        """About how long pipelines take at least, by a formula and unsplit: a first look. [s]"""
        plans = self._unsplit(orders, np.array([schedule], np.int32))
        levels_s = np.empty(len(orders))
        paced_levels(self.job, self._times, self.paces, plans, counts, levels_s)
        return levels_s

    def _unsplit(self, orders: Sequence[Order], schedules: Small) -> Plans:
        """Pipelines of orders under some schedules, order by order; layers are not split yet."""
        num_orders, num = len(orders), len(schedules)
        lengths = np.fromiter(map(len, orders), np.int32, num_orders)
        domain = np.zeros((num_orders, self.most_stages), dtype=np.int32)
        is_stage = np.arange(self.most_stages) < lengths[:, np.newaxis]
        domain[is_stage] = np.fromiter(chain.from_iterable(orders), np.int32, int(lengths.sum()))
        return Plans(
            num_stages=lengths.repeat(num),
            schedule=np.broadcast_to(schedules, (num_orders, num)).flatten(),
            domain=domain.repeat(num, axis=0),
            end_layer=np.zeros((num_orders * num, self.most_stages), dtype=np.int32),
        )

    def judged_splits(
        self, rows: Sequence[tuple[Order, Sequence[int]]], slack: float = math.inf
    ) -> Scored:
        """Judge orders with numbers of layers that are given, under all schedules."""
        num_schedules = len(self.schedules)
        plans = paced_table(len(rows) * num_schedules, self.most_stages)
        for row, (order, num_layers) in enumerate(rows):
            own = slice(row * num_schedules, (row + 1) * num_schedules)
            plans.num_stages[own] = len(order)
            plans.schedule[own] = np.arange(num_schedules)
            plans.domain[own, : len(order)] = order
            plans.end_layer[own, : len(order)] = np.cumsum(num_layers)
        counts = np.full(len(plans.num_stages), self.workload.num_microbatches)
        return self.judged(plans, counts, slack)

    def judged(
        self, plans: Plans, counts: Whole, slack: float = math.inf, best_s: float = math.inf
    ) -> Scored:
        """Judge plans as they are.

        Those of several stages that must take ``slack`` times as long as the best of them before
        get ``inf``; ``best_s`` is the best to begin with.
        """
        found_s = times_s, overflow = np.empty((2, len(counts)))
        paced_scores(self.job, self.paces, plans, counts, self._desk, slack, best_s, *found_s)
        self.num_judged += len(counts)
        return Scored(plans, counts, times_s, overflow)

    def refined(self, scored: Scored, most: int) -> Scored:
        """Replace plans by quicker neighbours, in place; judges at most ``most`` of each."""
        self.num_judged += paced_refine(
            self.job, self.paces, scored.plans, scored.counts, self._desk, most, scored.times_s
        )
        return scored

    def best(self, orders: Sequence[Order], count: int, schedule: int, most: int) -> Scored:
        """Fill orders under one schedule, and refine the best of them under that alone."""
        plans = paced_table(len(orders), self.most_stages)
        plans.num_stages[:] = [len(one) for one in orders]
        for number, order in enumerate(orders):
            plans.domain[number, : len(order)] = order
        alone = Paces(*(field[schedule : schedule + 1] for field in self.paces))
        counts = np.full(len(orders), count)
        paced_fill(self.job, self._times, alone, plans, counts, 1)
        found_s = times_s, overflow = np.empty((2, len(orders)))
        paced_scores(self.job, alone, plans, counts, self._desk, math.inf, math.inf, *found_s)
        row = np.array([int(times_s.argmin())])
        best = Scored(
            plan_rows(plans, row),
            counts[:1],
            times_s[row],
            overflow[row],
        )
        self.num_judged += len(orders) + paced_refine(
            self.job, alone, best.plans, best.counts, self._desk, most, best.times_s
        )
        best.plans.schedule[:] = schedule
        return best

    def placement(self, plans: Plans, row: int) -> Placement:
        """Placement of one of the plans."""
        num_stages = int(plans.num_stages[row])
        ends = plans.end_layer[row, :num_stages]
        return Placement.contiguous(
            plans.domain[row, :num_stages].tolist(), np.diff(ends, prepend=0).tolist()
        )

    def plan(self, plans: Plans, row: int) -> Plan:
        """One of the plans."""
        return Plan(
            placement=self.placement(plans, row),
            schedule=self.schedules[plans.schedule[row]],
            activation_compression=self.compression,
        )
