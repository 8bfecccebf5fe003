"""Pipelines of groups of domains, judged once a group and count of microbatches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np

from agents.judge.paced_judge import Order, PacedJudge
from agents.planners.choice.chains import grown_chain
from agents.planners.whole.partitions import Group, Partition
from des import Placement
from des.compiled.many.layout import Real, Whole
from des.compiled.many.paced import paced_table
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Plans

MOST_FOR_ALL_ORDERS = 3
"""Most domains of a group of which all orders are judged."""

_MOST_STARTS = 2
"""Domains of a larger group from which a chain of its best links grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimes:
    """Best pipeline of a group under each schedule.

    ``plans``, ``times_s`` and ``beat_s`` (schedules,) are of an iteration and of each further
    microbatch; ``inf`` where none fits. [s]
    """

    times_s: Real
    beat_s: Real
    plans: Plans


class GroupTable:
    """Times of groups, judged when they are first asked for.

    Parameters
    ----------
    bandwidth
        Between every two domains, (K, K), for orders of larger groups. [bytes/s]
    schedules
        Numbers of the schedules that groups are judged under.
    proposed
        Orders that are worth a look whatever links say.
    """

    def __init__(
        self,
        judge: PacedJudge,
        bandwidth: np.ndarray,
        schedules: Sequence[int],
        proposed: Iterable[Order] = (),
    ) -> None:
        self.judge, self._bandwidth, self.schedules = judge, bandwidth, tuple(schedules)
        self._proposed: dict[Group, dict[Order, None]] = {}
        for order in proposed:
            self._proposed.setdefault(frozenset(order), {})[order] = None
        self._known: dict[tuple[Group, int], GroupTimes] = {}
        self._orders: dict[Group, tuple[Order, ...]] = {}
        self._placements: dict[tuple[Group, int, int], Placement] = {}

    def look_at(self, groups: Iterable[Group], count: int) -> None:
        """Judge the groups that are new together, each on ``count`` microbatches."""
        new = [one for one in dict.fromkeys(groups) if (one, count) not in self._known]
        if not new:
            return
        only = [order for group in new for order in self.orders(group)]
        scored = self.judge.scored(only, [count] * len(only), self.schedules)
        later = count + max(1, count // 4)
        further = self.judge.judged(scored.plans, np.full(len(scored.counts), later))
        num = len(self.schedules)
        times_s = scored.times_s.reshape(-1, num)
        both_s = np.array([scored.times_s, further.times_s])
        gains_s = np.where(np.isfinite(both_s), both_s, np.nan)
        beats_s = (gains_s[1] - gains_s[0]).reshape(-1, num) / (later - count)
        begin, schedules = 0, np.arange(num)
        for group in new:
            end = begin + len(self.orders(group))
            if end == begin:
                self._known[group, count] = _unjoined(num)
                continue
            rows = begin + times_s[begin:end].argmin(axis=0)
            self._known[group, count] = GroupTimes(
                times_s=times_s[rows, schedules],
                beat_s=beats_s[rows, schedules],
                plans=plan_rows(scored.plans, rows * num + schedules),
            )
            begin = end

    def of(self, group: Group, count: int) -> GroupTimes:
        """Times of a group that was looked at."""
        return self._known[group, count]

    def placement(self, group: Group, count: int, schedule: int) -> Placement:
        """Placement of a group under the schedule of a position."""
        key = (group, count, schedule)
        if key not in self._placements:
            self._placements[key] = self.judge.placement(self.of(group, count).plans, schedule)
        return self._placements[key]

    def orders(self, group: Group) -> tuple[Order, ...]:
        """Orders of a group that are worth a look; none where it is larger than a pipeline."""
        if group not in self._orders:
            self._orders[group] = self._worth_a_look(sorted(group))
        return self._orders[group]

    def _worth_a_look(self, members: list[int]) -> tuple[Order, ...]:
        if len(members) > self.judge.most_stages:
            return ()
        if len(members) <= MOST_FOR_ALL_ORDERS:
            return tuple(permutations(members))
        within = self._bandwidth[np.ix_(members, members)]
        by_total = np.argsort(-within.sum(axis=1), kind="stable")[:_MOST_STARTS]
        found = dict(self._proposed.get(frozenset(members), {}))
        for start in by_total.tolist():
            chain = tuple(members[each] for each in grown_chain(within, start))
            if len(chain) == len(members):
                found[chain] = found[chain[::-1]] = None
        return tuple(found)


def _unjoined(num_schedules: int) -> GroupTimes:
    """Times of a group that no links join, or of more domains than there are layers."""
    never_s = np.full(num_schedules, np.inf)
    return GroupTimes(times_s=never_s, beat_s=never_s, plans=paced_table(0, 1))


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


def partition_levels(
    table: GroupTable, partitions: Sequence[Partition], count: int, total: int
) -> Levels:
    """Share microbatches among the groups of partitions of one size so that all end at one time.

    A group's time is taken as a line in its microbatches, known at ``count``.
    """
    number: dict[Group, int] = {}
    index = np.array(
        [[number.setdefault(group, len(number)) for group in one] for one in partitions]
    )
    own = [table.of(group, count) for group in number]
    times_s, beats_s = np.array([one.times_s for one in own]), np.array([one.beat_s for one in own])
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
