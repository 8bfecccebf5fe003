"""Judge of pipelines over any domains, each with its own number of microbatches."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from agents.judge.level_fills import layer_times
from agents.judge.paced_refine import paced_refine
from agents.judge.paced_splits import paced_fill, paced_levels
from des import Corrections, Placement, Plan, Topology, Workload
from des.base.jit import lean_kernel
from des.compiled.many.desk import Desk, new_desk
from des.compiled.many.job import job_on
from des.compiled.many.layout import Real, Small, Whole
from des.compiled.many.paced import CountedPlans, Paces, paced_table, paces_of
from des.compiled.many.paced_bound import paced_least_s, paced_quickest, paced_scores
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Plans
from des.costs.memory import model_state_bytes

Order = tuple[int, ...]
"""Domains from the input on, each at most once."""


FEW_SCHEDULES = frozenset({"1f1b", "1f1b_4x", "zb_h1_4x", "zb_h1_32x"})
"""Schedules under which many orders and groups are judged, where they are allowed."""


class OrderRows(NamedTuple):
    """N orders of domains of at most S stages: how many there are, (N,), and which, (N, S)."""

    num_stages: Small
    domain: Small


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


def order_rows(orders: Sequence[Order], most_stages: int) -> OrderRows:
    """Write orders down as rows."""
    lengths = np.fromiter(map(len, orders), np.int32, len(orders))
    domain = np.zeros((len(orders), most_stages), dtype=np.int32)
    is_stage = np.arange(most_stages) < lengths[:, np.newaxis]
    domain[is_stage] = np.fromiter(chain.from_iterable(orders), np.int32, int(lengths.sum()))
    return OrderRows(lengths, domain)


@lean_kernel
def _write_unsplit(
    num_stages: Small,
    domain: Small,
    first: Whole,
    counts: Whole,
    schedules: Small,
    plans: Plans,
    repeated: Whole,
) -> None:
    """Write the pipelines of orders of groups under the schedules of each, and their microbatches.

    Parameters are those of `PacedJudge.quickest`.
    """
    plan = 0
    for group in range(counts.size):
        for order in range(first[group], first[group + 1]):
            for turn in range(schedules.shape[1]):
                plans.num_stages[plan] = num_stages[order]
                plans.schedule[plan] = schedules[group, turn]
                for stage in range(num_stages[order]):
                    plans.domain[plan, stage] = domain[order, stage]
                repeated[plan] = counts[group]
                plan += 1


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

    def _room(self, counts: Whole) -> Desk:
        """Room for pipelines of some numbers of microbatches, more than the job has too."""
        most = int(counts.max(initial=0))
        if most >= self._desk.num_slots:
            self._desk = new_desk(self.most_stages, most)
        return self._desk

    def least_s(self, plans: Plans, row: int) -> float:
        """Time that no order of the passes of one of the plans is quicker than, about. [s]"""
        count = self.workload.num_microbatches
        one = plan_rows(plans, np.array([row]))
        one.schedule[:] = 0
        batch = CountedPlans(self.job, _ANY_ORDER, one, np.array([count]))
        found_s: float = paced_least_s(batch, 0, self._desk)
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
        rows = order_rows(orders, self.most_stages)
        plans, repeated = self._unsplit(rows, np.asarray(counts, dtype=np.int64), numbers)
        self._fill(plans, repeated, len(numbers))
        return self.judged(plans, repeated, slack, best_s)

    def _fill(self, plans: Plans, counts: Whole, per_order: int) -> None:
        ends = np.empty(self.most_stages, dtype=np.int32)
        paced_fill(self._batch(plans, counts), self._times, per_order, ends)

    def _batch(self, plans: Plans, counts: Whole) -> CountedPlans:
        return CountedPlans(self.job, self.paces, plans, counts)

    def levels_s(self, orders: Sequence[Order], counts: Whole, schedule: int) -> Real:
        """About how long pipelines take at least, by a formula and unsplit: a first look. [s]"""
        return self.levels_of_rows_s(order_rows(orders, self.most_stages), counts, schedule)

    def levels_of_rows_s(self, orders: OrderRows, counts: Whole, schedule: int) -> Real:
        """See `levels_s`."""
        plans, _ = self._unsplit(orders, counts, np.array([schedule], dtype=np.int32))
        levels_s = np.empty(len(counts))
        paced_levels(self._batch(plans, counts), self._times, levels_s)
        return levels_s

    def _unsplit(
        self, orders: OrderRows, counts: Whole, schedules: Small, first: Whole | None = None
    ) -> tuple[Plans, Whole]:
        """Pipelines of orders, and their microbatches; layers are not split yet.

        Each order under some schedules, (S,), in turn; or those of G groups, see `quickest`, under
        the schedules of each, (G, S).
        """
        if first is None:
            first = np.arange(len(counts) + 1)
            schedules = schedules.reshape(1, -1).repeat(len(counts), axis=0)
        plans = paced_table(len(orders.num_stages) * schedules.shape[1], self.most_stages)
        repeated = np.empty(len(plans.num_stages), dtype=np.int64)
        _write_unsplit(*orders, first, counts, schedules, plans, repeated)
        return plans, repeated

    def judged_splits(
        self, rows: Sequence[tuple[Order, Sequence[int]]], slack: float = math.inf
    ) -> Scored:
        """Judge orders with numbers of layers that are given, under all schedules."""
        numbers = np.arange(len(self.schedules), dtype=np.int32)
        num_microbatches = np.full(len(rows), self.workload.num_microbatches)
        orders = order_rows([order for order, _ in rows], self.most_stages)
        plans, counts = self._unsplit(orders, num_microbatches, numbers)
        is_stage = np.arange(self.most_stages) < plans.num_stages[:: len(numbers), np.newaxis]
        num_layers = np.zeros(is_stage.shape, dtype=np.int32)
        num_layers[is_stage] = [num for _, nums in rows for num in nums]
        ends = np.where(is_stage, num_layers.cumsum(axis=1), 0)
        plans.end_layer[:] = ends.repeat(len(numbers), axis=0)
        return self.judged(plans, counts, slack)

    def judged(
        self, plans: Plans, counts: Whole, slack: float = math.inf, best_s: float = math.inf
    ) -> Scored:
        """Judge plans as they are.

        Those of several stages that must take ``slack`` times as long as the best of them before
        get ``inf``; ``best_s`` is the best to begin with.
        """
        found_s = times_s, overflow = np.empty((2, len(counts)))
        paced_scores(self._batch(plans, counts), self._room(counts), slack, best_s, *found_s)
        self.num_judged += len(counts)
        return Scored(plans, counts, times_s, overflow)

    def quickest(self, orders: OrderRows, first: Whole, counts: Whole, schedules: Small) -> Scored:
        """Fill and judge the orders of G groups; returns the quickest of each under S schedules.

        Rows are those of the groups, (G * S,), schedules in turn; those of a group without orders
        are undefined.

        Parameters
        ----------
        first
            First order of each group, and the end of the last one, (G + 1,).
        counts
            Microbatches of each group, (G,).
        schedules
            Numbers of the schedules of each group, (G, S).
        """
        num = schedules.shape[1]
        plans, repeated = self._unsplit(orders, counts, schedules, first)
        self._fill(plans, repeated, num)
        best = np.empty(schedules.shape, dtype=np.int64)
        found_s = times_s, overflow = np.empty((2, *schedules.shape))
        batch, room = self._batch(plans, repeated), self._room(counts)
        paced_quickest(batch, room, first * num, best, *found_s)
        self.num_judged += len(repeated)
        rows = plan_rows(plans, best.ravel())
        return Scored(rows, counts.repeat(num), times_s.ravel(), overflow.ravel())

    def refined(self, scored: Scored, most: int, *, any_schedule: bool = True) -> Scored:
        """Replace plans by quicker neighbours, in place; judges at most ``most`` of each.

        Parameters
        ----------
        any_schedule
            Whether plans may change their schedules too.
        """
        batch, room = self._batch(scored.plans, scored.counts), self._room(scored.counts)
        self.num_judged += paced_refine(batch, room, most, scored.times_s, any_schedule)
        return scored

    def placement(self, plans: Plans, row: int) -> Placement:
        """Placement of one of the plans."""
        num_stages = int(plans.num_stages[row])
        ends = plans.end_layer[row, :num_stages].tolist()
        counts = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
        return Placement.contiguous(plans.domain[row, :num_stages].tolist(), counts)

    def plan(self, plans: Plans, row: int) -> Plan:
        """One of the plans."""
        return Plan(
            placement=self.placement(plans, row),
            schedule=self.schedules[plans.schedule[row]],
            activation_compression=self.compression,
        )
