"""Fronts by going through all plans, or all that a bound does not rule out."""

from collections.abc import Sequence

import numpy as np

from agents.decision.depths import DEPTHS
from agents.judge.splits import walk_splits
from agents.planners.exact.exact import num_contiguous_placements
from agents.planners.pareto.fronts import (
    Archive,
    Front,
    every_split,
    join_orders,
    steady_judge,
    water_filled,
)
from agents.planners.pareto.plan_objectives import (
    TIME_COST_USED_UTILISATION,
    TIME_COST_UTILISATION,
    ObjectiveJudge,
)
from agents.planners.search.search import MOST_DOMAINS_FOR_ALL_ORDERS
from agents.planners.search.search_moves import Order, plans_of_orders
from agents.planners.search.search_refine import refined
from des import NO_CORRECTIONS, Corrections, Topology, Workload
from des.compiled.many.layout import Real

MOST_ENUMERATED = 1_000_000
"""Plans, schedules counted, up to which all are judged: 4 domains and 32 layers, 5 and 12."""

MOST_STEPS = 400_000_000
"""Steps of walks through splits, after which nothing is proven."""

_MOST_JUDGED = 20_000_000
_NUM_REFINED = 64
_SLACK = 1.5
"""Time of an order with even stages over the limit, from which on refining it is hopeless."""


def exact_front(
    topology: Topology,
    workload: Workload,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    schedules: Sequence[str] = DEPTHS,
    objectives: Sequence[str] = TIME_COST_UTILISATION,
    max_steps: int = MOST_STEPS,
    most_enumerated: int = MOST_ENUMERATED,
) -> Front:
    """Find all plans that none dominates, among those with one stage per domain that fit.

    Three ways, by the size of the case:

    - up to ``most_enumerated`` plans all are judged, whatever the objectives: exact;
    - with time, cost and one of the utilisations, branch and bound over all orders: exact where it
      ends within ``max_steps``, which `Front.is_proven` says;
    - with activations as well, all orders under all schedules with even stages, then all plans a
      move of layers away from one of the front, until none of them is better: not exact.

    Raises
    ------
    ValueError
        If there are more plans than can be enumerated and more than 6 domains.
    InfeasiblePlacementError
        If no plan fits.

    Notes
    -----
    What links charge and which GPUs are in use depends on the order of the domains alone, and
    utilisation on it and the time. So of an order only the quickest plan can be on the front of
    three objectives, and none that is slower than a known plan of an order that is no dearer (and,
    where used GPUs count, as good in that): that time is the limit of the walk through its splits
    (`agents.judge.splits`).
    """
    names = tuple(objectives)
    judge = steady_judge(topology, workload, corrections, schedules, _MOST_JUDGED)
    archive = Archive(judge, names)
    num_domains = topology.num_domains
    num_plans = num_contiguous_placements(num_domains, workload.num_layers) * len(schedules)
    if num_plans <= most_enumerated:
        for order in join_orders(judge.judge):
            for plans in every_split(judge.judge, order):
                archive.add(plans)
        return archive.front(is_proven=judge.judge.num_left > 0)
    if num_domains > MOST_DOMAINS_FOR_ALL_ORDERS:
        raise ValueError(
            f"exact front: there must be at most {MOST_DOMAINS_FOR_ALL_ORDERS} domains or "
            f"{most_enumerated} plans, got {num_domains} domains and {num_plans} plans"
        )
    if names in (TIME_COST_UTILISATION, TIME_COST_USED_UTILISATION):
        return _BranchAndBound(judge, archive, max_steps).run()
    archive.add(water_filled(judge.judge, join_orders(judge.judge))[0])
    archive.descend()
    return archive.front()


class _BranchAndBound:
    """Orders with their limits: the time at which one becomes worthless."""

    def __init__(self, judge: ObjectiveJudge, archive: Archive, max_steps: int) -> None:
        self._judge, self._archive, self._steps_left = judge, archive, max_steps
        self._counts_used = "used_utilisation" in archive.objectives
        search = judge.judge
        self._found = np.zeros((4096, search.most_stages), dtype=np.int32)

    def run(self) -> Front:
        search = self._judge.judge
        orders = join_orders(search)
        plans, _ = water_filled(search, orders)
        self._archive.add(plans)
        times_s = search.scores(plans).reshape(len(orders), -1)
        self._refine(orders, times_s)
        by_cost = sorted(range(len(orders)), key=lambda row: self._judge.order_cost(orders[row]))
        is_proven = all(self._walk(orders[row]) for row in by_cost)
        return self._archive.front(is_proven=is_proven)

    def _refine(self, orders: Sequence[Order], times_s: Real) -> None:
        """Refine the orders that may come below their limits, so that limits are tight."""
        search, rows = self._judge.judge, np.argsort(times_s.min(axis=1), kind="stable")
        for begin in range(0, len(rows), _NUM_REFINED):
            some = [
                row
                for row in rows[begin : begin + _NUM_REFINED].tolist()
                if times_s[row].min() <= _SLACK * self._limit_s(orders[row])
            ]
            if not some:
                continue
            plans = plans_of_orders([orders[row] for row in some], range(1), search.most_stages)
            plans.schedule[:] = times_s[some].argmin(axis=1)
            search.fill(plans)
            refined(search, plans, times_s[some].min(axis=1))
            self._archive.add(plans)

    def _limit_s(self, order: Order) -> float:
        """Iteration time from which on a plan of the order is dominated by a known one. [s]"""
        points, judge = self._archive.points, self._judge
        num_tokens = judge.judge.workload.tokens_per_iteration
        known = points[:, 1] <= judge.order_cost(order) / num_tokens
        if not known.any():
            return np.inf
        limits_s = points[known, 0] * num_tokens
        if self._counts_used:
            flops = judge.judge.workload.flops_per_iteration
            used_flops_per_s = judge.peak_flops_per_s[list(order)].sum()
            limits_s = np.maximum(limits_s, flops / (used_flops_per_s * -points[known, 2]))
        return float(limits_s.min())

    def _walk(self, order: Order) -> bool:
        """Judge all splits of an order that no bound rules out; returns whether it has ended."""
        search = self._judge.judge
        for schedule in range(len(search.schedules)):
            walk = search.walk(order, schedule)
            while walk.place[0] >= 0:
                if self._steps_left <= 0 or search.num_left <= 0:
                    return False
                before = int(walk.place[1])
                most_steps = before + self._steps_left
                count = walk_splits(walk, self._limit_s(order), most_steps, self._found)
                self._steps_left -= int(walk.place[1]) - before
                if count:
                    plans = plans_of_orders([order] * count, (schedule,), search.most_stages)
                    self._archive.add(plans._replace(end_layer=self._found[:count].copy()))
        return search.num_left > 0
