"""The best of all plans, proven by branch and bound."""

from itertools import pairwise

import numpy as np

from agents.judge.search_judge import Judge
from agents.judge.splits import walk_splits
from agents.planners.search.search_moves import Order, all_orders, joined
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Plans
from des.compiled.simulate import simulate_compiled
from des.simulation.iteration import simulate

MOST_STEPS = 2_000_000_000
"""Steps of walks through splits, a minute or two, after which nothing is proven."""

_MOST_AT_ONCE = 4096
"""Plans that are judged together."""


class Enumeration:
    """All plans that could be better than the best that is known.

    Bounds hold for the simulator of `des`, whatever the transport; under others every plan that
    fits is judged.
    """

    def __init__(self, judge: Judge, best: Plans, best_score: float) -> None:
        self._judge, self._waiting = judge, list[Plans]()
        self._has_bounds = judge.simulator in (simulate, simulate_compiled)
        self.best, self.best_score = best, best_score
        self._num_steps_left = MOST_STEPS
        self._found = np.zeros((_MOST_AT_ONCE, judge.most_stages), dtype=np.int32)

    def run(self) -> bool:
        """Go through all plans; returns whether it has ended, so that the best is proven."""
        judge = self._judge
        for order in all_orders(judge.topology.num_domains, judge.most_stages):
            if all(judge.can_reach[pair] for pair in pairwise(order)):
                for schedule in range(len(judge.schedules)):
                    self._walk(order, schedule)
                    if judge.num_left <= 0 or self._num_steps_left <= 0:
                        return False
        self._judge_waiting()
        return judge.num_left > 0

    def _walk(self, order: Order, schedule: int) -> None:
        """Go through the splits over one order."""
        judge, walk = self._judge, self._judge.walk(order, schedule)
        while walk.place[0] >= 0 and self._num_steps_left > 0 and judge.num_left > 0:
            before = int(walk.place[1])
            limit_s = self.best_score if self._has_bounds else np.inf
            count = walk_splits(walk, limit_s, before + self._num_steps_left, self._found)
            self._num_steps_left -= int(walk.place[1]) - before
            if count:
                self._add(walk.order, schedule, self._found[:count].copy())

    def _add(self, domains: np.ndarray, schedule: int, ends: np.ndarray) -> None:
        """Let plans wait until there are enough to judge together."""
        row = np.zeros((1, ends.shape[1]), dtype=np.int32)
        row[0, : len(domains)] = domains
        self._waiting.append(
            Plans(
                num_stages=np.full(len(ends), len(domains), dtype=np.int32),
                schedule=np.full(len(ends), schedule, dtype=np.int32),
                domain=np.repeat(row, len(ends), axis=0),
                end_layer=ends,
            )
        )
        if sum(len(one.num_stages) for one in self._waiting) >= _MOST_AT_ONCE:
            self._judge_waiting()

    def _judge_waiting(self) -> None:
        if not self._waiting:
            return
        plans = joined(self._waiting)
        self._waiting.clear()
        scores = self._judge.scores(plans)
        row = int(scores.argmin())
        if scores[row] < self.best_score:
            self.best, self.best_score = plan_rows(plans, np.array([row])), float(scores[row])
