"""Judge of pipelines over any domains, each with its own number of microbatches."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from agents.judge.paced_refine import paced_refine
from agents.judge.paced_splits import paced_fill
from des import Corrections, Placement, Plan, Topology, Workload
from des.compiled.many.job import job_on
from des.compiled.many.layout import Real, Whole
from des.compiled.many.paced import Paces, new_desk, paced_scores, paced_table, paces_of
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Plans

Order = tuple[int, ...]
"""Domains from the input on, each at most once."""


FEW_SCHEDULES = frozenset({"1f1b", "1f1b_4x", "zb_h1_4x", "zb_h1_32x"})
"""Schedules under which many orders and groups are judged, where they are allowed."""


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

    Parameters
    ----------
    extra_state_bytes
        Memory of a parameter on top of the job's, as of an outer optimiser. [bytes]

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
        extra_state_bytes: float = 0.0,
    ) -> None:
        self.workload, self.schedules, self.compression = workload, tuple(schedules), compression
        sent = replace(workload, message_bytes=workload.message_bytes / compression)
        job = job_on(topology, sent if compression > 1.0 else workload, corrections)
        self.job = job._replace(bytes_per_parameter=job.bytes_per_parameter + extra_state_bytes)
        self.paces = paces_of(schedules)
        self.most_stages = min(topology.num_domains, workload.num_layers)
        self._desk = new_desk(self.most_stages, workload.num_microbatches)
        self.num_judged = 0

    def scored(
        self, orders: Sequence[Order], counts: Sequence[int], schedules: Sequence[int] = ()
    ) -> Scored:
        """Fill and judge the pipelines of orders under some schedules or all, order by order."""
        numbers = schedules or range(len(self.schedules))
        num_schedules = len(numbers)
        plans = paced_table(len(orders) * num_schedules, self.most_stages)
        plans.num_stages[:] = np.repeat([len(one) for one in orders], num_schedules)
        plans.schedule[:] = np.tile(numbers, len(orders))
        for row, order in enumerate(orders):
            begin = row * num_schedules
            plans.domain[begin : begin + num_schedules, : len(order)] = order
        repeated = np.repeat(np.asarray(counts, dtype=np.int64), num_schedules)
        paced_fill(self.job, self.paces, plans, repeated, num_schedules)
        return self.judged(plans, repeated)

    def judged_splits(self, rows: Sequence[tuple[Order, Sequence[int]]]) -> Scored:
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
        return self.judged(plans, counts)

    def judged(self, plans: Plans, counts: Whole) -> Scored:
        """Judge plans as they are."""
        times_s, overflow = np.empty((2, len(counts)))
        paced_scores(self.job, self.paces, plans, counts, self._desk, times_s, overflow)
        self.num_judged += len(counts)
        return Scored(plans, counts, times_s, overflow)

    def refined(self, scored: Scored, most: int) -> Scored:
        """Replace plans by the best of their neighbours while that is quicker, in place.

        Judges at most ``most`` neighbours of each, and completes its last step.
        """
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
        paced_fill(self.job, alone, plans, counts, 1)
        times_s, overflow = np.empty((2, len(orders)))
        paced_scores(self.job, alone, plans, counts, self._desk, times_s, overflow)
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
