"""Pipelines of groups of domains, judged once a group and count of microbatches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np

from agents.judge.paced_judge import Order, PacedJudge, Scored
from agents.planners.choice.chains import grown_chain
from agents.planners.search.search_moves import joined
from agents.planners.whole.partitions import Group
from des.compiled.many.layout import Real, Whole
from des.compiled.many.paced import paced_table
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Plans

MOST_FOR_ALL_ORDERS = 3
"""Most domains of a group of which all orders are judged."""

_MOST_JUDGED = 3
"""Orders of a group that are judged when groups are compared, those that promise most."""

_MOST_STARTS = 2
"""Domains of a larger group from which a chain of its best links grows."""


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


class GroupOrders:
    """Orders of groups that their links suggest, remembered for all judges of a network.

    All orders of a few domains; of more, chains of the best links both ways round.

    Parameters
    ----------
    bandwidth
        Between every two domains, (K, K). [bytes/s]
    most_stages
        Of a pipeline; larger groups have no order.
    """

    def __init__(self, bandwidth: np.ndarray, most_stages: int) -> None:
        self._bandwidth, self._most_stages = bandwidth, most_stages
        self._known: dict[Group, tuple[Order, ...]] = {}

    def of(self, group: Group) -> tuple[Order, ...]:
        """Orders of a group, none where it is larger than a pipeline."""
        if group not in self._known:
            self._known[group] = self._suggested(sorted(group))
        return self._known[group]

    def _suggested(self, members: list[int]) -> tuple[Order, ...]:
        if len(members) > self._most_stages:
            return ()
        if len(members) <= MOST_FOR_ALL_ORDERS:
            return tuple(permutations(members))
        within = self._bandwidth[np.ix_(members, members)]
        by_total = np.argsort(-within.sum(axis=1), kind="stable")[:_MOST_STARTS]
        found: dict[Order, None] = {}
        for start in by_total.tolist():
            chain = tuple(members[each] for each in grown_chain(within, start))
            if len(chain) == len(members):
                found[chain] = found[chain[::-1]] = None
        return tuple(found)


class GroupTable:
    """Times of groups, judged when they are first asked for.

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
        self._refined: dict[tuple[Group, int, int, int], Scored] = {}

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
        orders = self._promising(new)
        num_orders = np.fromiter(map(len, orders), np.int64, len(orders))
        only = [order for own in orders for order in own]
        counts = np.fromiter((count for _, count in new), np.int64, len(new))
        num = len(self.schedules)
        if not only:
            return _unjoined(new, num, self.judge.most_stages)
        scored = self.judge.scored(only, counts.repeat(num_orders).tolist(), self.schedules)
        of_orders_s = np.full((len(new), max(1, num_orders.max()), num), np.inf)
        of_orders_s[np.arange(of_orders_s.shape[1]) < num_orders[:, np.newaxis]] = (
            scored.times_s.reshape(-1, num)
        )
        firsts = np.cumsum(num_orders) - num_orders
        best = firsts[:, np.newaxis] + of_orders_s.argmin(axis=1)
        best[num_orders == 0] = 0  # of a group that no links join, or of more domains than layers
        plans = plan_rows(scored.plans, (best * num + np.arange(num)).ravel())
        more = np.maximum(1, counts // 4)
        further = self.judge.judged(plans, (counts + more).repeat(num)).times_s.reshape(-1, num)
        times_s = of_orders_s.min(axis=1)
        fits = np.isfinite(times_s) & np.isfinite(further)
        gains_s = np.where(fits, further, np.inf) - np.where(fits, times_s, 0.0)
        return GroupTimes(
            rows={one: row for row, one in enumerate(new)},
            times_s=times_s,
            beats_s=gains_s / more[:, np.newaxis],
            plans=plans,
        )

    def _promising(self, new: Sequence[tuple[Group, int]]) -> list[Sequence[Order]]:
        """Orders of groups that promise most on their counts of microbatches."""
        found: list[Sequence[Order]] = [self.orders(group) for group, _ in new]
        many = [place for place, own in enumerate(found) if len(own) > _MOST_JUDGED]
        only = [order for place in many for order in found[place]]
        if not only:
            return found
        counts = np.array([new[place][1] for place in many for _ in found[place]])
        levels_s = self.judge.levels_s(only, counts, self.schedules[0])
        end = 0
        for place in many:
            own, begin = found[place], end
            end += len(own)
            best = np.argsort(levels_s[begin:end], kind="stable")[:_MOST_JUDGED]
            found[place] = [own[each] for each in best.tolist()]
        return found

    def refined(self, group: Group, count: int, schedule: int, most: int) -> Scored:
        """Best pipeline of a group on ``count`` microbatches, see `PacedJudge.best`."""
        key = group, count, schedule, most
        if key not in self._refined:
            self._refined[key] = self.judge.best(self.orders(group), count, schedule, most)
        return self._refined[key]

    def least_s(self, group: Group, count: int) -> Real:
        """Times of the best pipeline of a group under each schedule of the judge, (S,). [s]"""
        key = group, count
        if key not in self._least_s:
            orders = self.orders(group)
            times_s = self.judge.scored(orders, [count] * len(orders)).times_s
            self._least_s[key] = times_s.reshape(len(orders), -1).min(axis=0)
        return self._least_s[key]

    def orders(self, group: Group) -> tuple[Order, ...]:
        """Orders of a group that are worth a look; none where it is larger than a pipeline."""
        suggested, proposed = self._suggested.of(group), self._proposed.get(group)
        return tuple(proposed | dict.fromkeys(suggested)) if proposed else suggested


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
    """Partitions of R groups each, in step under their best schedule.

    ``step_s`` and ``schedule`` (N,), ``inf`` where a group does not fit; ``shares`` (N, R) of the
    microbatches, not rounded. [s]
    """

    step_s: Real
    schedule: Whole
    shares: Real


def level_times(times_s: Real, beats_s: Real, count: int, total: int) -> Real:
    """Time at which R groups end together that share ``total`` microbatches, (..., S). [s]

    Parameters
    ----------
    times_s, beats_s
        Of each group on ``count`` microbatches and for each further one, (..., R, S); ``inf`` where
        one does not fit. [s]
    """
    fits = np.isfinite(times_s) & np.isfinite(beats_s)
    rates = 1.0 / np.where(fits, beats_s, 1.0)
    fixed = np.where(fits, times_s, 0.0) * rates - count
    levels_s = (total + fixed.sum(axis=-2)) / rates.sum(axis=-2)
    found: Real = np.where(fits.all(axis=-2), levels_s, np.inf)
    return found


def partition_levels(index: Whole, known: GroupTimes, count: int, total: int) -> Levels:
    """Share microbatches among the groups of partitions of one size so that all end at one time.

    A group's time is taken as a line in its microbatches, known at ``count``.

    Parameters
    ----------
    index
        Rows of the groups of each partition in ``known``, (N, R).
    """
    times_s, beats_s = known.times_s, known.beats_s
    levels_s = level_times(times_s[index], beats_s[index], count, total)
    schedule = levels_s.argmin(axis=1)
    step_s = levels_s[np.arange(len(index)), schedule]
    chosen = index, schedule[:, np.newaxis]
    fits = np.isfinite(step_s)[:, np.newaxis]
    left_s = np.where(fits, step_s[:, np.newaxis], 0.0) - np.where(fits, times_s[chosen], 0.0)
    shares = count + left_s / np.where(fits, beats_s[chosen], 1.0)
    return Levels(step_s=step_s, schedule=schedule, shares=shares)


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
