"""Replicas and hybrids: groups of domains that train a copy of the model each, kept in step."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from agents.decision.families import Family
from agents.judge.paced_judge import FEW_SCHEDULES, Order, PacedJudge
from agents.planners.whole.group_orders import GroupOrders
from agents.planners.whole.groups import GroupTable, partition_levels
from agents.planners.whole.levelling import WorkedOut, worked_out
from agents.planners.whole.partitions import (
    MOST_DOMAINS_FOR_ALL,
    Partition,
    all_partitions,
    partition_of,
    partitions_near,
)
from agents.planners.whole.rings import NUM_BUCKETS, ExchangeTimes
from agents.planners.whole.sketches import Levelled, Sending, Sketch, joined_levels
from des import GradientExchange, Plan
from des.compiled.many.steady import Plans
from des.job.transformer import WEIGHT_BYTES
from des.plan.synchronisation import Synchronisation

_NUM_CHANGED = 4
"""Partitions whose neighbours are looked at, of more domains than all partitions are judged of."""

_MOST_ROUNDS = 8
"""Rounds of neighbours."""

Mode = tuple[Family, Synchronisation]
"""A family of several copies and a way to keep them in step."""


class CopySearch:
    """A search for groups of domains, their pipelines and shares of the microbatches.

    Parameters
    ----------
    judge_of
        Makes the judge of groups of which a number share one optimiser state; 1: none do.
    suggested
        Groups, and orders of groups, by their links.
    proposed
        Groups, each in an order, that a search of many domains begins from too.
    sharded
        Whether the groups share the optimiser's state.
    """

    def __init__(
        self,
        judge_of: Callable[[int], PacedJudge],
        exchanges: ExchangeTimes,
        suggested: GroupOrders,
        *,
        proposed: Sequence[tuple[Order, ...]] = (),
        sharded: bool = False,
    ) -> None:
        self._judge_of, self._exchanges, self._sharded = judge_of, exchanges, sharded
        self._suggested = suggested
        self._orders = [order for groups in proposed for order in groups]
        self._tables: dict[int, GroupTable] = {}
        self._proposed = [partition_of(map(frozenset, groups)) for groups in proposed]
        self._workload = self._table(1).judge.workload
        self._sending: dict[Synchronisation, Sending] = {}
        self._most_groups = min(suggested.num_domains, self._workload.num_microbatches)
        self._none_levelled = Levelled(
            [], np.zeros((0, self._most_groups)), np.zeros(0, dtype=bool), *np.zeros((3, 0))
        )

    def _table(self, num_groups: int) -> GroupTable:
        """Pipelines of groups; their number matters where they share the optimiser's state."""
        shards = num_groups if self._sharded else 1
        if shards not in self._tables:
            judge = self._judge_of(shards)
            self._tables[shards] = GroupTable(
                judge, self._suggested, _few(judge.schedules), self._orders
            )
        return self._tables[shards]

    @property
    def num_judged(self) -> int:
        """Plans judged, the same ones counted again."""
        return sum(table.judge.num_judged for table in self._tables.values())

    def sketches(self, modes: Sequence[Mode], num_kept: int, most: int) -> dict[Mode, list[Sketch]]:
        """Sketch the best partitions of each family and mode, the quickest first.

        Of many domains until about ``most`` plans were judged.
        """
        size = self._suggested.num_domains
        if size <= MOST_DOMAINS_FOR_ALL:
            return self._kept(self._levelled(all_partitions(size)), modes, num_kept)
        begun = (*self._proposed, *self._suggested.partitions)
        return self.sketches_near(begun, modes, num_kept, most)

    def sketches_near(
        self, begun: Iterable[Partition], modes: Sequence[Mode], num_kept: int, most: int
    ) -> dict[Mode, list[Sketch]]:
        """Sketch some partitions and the neighbours of the best, while that helps.

        Of a few domains, of which all partitions were sketched in other sizes, no neighbours.
        """
        end = self.num_judged + most
        size = self._suggested.num_domains
        known = dict.fromkeys(begun)
        found = self._levelled(list(known))
        been: set[Partition] = set()
        for _ in range(_MOST_ROUNDS if size > MOST_DOMAINS_FOR_ALL else 0):
            best = {
                one.partition
                for own in self._kept(found, modes, _NUM_CHANGED).values()
                for one in own
            }
            new = sorted(best - been, key=lambda one: [sorted(group) for group in one])
            if not new or self.num_judged >= end:
                break
            been |= best
            near = {near: None for one in new for near in partitions_near(one, size)}
            fresh = [one for one in near if one not in known]
            known.update(dict.fromkeys(fresh))
            found = joined_levels([found, self._levelled(fresh)])
        return self._kept(found, modes, num_kept)

    def _kept(self, found: Levelled, modes: Sequence[Mode], most: int) -> dict[Mode, list[Sketch]]:
        """The best sketches of each family and mode."""
        kept = {
            (family, mode): found.sketches(
                family, self._sending_of(mode), most, sharded=self._sharded
            )
            for family, mode in modes
        }
        return {kind: own for kind, own in kept.items() if own}

    def _levelled(self, partitions: Sequence[Partition]) -> Levelled:
        """Judge partitions of several groups; those that do not fit are left out."""
        total = self._workload.num_microbatches
        some = [one for one in partitions if 1 < len(one) <= total]
        by_table: dict[GroupTable, list[Partition]] = {}
        for one in sorted(some, key=len):
            by_table.setdefault(self._table(len(one)), []).append(one)
        parts = [self._levelled_of(own, table) for table, own in by_table.items()]
        return joined_levels([self._none_levelled, *parts])

    def _levelled_of(self, own: Sequence[Partition], table: GroupTable) -> Levelled:
        """Judge partitions whose groups are in a table."""
        total, sizes = self._workload.num_microbatches, np.array([len(one) for one in own])
        wanted = [(group, total // len(one)) for one in own for group in one]
        known = table.of(wanted)
        of_group = np.fromiter(map(known.rows.__getitem__, wanted), np.int64, len(wanted))
        index = of_group[np.cumsum(sizes) - sizes].repeat(self._most_groups)  # any that fits
        index = index.reshape(-1, self._most_groups)
        index[np.arange(self._most_groups) < sizes[:, np.newaxis]] = of_group
        levels = partition_levels(index, sizes, known, total)
        fits = levels.places
        rows = index[fits] * len(table.schedules) + levels.schedule[:, np.newaxis]
        ring_s, star_s = self._exchanges.rings_and_stars_s(known.plans, rows, sizes[fits])
        is_joined = np.isfinite(np.minimum(ring_s, star_s))
        places = fits[is_joined].tolist()
        return Levelled(
            partitions=[own[place] for place in places],
            shares=levels.shares[is_joined],
            is_single=np.array([max(map(len, own[place])) == 1 for place in places], dtype=bool),
            step_s=levels.step_s[is_joined],
            ring_s=ring_s[is_joined],
            star_s=star_s[is_joined],
        )

    def _sending_of(self, mode: Synchronisation) -> Sending:
        if mode not in self._sending:
            num_layers = self._workload.num_layers
            self._sending[mode] = Sending.of(mode, self._bytes(mode), num_layers)
        return self._sending[mode]

    def _bytes(self, mode: Synchronisation) -> float:
        """Bytes of a parameter between groups, mean of both halves of an exchange."""
        if mode.steps_between > 1:
            return mode.bits_per_value / 8.0
        gradients = self._workload.gradient_bytes / 2.0 * mode.bits_per_value / 8.0
        return (gradients + WEIGHT_BYTES) / 2.0 if self._sharded else gradients

    def plans(self, sketches: Sequence[Sketch]) -> list[list[Plan]]:
        """Work sketches out: whole shares, splits for them, rings and trees, and buckets."""
        places: dict[GroupTable, list[int]] = {}
        for place, sketch in enumerate(sketches):
            places.setdefault(self._table(len(sketch.shares)), []).append(place)
        found: list[list[Plan]] = [[] for _ in sketches]
        for table, own in places.items():
            whole = worked_out(table, [sketches[place] for place in own])
            for place, one in zip(own, whole, strict=True):
                if one is not None:
                    found[place] = list(self._plans(table.judge, sketches[place].mode, one))
        return found

    def _plans(self, judge: PacedJudge, mode: Synchronisation, one: WorkedOut) -> Iterator[Plan]:
        """Plans of pipelines that were worked out, by how they exchange."""
        placements = [judge.placement(one.pipelines, row) for row in range(len(one.shares))]
        for order, exchange in self._exchanges_of(one.pipelines, mode):
            first, *others = [placements[place] for place in order]
            yield Plan(
                placement=first,
                replicas=tuple(others),
                shares=tuple(one.shares[place] for place in order),
                schedule=judge.schedules[one.schedule],
                synchronisation=mode,
                exchange=exchange,
                activation_compression=judge.compression,
            )

    def _exchanges_of(
        self, pipelines: Plans, mode: Synchronisation
    ) -> Iterator[tuple[tuple[int, ...], GradientExchange]]:
        """Orders of the groups and exchanges to try.

        Two groups need no tree: a ring divides what it sends into as many parts. Groups that share
        the optimiser's state have none.
        """
        bits, workload = 8.0 * self._bytes(mode), self._workload
        whole = GradientExchange(sharded=self._sharded)
        total_bytes = workload.gradient_bytes * sum(workload.num_parameters)
        buckets = replace(whole, bucket_bytes=total_bytes / NUM_BUCKETS)
        ring = self._exchanges.ring(pipelines, bits)
        yield ring, whole
        if mode.overlap_steps == 0:
            yield ring, buckets
        if len(ring) > 2 and not self._sharded:
            layer_bytes = workload.gradient_bytes * min(workload.num_parameters)
            is_whole = mode.overlap_steps > 0 or layer_bytes == 0.0
            tree = self._exchanges.tree(pipelines, bits, 1 if is_whole else workload.num_layers)
            layers = whole if is_whole else replace(whole, bucket_bytes=layer_bytes)
            yield tree.order, replace(layers, tree=tree.above)


def _few(schedules: Sequence[str]) -> list[int]:
    """Numbers of the schedules of sketches; all where none of the few is allowed."""
    found = [number for number, name in enumerate(schedules) if name in FEW_SCHEDULES]
    return found or list(range(len(schedules)))
