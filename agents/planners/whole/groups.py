"""Pipelines of groups of domains, judged once a group and count of microbatches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from agents.judge.paced_judge import Order, OrderRows, PacedJudge
from agents.planners.search.search_moves import joined
from agents.planners.whole.group_orders import MOST_FOR_ALL_ORDERS, GroupOrders
from agents.planners.whole.level_kernels import write_levels
from agents.planners.whole.partitions import Group
from des.compiled.many.layout import Real, Small, Whole
from des.compiled.many.paced import paced_table
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Plans

_MOST_JUDGED = 3
"""Orders of a group that are judged when groups are compared, those that promise most."""


class Wanted(NamedTuple):
    """Pipeline of a group to refine, on a number of microbatches, under a schedule by its number.

    At most ``most`` of its neighbours are judged.
    """

    group: Group
    num_microbatches: int
    schedule: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimes:
    """Best pipelines of G groups under each of S schedules, each group on a count of microbatches.

    ``times_s`` and ``beats_s`` (G, S) are of an iteration and of each further microbatch, ``inf``
    where none fits; ``plans`` has a row for each group and schedule. ``rows`` says where a group
    with its count is. [s]
    """

    rows: dict[tuple[Group, int], int]
    times_s: Real
    beats_s: Real
    plans: Plans


class _Orders(NamedTuple):
    """Orders of G groups: rows; where those of each begin, and where the last end, (G + 1,)."""

    rows: OrderRows
    first: Whole


class GroupTable:
    """Times of groups, judged when they are first needed.

    Parameters
    ----------
    schedules
        Numbers of the schedules that groups are judged under.
    proposed
        Orders of larger groups that are worth a look whatever links say.
    """

    def __init__(
        self,
        judge: PacedJudge,
        suggested: GroupOrders,
        schedules: Sequence[int],
        proposed: Iterable[Order] = (),
    ) -> None:
        self.judge, self._suggested, self.schedules = judge, suggested, tuple(schedules)
        self._proposed: dict[Group, dict[Order, None]] = {}
        for order in proposed:
            if MOST_FOR_ALL_ORDERS < len(order) <= judge.most_stages:
                self._proposed.setdefault(frozenset(order), {})[order] = None
        self._known: GroupTimes | None = None
        self._least_s: dict[tuple[Group, int], Real] = {}
        self._refined: dict[Wanted, tuple[float, Plans]] = {}

    def of(self, wanted: Iterable[tuple[Group, int]]) -> GroupTimes:
        """Times of groups, each on a count of microbatches, and of those looked at before.

        Those that are new are judged together.
        """
        known = self._known
        before = {} if known is None else known.rows
        new = [one for one in dict.fromkeys(wanted) if one not in before]
        if new:
            found = self._judged(new)
            self._known = known = found if known is None else _joined(known, found)
        assert known is not None, "groups must be one or more"
        return known

    def _judged(self, new: Sequence[tuple[Group, int]]) -> GroupTimes:
        counts = np.fromiter((count for _, count in new), np.int64, len(new))
        orders, num = self._promising([group for group, _ in new], counts), len(self.schedules)
        if not orders.first[-1]:
            return _unjoined(new, num, self.judge.most_stages)
        schedules = np.array([self.schedules], np.int32).repeat(len(new), axis=0)
        plans, repeated, best_s, _ = self.judge.quickest(*orders, counts, schedules)
        more = np.maximum(1, counts // 4)
        further = self.judge.judged(plans, repeated + more.repeat(num)).times_s.reshape(-1, num)
        times_s = best_s.reshape(-1, num)
        fits = np.isfinite(times_s) & np.isfinite(further)
        gains_s = np.where(fits, further, np.inf) - np.where(fits, times_s, 0.0)
        return GroupTimes(
            rows={one: row for row, one in enumerate(new)},
            times_s=times_s,
            beats_s=gains_s / more[:, np.newaxis],
            plans=plans,
        )

    def _promising(self, groups: Sequence[Group], counts: Whole) -> _Orders:
        """Orders of groups that promise most on their counts of microbatches."""
        rows, first = self._orders_of(groups)
        nums = np.diff(first)
        is_many = (nums > _MOST_JUDGED).repeat(nums)
        if not is_many.any():
            return _Orders(rows, first)
        of_order, promise_s = np.repeat(np.arange(len(groups)), nums), np.zeros(len(is_many))
        many = OrderRows(rows.num_stages[is_many], rows.domain[is_many])
        promise_s[is_many] = self.judge.levels_of_rows_s(
            many, counts[of_order[is_many]], self.schedules[0]
        )
        best_first = np.lexsort((promise_s, of_order))
        is_judged = np.arange(len(is_many)) - first[of_order] < _MOST_JUDGED
        kept = best_first[is_judged]
        ends = np.cumsum([0, *np.minimum(nums, _MOST_JUDGED)])
        return _Orders(OrderRows(rows.num_stages[kept], rows.domain[kept]), ends)

    def refine(self, wanted: Iterable[Wanted]) -> None:
        """Find the best pipelines of groups, and refine them under their schedules alone.

        New ones are judged together; all of a call have the same ``most``.
        """
        new = [one for one in dict.fromkeys(wanted) if one not in self._refined]
        if not new:
            return
        counts = np.array([one.num_microbatches for one in new])
        schedules = np.array([[one.schedule] for one in new], dtype=np.int32)
        orders = self._orders_of([one.group for one in new])
        scored = self.judge.quickest(*orders, counts, schedules)
        found = self.judge.refined(scored, new[0].most, any_schedule=False)
        for row, (one, time_s) in enumerate(zip(new, found.times_s.tolist(), strict=True)):
            self._refined[one] = time_s, plan_rows(found.plans, np.array([row]))

    def refined_s(self, wanted: Wanted) -> float:
        """Time of a pipeline that `refine` found; ``inf`` where none fits. [s]"""
        return self._refined[wanted][0]

    def refined(self, wanted: Iterable[Wanted]) -> Plans:
        """Pipelines that `refine` found."""
        return joined([self._refined[one][1] for one in wanted])

    def least_s(self, groups: Sequence[tuple[Group, int]]) -> Real:
        """Times of the best pipelines of groups under each schedule of the judge, (G, S). [s]"""
        new = [one for one in dict.fromkeys(groups) if one not in self._least_s]
        if new:
            counts, num = np.array([count for _, count in new]), len(self.judge.schedules)
            schedules = np.arange(num, dtype=np.int32)[np.newaxis].repeat(len(new), axis=0)
            orders = self._orders_of([group for group, _ in new])
            found = self.judge.quickest(*orders, counts, schedules).times_s.reshape(-1, num)
            self._least_s |= zip(new, found, strict=True)
        return np.array([self._least_s[one] for one in groups])

    def _orders_of(self, groups: Sequence[Group]) -> _Orders:
        """Orders of groups to judge, proposed ones first."""
        own = self._suggested.rows_of(groups)
        if self._proposed:
            own = [self._with_proposed(*each) for each in zip(groups, own, strict=True)]
        nums = np.fromiter(map(len, own), np.int64, len(own))
        lengths = np.fromiter(map(len, groups), np.int32, len(groups)).repeat(nums)
        return _Orders(OrderRows(lengths, np.concatenate(own)), np.cumsum([0, *nums]))

    def _with_proposed(self, group: Group, suggested: Small) -> Small:
        proposed = self._proposed.get(group)
        if not proposed:
            return suggested
        both = proposed | dict.fromkeys(map(tuple, suggested[:, : len(group)].tolist()))
        rows = np.zeros((len(both), suggested.shape[1]), dtype=np.int32)
        rows[:, : len(group)] = list(both)
        return rows


def _unjoined(new: Sequence[tuple[Group, int]], num_schedules: int, most_stages: int) -> GroupTimes:
    """Times of groups that no links join, or of more domains than there are layers."""
    never_s = np.full((len(new), num_schedules), np.inf)
    return GroupTimes(
        rows={one: row for row, one in enumerate(new)},
        times_s=never_s,
        beats_s=never_s,
        plans=paced_table(never_s.size, most_stages),
    )


def _joined(known: GroupTimes, found: GroupTimes) -> GroupTimes:
    """Times of groups looked at before, and behind them those of new ones."""
    size = len(known.rows)
    rows = {one: size + row for one, row in found.rows.items()}
    return GroupTimes(
        rows={**known.rows, **rows},
        times_s=np.concatenate([known.times_s, found.times_s]),
        beats_s=np.concatenate([known.beats_s, found.beats_s]),
        plans=joined([known.plans, found.plans]),
    )


class Levels(NamedTuple):
    """Partitions of which every group fits, in step under their best schedule, N in all.

    ``places`` (N,) are those among the given partitions, ``step_s`` and ``schedule`` (N,);
    ``shares`` (N, R) of the microbatches, not rounded. Columns behind the last group mean nothing.
    [s]
    """

    places: Whole
    step_s: Real
    schedule: Whole
    shares: Real


def partition_levels(index: Whole, sizes: Whole, known: GroupTimes, total: int) -> Levels:
    """Share microbatches among the groups of partitions so that all end at one time.

    A group's time is taken as a line in its microbatches, known at an equal share.

    Parameters
    ----------
    index, sizes
        Rows of the groups of each partition in ``known``, (N, R), and how many they are, (N,).
    """
    times_s, beats_s, counts = known.times_s, known.beats_s, total // sizes
    levels_s = np.empty((len(sizes), times_s.shape[1]))
    write_levels(times_s, beats_s, index, sizes, counts, total, levels_s)
    schedule = levels_s.argmin(axis=1)
    places = np.flatnonzero(np.isfinite(levels_s[np.arange(len(sizes)), schedule]))
    schedule = schedule[places]
    step_s = levels_s[places, schedule]
    chosen = index[places], schedule[:, np.newaxis]
    left_s = step_s[:, np.newaxis] - times_s[chosen]
    shares = counts[places, np.newaxis] + left_s / beats_s[chosen]
    return Levels(places=places, step_s=step_s, schedule=schedule, shares=shares)


def whole_shares(shares: Sequence[float], total: int) -> tuple[int, ...]:
    """Round shares to whole numbers of at least 1 that add up to a total.

    Examples
    --------
    >>> whole_shares((3.6, 2.8, 1.6), 8), whole_shares((7.9, 0.1), 8)
    ((4, 3, 1), (7, 1))
    """
    counts = [max(1, int(share)) for share in shares]
    while sum(counts) != total:
        gap = total - sum(counts)
        rest = [share - count for share, count in zip(shares, counts, strict=True)]
        if gap > 0:
            counts[rest.index(max(rest))] += 1
        else:
            able = [place for place, count in enumerate(counts) if count > 1]
            counts[min(able, key=lambda place: rest[place])] -= 1
    return tuple(counts)
