"""The best plans of several objectives: all that no other plan dominates."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from agents.judge.search_judge import Judge
from agents.judge.steady_judge import MISFIT
from agents.planners.pareto.indicators import Points, non_dominated
from agents.planners.pareto.plan_objectives import ObjectiveJudge, PlanFigures, figures_of_plans
from agents.planners.search.search_moves import (
    Order,
    all_orders,
    joined,
    neighbours,
    order_of,
    plans_of_orders,
    resplits,
)
from des import Corrections, InfeasiblePlacementError, Topology, Workload
from des.compiled.many.layout import Real
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Plans
from des.compiled.simulate import simulate_compiled

MOST_EXPLORED = 1_000_000
"""Plans that exploring a front judges, about."""

_MOST_AT_ONCE, _MOST_SPLIT = 65_536, 64
_ROUNDS_AFTER_ORDERS = 4


@dataclass(frozen=True, kw_only=True)
class Front:
    """Plans of which none dominates another, those of least time first.

    Attributes
    ----------
    num_judged
        Plans that were judged on the way.
    is_proven
        Whether no plan with one stage per domain that fits, under any of the schedules, dominates
        one of these, and each of those is equalled or dominated by one of these.
    """

    figures: tuple[PlanFigures, ...]
    objectives: tuple[str, ...]
    num_judged: int
    is_proven: bool = False

    @property
    def points(self) -> Points:
        """Objectives of the plans, shaped (plans, objectives); less is better in all."""
        rows = [figures.point(self.objectives) for figures in self.figures]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.objectives))


def front_of_figures(
    figures: Iterable[PlanFigures],
    objectives: Sequence[str],
    *,
    num_judged: int,
    is_proven: bool = False,
) -> Front:
    """Keep the plans that fit and that none of the others dominates; of equal ones the first."""
    fitting = [one for one in figures if one.fits_memory]
    points = np.array([one.point(objectives) for one in fitting]).reshape(-1, len(objectives))
    kept = [fitting[row] for row in non_dominated(points).tolist()]
    return Front(
        figures=tuple(sorted(kept, key=lambda one: one.point(objectives))),
        objectives=tuple(objectives),
        num_judged=num_judged,
        is_proven=is_proven,
    )


class Archive:
    """Plans of which none dominates another, as arrays."""

    def __init__(self, judge: ObjectiveJudge, objectives: Sequence[str]) -> None:
        self.judge, self.objectives = judge, tuple(objectives)
        self.plans: Plans | None = None
        self.points: Points = np.empty((0, len(self.objectives)))

    def add(self, plans: Plans) -> Points:
        """Judge plans and keep the good ones; returns the objectives of all."""
        points, makespan_s = self.judge.points(plans, self.objectives)
        if len(points):
            self._keep(plans, points, makespan_s)
        return points

    def _keep(self, plans: Plans, points: Points, makespan_s: Real) -> None:
        rows = np.flatnonzero((makespan_s < MISFIT) & ~self._are_reached(points))
        if not len(rows):
            return
        rows = rows[non_dominated(points[rows])]
        together = joined([*([] if self.plans is None else [self.plans]), plan_rows(plans, rows)])
        points = np.concatenate([self.points, points[rows]])
        kept = non_dominated(points)
        self.plans, self.points = plan_rows(together, kept), points[kept]

    def descend(self, most_rounds: int | None = None) -> None:
        """Add what is a move of layers away from its plans, as long as that changes it."""
        search, done, num_rounds = self.judge.judge, set[bytes](), 0
        while self.plans is not None and search.num_left > 0 and num_rounds != most_rounds:
            plans = self.plans
            rows = [row for row in range(len(plans.num_stages)) if _key(plans, row) not in done]
            if not rows:
                return
            done.update(_key(plans, row) for row in rows)
            for begin in range(0, len(rows), _MOST_SPLIT):
                some = rows[begin : begin + _MOST_SPLIT]
                self.add(joined([resplits(plans, row, len(search.schedules)) for row in some]))
            num_rounds += 1

    def explore(self, most_judged: int = MOST_EXPLORED) -> None:
        """Add plans of neighbouring orders too, their layers split evenly in time, then descend.

        It ends when nothing changes, or after the round in which more plans were judged.
        """
        search = self.judge.judge
        done, seen, begin = set[Order](), set[Order](), search.num_judged
        self.descend(1)
        while search.num_left > 0 and search.num_judged - begin <= most_judged:
            known = self.orders() - done
            near: dict[Order, None] = {}
            for order in sorted(known):
                near |= dict.fromkeys(
                    neighbours(order, search.topology.num_domains, search.most_stages)
                )
            done |= known
            new = [order for order in near if order not in seen and is_joined(search, order)]
            if not new:
                return
            seen |= set(new)
            self.add(water_filled(search, new)[0])
            self.descend(_ROUNDS_AFTER_ORDERS)

    def orders(self) -> set[Order]:
        """Orders of the plans."""
        if self.plans is None:
            return set()
        return {order_of(self.plans, row) for row in range(len(self.points))}

    def front(self, *, is_proven: bool = False) -> Front:
        """Return the plans, with the figures that the simulator gives.

        Raises
        ------
        InfeasiblePlacementError
            If there is none.
        """
        if self.plans is None:
            raise InfeasiblePlacementError("front: no plan was found that fits into memory")
        judge, plans = self.judge.judge, self.plans
        figures = figures_of_plans(
            judge.topology,
            judge.workload,
            (judge.plan(plans, row) for row in range(len(plans.num_stages))),
            judge.corrections,
            simulator=simulate_compiled,
        )
        return front_of_figures(
            figures, self.objectives, num_judged=judge.num_judged, is_proven=is_proven
        )

    def _are_reached(self, points: Points) -> np.ndarray:
        """Mask of the points that a point of the archive equals or dominates."""
        reached = np.zeros(len(points), dtype=np.bool_)
        for known in self.points:
            reached |= np.all(known <= points, axis=1)
        return reached


def _key(plans: Plans, row: int) -> bytes:
    size = int(plans.num_stages[row])
    number = plans.schedule[row : row + 1]
    fields = (number, plans.domain[row, :size], plans.end_layer[row, :size])
    return b"".join(field.tobytes() for field in fields)


def steady_judge(
    topology: Topology,
    workload: Workload,
    corrections: Corrections,
    schedules: Sequence[str],
    max_judged: int | None = None,
) -> ObjectiveJudge:
    """Judge of plans on the links at the figures of a topology, by the compiled simulator."""
    judge = Judge(
        replace(topology, movement=None),
        workload,
        corrections,
        schedules=schedules,
        simulator=simulate_compiled,
        max_judged=max_judged,
    )
    return ObjectiveJudge(judge)


def join_orders(judge: Judge) -> list[Order]:
    """All ordered subsets of domains whose neighbours reach each other, the smallest first."""
    return [
        order
        for order in all_orders(judge.topology.num_domains, judge.most_stages)
        if is_joined(judge, order)
    ]


def is_joined(judge: Judge, order: Order) -> bool:
    """Whether all neighbours in an order reach each other."""
    return all(judge.can_reach[pair] for pair in pairwise(order))


def water_filled(judge: Judge, orders: Sequence[Order]) -> tuple[Plans, Real]:
    """Plans of all orders under all schedules, their layers split evenly in time, with levels."""
    plans = plans_of_orders(orders, range(len(judge.schedules)), judge.most_stages)
    return plans, judge.fill(plans)


def every_split(judge: Judge, order: Order) -> Iterator[Plans]:
    """Yield plans of an order with all splits under all schedules, some at a time."""
    size, num_layers, most = len(order), judge.workload.num_layers, judge.most_stages
    cuts = np.array(list(combinations(range(1, num_layers), size - 1)), dtype=np.int32)
    ends = np.zeros((len(cuts), most), dtype=np.int32)
    ends[:, : size - 1], ends[:, size - 1] = cuts, num_layers
    num_schedules = len(judge.schedules)
    for begin in range(0, len(ends), _MOST_AT_ONCE):
        some = ends[begin : begin + _MOST_AT_ONCE]
        plans = plans_of_orders([order] * len(some), range(num_schedules), most)
        yield plans._replace(end_layer=np.repeat(some, num_schedules, axis=0))
