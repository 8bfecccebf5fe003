"""Pipelines over any domains: simple ones first, then orders that are better step by step."""

from collections.abc import Iterable, Sequence
from itertools import permutations

import numpy as np

from agents.judge.paced_judge import FEW_SCHEDULES, Order, PacedJudge, Scored
from agents.planners.choice.chains import grown_chain
from agents.planners.choice.choosing import shared_out
from agents.planners.search.search_moves import joined, neighbours
from des import Topology
from des.compiled.many.simulation import plan_rows

MOST_FOR_ALL_ORDERS, _MOST_FOR_ALL_SCHEDULES = 6, 2
"""Most domains of which all orders of all subsets are judged, 1,956; and under all schedules."""

PROBED_SCHEDULES = frozenset({"1f1b", "zb_h1_4x", "zb_h1_32x"})
"""Schedules under which all orders are judged, where they are allowed."""

_NUM_REJUDGED = 32
"""Best orders that are judged under all schedules, where others were under a few."""

_MOST_STARTS, _FEW_STARTS = 10, 4
"""Most domains from each of which a chain grows, and how many of more."""

_NUM_STARTS = 4
"""Orders from which a search descends."""

_NUM_ADOPTED = 8
"""Best orders of one size of microbatches that are judged in the others."""

_SLACK = 1.05
"""Orders that must take this many times as long as the best ones are not simulated."""

_FEWEST_PROMISING, _PART_PROMISING, _PART_OF_BUDGET = 32, 4, 16
"""Neighbours of an order that are judged, those that promise most: this part of them, or of all
plans that may be judged if that is less, but no fewer than this."""

_NUM_REFINED, _MOST_NEIGHBOURS = 12, 2000
"""Orders that are refined, and neighbours of each that are judged."""


