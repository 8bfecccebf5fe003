"""Replicas and hybrids: groups of domains that train a copy of the model each, kept in step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.decision.families import Family
from agents.judge.paced_judge import FEW_SCHEDULES, Order, PacedJudge, Scored
from agents.planners.whole.groups import GroupTable, partition_levels, whole_shares
from agents.planners.whole.partitions import (
    MOST_DOMAINS_FOR_ALL,
    Partition,
    all_partitions,
    clustered,
    partition_of,
    partitions_near,
)
from agents.planners.whole.rings import NUM_BUCKETS, ExchangeTimes
from des import GradientExchange, Placement, Plan
from des.plan.synchronisation import Synchronisation

_NUM_CHANGED = 4
"""Partitions whose neighbours are looked at, of more domains than all partitions are judged of."""

_MOST_ROUNDS = 8
"""Rounds of neighbours."""

_MOST_NEIGHBOURS = 400
"""Neighbours of a split of layers that are judged when a copy is refined."""


_NUM_BY_STAR = 2
"""Best sketches with a star that are kept beside the best with a ring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A partition with its shares, and about how long a step takes with a ring or a star. [s]"""

    partition: Partition
    shares: tuple[float, ...]
    mode: Synchronisation
    family: Family
    step_s: float
    star_step_s: float


def best_sketches(sketches: Sequence[Sketch], most: int) -> list[int]:
    """Positions of the quickest sketches with a ring, and of a few more with a star."""
    positions = range(len(sketches))
    by_ring = sorted(positions, key=lambda one: sketches[one].step_s)[:most]
    by_star = sorted(positions, key=lambda one: sketches[one].star_step_s)[:_NUM_BY_STAR]
    return list(dict.fromkeys([*by_ring, *by_star]))


class CopySearch:
    """A search for groups of domains, their pipelines and shares of the microbatches.

    Parameters
    ----------
    bandwidth
        Between every two domains, (K, K). [bytes/s]
    proposed
        Groups, each in an order, that a search of many domains begins from too.
    """

    def __init__(
        self,
        judge: PacedJudge,
        exchanges: ExchangeTimes,
        bandwidth: np.ndarray,
        rates: Sequence[float],
        proposed: Sequence[tuple[Order, ...]] = (),
    ) -> None:
        self.judge, self._exchanges = judge, exchanges
        orders = (order for groups in proposed for order in groups)
        self._table = GroupTable(judge, bandwidth, _few(judge.schedules), orders)
        self._bandwidth, self._rates = bandwidth, rates
        self._proposed = [partition_of(map(frozenset, groups)) for groups in proposed]

    def sketches(
        self, modes: Sequence[tuple[Family, Synchronisation]], num_kept: int, most: int
    ) -> dict[tuple[Family, Synchronisation], list[Sketch]]:
        """Sketch the best partitions of each family and mode, the quickest first.

        Of many domains until about ``most`` plans were judged.
        """
        end = self.judge.num_judged + most
        size = len(self._rates)
        if size <= MOST_DOMAINS_FOR_ALL:
            return self._kept(self._sketched(all_partitions(size), modes), num_kept)
        begun = [*self._proposed, *clustered(self._bandwidth, self._rates)]
        found = self._sketched(list(dict.fromkeys(begun)), modes)
        been: set[Partition] = set()
        for _ in range(_MOST_ROUNDS):
            best = {
                one.partition for own in self._kept(found, _NUM_CHANGED).values() for one in own
            }
            new = sorted(best - been, key=lambda one: [sorted(group) for group in one])
            if not new or self.judge.num_judged >= end:
                break
            been |= best
            near = {near: None for one in new for near in partitions_near(one, size)}
            known = {one.partition for one in found}
            found += self._sketched([one for one in near if one not in known], modes)
        return self._kept(found, num_kept)

    def _kept(
        self, found: Sequence[Sketch], most: int
    ) -> dict[tuple[Family, Synchronisation], list[Sketch]]:
        """The best sketches of each family and mode."""
        by_mode: dict[tuple[Family, Synchronisation], list[Sketch]] = {}
        for sketch in found:
            by_mode.setdefault((sketch.family, sketch.mode), []).append(sketch)
        return {
            kind: [own[each] for each in best_sketches(own, most)] for kind, own in by_mode.items()
        }

    def _sketched(
        self, partitions: Sequence[Partition], modes: Sequence[tuple[Family, Synchronisation]]
    ) -> list[Sketch]:
        """Sketch partitions of several groups; those that do not fit are left out."""
        total = self.judge.workload.num_microbatches
        by_size: dict[int, list[Partition]] = {}
        for partition in partitions:
            if 1 < len(partition) <= total:
                by_size.setdefault(len(partition), []).append(partition)
        found: list[Sketch] = []
        for size, own in sorted(by_size.items()):
            count = max(1, total // size)
            self._table.look_at((group for one in own for group in one), count)
            levels = partition_levels(self._table, own, count, total)
            for row in np.flatnonzero(np.isfinite(levels.step_s)).tolist():
                schedule = int(levels.schedule[row])
                placements = [self._table.placement(one, count, schedule) for one in own[row]]
                byte_s = self._exchanges.ring_and_star_s(tuple(placements), 8.0)
                if not np.isfinite(min(byte_s)):
                    continue
                for family, mode in modes:
                    if not _is_of(own[row], family):
                        continue
                    own_s = float(levels.step_s[row])
                    ring_s, star_s = (
                        _mean_step_s(own_s, each_s, mode, self._bytes(mode)) for each_s in byte_s
                    )
                    found.append(
                        Sketch(
                            partition=own[row],
                            shares=tuple(levels.shares[row].tolist()),
                            mode=mode,
                            family=family,
                            step_s=ring_s,
                            star_step_s=star_s,
                        )
                    )
        return found

    def _bytes(self, mode: Synchronisation) -> float:
        """Bytes of a parameter between groups."""
        own = self.judge.workload.gradient_bytes / 2.0 if mode.steps_between == 1 else 1.0
        return own * mode.bits_per_value / 8.0

    def plans(self, sketch: Sketch) -> Iterator[Plan]:
        """Work a sketch out: whole shares, splits for them, rings and trees, and buckets."""
        shares = list(whole_shares(sketch.shares, self.judge.workload.num_microbatches))
        schedule = self._best_schedule(sketch, shares)
        scored = self._best_of(sketch, schedule, shares)
        if scored is None:
            return
        shares, own = scored
        placements = tuple(self.judge.placement(one.plans, 0) for one in own)
        for order, exchange in self._exchanges_of(placements, sketch.mode):
            first, *others = [placements[place] for place in order]
            yield Plan(
                placement=first,
                replicas=tuple(others),
                shares=tuple(shares[place] for place in order),
                schedule=self.judge.schedules[schedule],
                synchronisation=sketch.mode,
                exchange=exchange,
                activation_compression=self.judge.compression,
            )

    def _exchanges_of(
        self, placements: tuple[Placement, ...], mode: Synchronisation
    ) -> Iterator[tuple[tuple[int, ...], GradientExchange]]:
        """Orders of the groups and exchanges to try.

        Two groups need no tree: a ring divides what it sends into as many parts.
        """
        bits, workload = 8.0 * self._bytes(mode), self.judge.workload
        whole = GradientExchange()
        total_bytes = workload.gradient_bytes * sum(workload.num_parameters)
        buckets = GradientExchange(bucket_bytes=total_bytes / NUM_BUCKETS)
        ring, _ = self._exchanges.ring(placements, bits)
        yield ring, whole
        if mode.overlap_steps == 0:
            yield ring, buckets
        if len(placements) > 2:
            is_whole = mode.overlap_steps > 0
            tree = self._exchanges.tree(placements, bits, 1 if is_whole else NUM_BUCKETS)
            yield tree.order, replace(whole if is_whole else buckets, tree=tree.above)

    def _best_schedule(self, sketch: Sketch, shares: Sequence[int]) -> int:
        """Schedule under which the slowest group of a sketch is quickest."""
        longest_s = np.zeros(len(self.judge.schedules))
        for group, share in zip(sketch.partition, shares, strict=True):
            orders = self._table.orders(group)
            scored = self.judge.scored(orders, [share] * len(orders))
            times_s = scored.times_s.reshape(len(orders), -1).min(axis=0)
            longest_s = np.maximum(longest_s, times_s)
        return int(longest_s.argmin())

    def _best_of(
        self, sketch: Sketch, schedule: int, shares: list[int]
    ) -> tuple[list[int], list[Scored]] | None:
        """Pipelines of the groups for their shares, which are levelled while that helps."""
        self._level(sketch, schedule, shares, 0)
        own = self._level(sketch, schedule, shares, _MOST_NEIGHBOURS)
        fits = all(np.isfinite(one.times_s[0]) for one in own)
        return (shares, own) if fits else None

    def _level(self, sketch: Sketch, schedule: int, shares: list[int], most: int) -> list[Scored]:
        """Hand microbatches of the slowest group to the quickest while that helps.

        Pipelines are refined by as many neighbours as ``most``.
        """
        known: dict[tuple[int, int], Scored] = {}

        def scored(place: int, share: int) -> Scored:
            if (place, share) not in known:
                orders = self._table.orders(sketch.partition[place])
                known[place, share] = self.judge.best(orders, share, schedule, most)
            return known[place, share]

        for _ in range(4 * len(shares)):
            times_s = [float(scored(*each).times_s[0]) for each in enumerate(shares)]
            slow = times_s.index(max(times_s))
            quick = times_s.index(min(times_s))
            if shares[slow] == 1 or slow == quick or not np.isfinite(times_s[slow]):
                break
            after_s = float(scored(quick, shares[quick] + 1).times_s[0])
            if max(after_s, float(scored(slow, shares[slow] - 1).times_s[0])) >= times_s[slow]:
                break
            shares[slow] -= 1
            shares[quick] += 1
        return [scored(*each) for each in enumerate(shares)]


def _few(schedules: Sequence[str]) -> list[int]:
    """Numbers of the schedules of sketches; all where none of the few is allowed."""
    found = [number for number, name in enumerate(schedules) if name in FEW_SCHEDULES]
    return found or list(range(len(schedules)))


def _is_of(partition: Partition, family: Family) -> bool:
    """Whether a partition can be of a family: replicas are of one domain each, hybrids not all."""
    is_single = max(map(len, partition)) == 1
    return {"replicas": is_single, "hybrid": not is_single}.get(family, True)


def _mean_step_s(
    computed_s: float, byte_s: float, mode: Synchronisation, num_bytes: float
) -> float:
    """Time of a step with what its exchange adds, about. [s]"""
    exchange_s = byte_s * num_bytes
    if mode.steps_between == 1:
        return computed_s + exchange_s
    if mode.overlap_steps == 0:
        return computed_s + exchange_s / mode.steps_between
    return max(computed_s, exchange_s / mode.steps_between)
