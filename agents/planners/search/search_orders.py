"""The search for orders of domains, and what becomes of the best of them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from agents.judge.search_judge import Judge
from agents.planners.search.search_moves import (
    Order,
    all_orders,
    neighbours,
    order_of,
    plans_of_orders,
)
from agents.planners.search.search_refine import refined
from des.compiled.many.layout import Real
from des.compiled.many.steady import Plans

_NUM_REFINED, _NUM_REFINED_SLOWLY = 192, 4
"""Orders that are refined together, in compiled code and where plans are judged one by one."""

_NUM_STARTS, _MOST_ROUNDS_IN_VAIN = 8, 6
"""JudgedOrders from which a round descends, and rounds without a better plan that end a search."""

_NUM_CHANGES = 3
"""Changes of the best order that make a new start: a descent seldom undoes as many."""


def search_all_orders(judge: Judge) -> tuple[Plans, float]:
    """Judge all orders and refine the best; returns the best plan and its score."""
    orders = JudgedOrders(judge)
    orders.look_at_all(judge.num_left // 2)
    return _settle(judge, orders, *refined(judge, *orders.best(_num_refined(judge))))


def _settle(
    judge: Judge, orders: "JudgedOrders", best: Plans, best_score: float
) -> tuple[Plans, float]:
    """Refine the orders around the best plan too, until none of them is better."""
    while judge.num_left > 0:
        plans, scores = orders.around(order_of(best, 0), _num_refined(judge))
        if not len(scores):
            break
        found, score = refined(judge, plans, scores)
        if score >= best_score:
            break
        best, best_score = found, score
    return best, best_score


def search_some_orders(judge: Judge, rng: np.random.Generator) -> tuple[Plans, float]:
    """Descend from drawn orders, and then from near the best; returns the best plan and its score.

    Half of the starts of a later round are new random draws.
    """
    orders = JudgedOrders(judge)
    orders.descend([orders.drawn(rng) for _ in range(_NUM_STARTS)])
    best, best_score = _settle(judge, orders, *refined(judge, *orders.best(_num_refined(judge))))
    num_in_vain = 0
    while num_in_vain < _MOST_ROUNDS_IN_VAIN and judge.num_left > 0:
        known = order_of(best, 0)
        starts = [orders.changed(known, rng) for _ in range(_NUM_STARTS // 2)]
        starts += [orders.drawn(rng) for _ in range(_NUM_STARTS // 2)]
        orders.descend(starts)
        num_in_vain += 1
        plans, scores = orders.best(_num_refined(judge))
        if len(scores):
            found, score = refined(judge, plans, scores)
            if score < best_score:
                best, best_score = _settle(judge, orders, found, score)
                num_in_vain = 0
    return best, best_score


def _num_refined(judge: Judge) -> int:
    return _NUM_REFINED if judge.is_quick else _NUM_REFINED_SLOWLY


class JudgedOrders:
    """JudgedOrders that have been judged, each with its layers split by `Judge.fill`."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._found: dict[Order, tuple[float, int]] = {}
        self._taken: set[Order] = set()

    def look_at_all(self, most: int) -> None:
        """Judge all orders, or as many of the lowest level as make ``most`` plans."""
        judge = self._judge
        every = all_orders(judge.topology.num_domains, judge.most_stages)
        orders = [order for order in every if self._is_joined(order)]
        num_schedules = len(judge.schedules)
        if len(orders) * num_schedules > most:
            levels_s = judge.fill(self._plans(orders, num_schedules))
            levels_s = levels_s.reshape(-1, num_schedules).min(axis=1)
            nearest = np.argsort(levels_s, kind="stable")[: max(1, most // num_schedules)]
            orders = [orders[index] for index in nearest.tolist()]
        self._look_at(orders)

    def descend(self, starts: Sequence[Order]) -> None:
        """Move from some orders to the best neighbour until none is better."""
        self._look_at(starts)
        active = {order for order in starts if order in self._found}
        been = set(active)
        while active and self._judge.num_left > 0:
            near = {order: self._neighbours(order) for order in sorted(active)}
            self._look_at(one for found in near.values() for one in found)
            active = set()
            for order, found in near.items():
                best = min(found, key=self._score, default=order)
                if self._score(best) < self._score(order) and best not in been:
                    been.add(best)
                    active.add(best)

    def best(self, most: int) -> tuple[Plans, Real]:
        """Take the best orders not taken before, under their best schedules, and their scores."""
        return self._take([order for order in self._found if order not in self._taken], most)

    def around(self, order: Order, most: int) -> tuple[Plans, Real]:
        """Take the best neighbours of an order in the same way, also those taken before."""
        near = self._neighbours(order)
        self._look_at(near)
        return self._take([one for one in near if one in self._found], most)

    def _take(self, orders: Iterable[Order], most: int) -> tuple[Plans, Real]:
        orders = sorted(orders, key=self._score)[:most]
        self._taken.update(orders)
        plans = self._plans(orders, 1)
        plans.schedule[:] = [self._found[order][1] for order in orders]
        self._judge.fill(plans)
        return plans, np.array([self._found[order][0] for order in orders])

    def drawn(self, rng: np.random.Generator) -> Order:
        """Draw an order of as many domains as there can be, leaving out whom nothing joins."""
        order: Order = ()
        for domain in rng.permutation(self._judge.topology.num_domains).tolist():
            longer = (*order, domain)
            if self._is_joined(longer) and len(longer) <= self._judge.most_stages:
                order = longer
        return order

    def changed(self, order: Order, rng: np.random.Generator) -> Order:
        """Change an order at random."""
        for _ in range(_NUM_CHANGES):
            near = self._neighbours(order)
            order = near[rng.integers(len(near))]
        return order

    def _look_at(self, orders: Iterable[Order]) -> None:
        """Judge orders that are new, under all schedules; leaves out those that nothing joins."""
        new = [
            order
            for order in dict.fromkeys(orders)
            if order not in self._found and self._is_joined(order)
        ]
        if not new:
            return
        plans = self._plans(new, len(self._judge.schedules))
        self._judge.fill(plans)
        scores = self._judge.scores(plans).reshape(len(new), -1)
        for order, own in zip(new, scores, strict=True):
            schedule = int(own.argmin())
            self._found[order] = float(own[schedule]), schedule

    def _score(self, order: Order) -> float:
        return self._found[order][0] if order in self._found else np.inf

    def _neighbours(self, order: Order) -> list[Order]:
        return neighbours(order, self._judge.topology.num_domains, self._judge.most_stages)

    def _is_joined(self, order: Order) -> bool:
        return all(self._judge.can_reach[pair] for pair in pairwise(order))

    def _plans(self, orders: Sequence[Order], num_schedules: int) -> Plans:
        return plans_of_orders(orders, range(num_schedules), self._judge.most_stages)