class OrderSearch:
    """A search for the order of one pipeline, on a budget of plans.

    Seeds come first: every domain alone, the order of the file, orders by speed and by bandwidth,
    and chains along the best links; of each, its first 1 to 8 domains, and more in steps of an
    eighth; layers even in time, even in number, and in proportion to speeds. So no planner that
    does the like is better. Then the best orders descend over `neighbours`.

    Parameters
    ----------
    proposed
        Orders that are judged with the seeds; of few domains all orders are anyway.
    """

    def __init__(
        self,
        judge: PacedJudge,
        topology: Topology,
        bandwidth: np.ndarray,
        proposed: Sequence[Order] = (),
    ) -> None:
        self.judge, self._bandwidth, self._proposed = judge, bandwidth, proposed
        self._size = topology.num_domains
        self._speeds = [domain.attainable_flops_per_s for domain in topology.domains]
        names = PROBED_SCHEDULES if self._size <= MOST_FOR_ALL_ORDERS else FEW_SCHEDULES
        few = [each for each, name in enumerate(judge.schedules) if name in names]
        self._few = few if self._size > _MOST_FOR_ALL_SCHEDULES else ()
        self._found: dict[Order, tuple[float, int]] = {}
        self._best: list[Scored] = []
        self._best_s = np.inf

    def begin(self) -> float:
        """Judge the seeds; returns the time of the best, ``inf`` where none fits. [s]"""
        self._look_at(self._seeds(), self._few)
        self._judge_as_shared()
        return min(float(each.times_s.min()) for each in self._best)

    def seeds(self) -> Scored:
        """Best pipelines judged by `begin` and `adopt`."""
        return _joined(self._best)

    def best_orders(self) -> list[Order]:
        """Best orders found."""
        return sorted(self._found, key=self._time_s)[:_NUM_ADOPTED]

    @property
    def unrefined_s(self) -> float:
        """Time of the best order before its layers were refined. [s]"""
        return min(time_s for time_s, _ in self._found.values())

    def adopt(self, orders: Iterable[Order]) -> float:
        """Judge orders found for another size of microbatches; returns `unrefined_s`. [s]"""
        self._look_at(orders, self._few)
        return self.unrefined_s

    def run(self, most: int) -> Scored:
        """Search until about ``most`` more plans were judged; returns the best, quickest first.

        At last, orders next to the best are judged under several schedules.
        """
        end = self.judge.num_judged + most
        if self._few:
            self._judge_orders(sorted(self._found, key=self._time_s)[:_NUM_REJUDGED], ())
        if self._size <= MOST_FOR_ALL_ORDERS:
            return self._refined(end)
        self._descend(end, most)
        found = self._refined(end)
        self._best = [found]
        stages = found.plans.domain[0, : found.plans.num_stages[0]]
        near = self._promising(tuple(stages.tolist()), int(found.plans.schedule[0]), most)
        left = max(1, (end - self.judge.num_judged) // max(1, len(self._few)))
        self._judge_orders(near[:left], self._few)
        return self._refined(end)

    def _seeds(self) -> Iterable[Order]:
        """Orders to begin with."""
        most = self.judge.most_stages
        if self._size <= MOST_FOR_ALL_ORDERS:
            for length in range(1, min(self._size, most) + 1):
                yield from permutations(range(self._size), length)
            return
        yield from self._proposed
        yield from ((domain,) for domain in range(self._size))
        for order in self._long_orders():
            for length in _lengths(min(len(order), most)):
                yield order[:length]

    def _long_orders(self) -> list[Order]:
        """Orders of all domains that simple planners take."""
        everyone = range(self._size)
        total = self._bandwidth.sum(axis=1).tolist()
        by_speed = sorted(everyone, key=lambda domain: (-self._speeds[domain], -total[domain]))
        by_total = sorted(everyone, key=lambda domain: (-total[domain], -self._speeds[domain]))
        starts = by_total if self._size <= _MOST_STARTS else by_total[:_FEW_STARTS]
        chains = [grown_chain(self._bandwidth, start) for start in starts]
        return [tuple(everyone), tuple(by_speed), tuple(by_total), *chains]

    def _judge_as_shared(self) -> None:
        """Judge the simple orders with layers even in number and in proportion to speeds."""
        rows = [
            (order[:length], counts)
            for order in self._long_orders()[:4]
            for length in _lengths(min(len(order), self.judge.most_stages))
            for counts in self._shared_counts(order[:length])
        ]
        self._best.append(self.judge.judged_splits(rows, _SLACK))

    def _shared_counts(self, order: Order) -> tuple[list[int], ...]:
        num_layers = self.judge.workload.num_layers
        fewest, num_more = divmod(num_layers, len(order))
        even = [fewest + (place < num_more) for place in range(len(order))]
        shared = shared_out(num_layers, [self._speeds[domain] for domain in order])
        return (even, shared) if min(shared) > 0 else (even,)

    def _look_at(self, orders: Iterable[Order], schedules: Sequence[int] = ()) -> None:
        """Judge orders that are new, under some schedules or all."""
        new = [order for order in dict.fromkeys(orders) if order not in self._found]
        if new:
            self._judge_orders(new, schedules)

    def _judge_orders(self, new: Sequence[Order], schedules: Sequence[int]) -> None:
        """Judge orders under some schedules or all, and keep the best of each."""
        counts = [self.judge.workload.num_microbatches] * len(new)
        scored = self.judge.scored(new, counts, schedules, slack=_SLACK, best_s=self._best_s)
        times_s = scored.times_s.reshape(len(new), -1)
        rows = np.arange(len(new)) * times_s.shape[1] + times_s.argmin(axis=1)
        for order, row in zip(new, rows.tolist(), strict=True):
            self._found[order] = float(scored.times_s[row]), int(scored.plans.schedule[row])
        is_long = scored.plans.num_stages[rows] > 1
        self._best_s = min(self._best_s, float(scored.times_s[rows[is_long]].min(initial=np.inf)))
        keep = rows[np.argsort(scored.times_s[rows], kind="stable")[: 4 * _NUM_REFINED]]
        self._best.append(_rows(scored, keep))

    def _time_s(self, order: Order) -> float:
        return self._found[order][0] if order in self._found else np.inf

    def _descend(self, end: int, most: int) -> None:
        """Take the best orders to their best neighbours until none is better or plans run out.

        Neighbours are judged under the schedule that is best for the order itself.
        """
        starts = sorted(self._found, key=self._time_s)[:_NUM_STARTS]
        been: set[Order] = set()
        for start in starts:
            order, better = start, start
            while better not in been and self.judge.num_judged < end:
                order = better
                been.add(order)
                schedule = self._found[order][1]
                near = self._promising(order, schedule, most)
                self._look_at(near[: end - self.judge.num_judged], (schedule,))
                better = min([order, *near], key=self._time_s)

    def _promising(self, order: Order, schedule: int, budget: int) -> list[Order]:
        """Neighbours of an order that promise most under a schedule."""
        near = neighbours(order, self._size, self.judge.most_stages)
        part = min(len(near) // _PART_PROMISING, budget // _PART_OF_BUDGET)
        most = max(_FEWEST_PROMISING, part)
        if len(near) <= most:
            return near
        counts = np.full(len(near), self.judge.workload.num_microbatches)
        levels_s = self.judge.levels_s(near, counts, schedule)
        return [near[place] for place in np.argsort(levels_s, kind="stable")[:most].tolist()]

    def _refined(self, end: int) -> Scored:
        """Refine the splits of the best plans of different orders, one domain alone among them."""
        scored = _joined(self._best)
        best: dict[Order, int] = {}
        for row in np.argsort(scored.times_s, kind="stable").tolist():
            order = tuple(scored.plans.domain[row, : scored.plans.num_stages[row]].tolist())
            best.setdefault(order, row)
        alone = [row for order, row in best.items() if len(order) == 1][:1]
        several = [row for order, row in best.items() if len(order) > 1][:_NUM_REFINED]
        rows = np.array(alone + several)
        left = max(0, end - self.judge.num_judged) // len(rows)
        refined = self.judge.refined(_rows(scored, rows), min(left, _MOST_NEIGHBOURS))
        return _rows(refined, np.argsort(refined.times_s, kind="stable"))


def _lengths(most: int) -> list[int]:
    """All lengths up to 8, then about every eighth more."""
    found, length = [], 1
    while length < most:
        found.append(length)
        length += max(1, length // 8)
    return [*found, most]


def _joined(parts: Sequence[Scored]) -> Scored:
    """Return the rows of several tables as one."""
    plans = joined([one.plans for one in parts])
    rest = zip(*(one[1:] for one in parts), strict=True)
    return Scored(plans, *(np.concatenate(fields) for fields in rest))


def _rows(scored: Scored, rows: np.ndarray) -> Scored:
    return Scored(plan_rows(scored.plans, rows), *(field[rows] for field in scored[1:]))
