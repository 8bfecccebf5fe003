"""Costs of changing from each of some plans to each other, network after network."""

import math
from collections.abc import Sequence

import numpy as np

from agents.judge.change_costs import MoveRates
from agents.judge.copy_moves import CopyChanges
from agents.judge.moves import Ways, change_times, count_ways, fill_ways
from des import (
    NO_CORRECTIONS,
    Corrections,
    Plan,
    Topology,
    UnreachableError,
    Workload,
    migration_s,
)
from des.compiled.eligibility import has_plain_transport
from des.compiled.many.layout import Real, Small
from des.compiled.simulate import moves_end_s
from des.costs.message_times import direct_links
from des.plan.replacement import Replacement
from des.program.moves import layer_moves


class Changes:
    """All changes of S plans of a job into C others: what they send, and how long that takes.

    Where a change goes over direct links that stand still, serve in turn and each way by itself,
    its time is worked out in compiled code; others are simulated one by one.

    Parameters
    ----------
    plans
        Plans after a change.
    sources
        Plans before a change; None: the same plans.

    Attributes
    ----------
    moved_bytes
        Model state that is sent from row to column, shaped (S, C); 0 where it need not be paid for.
    """

    def __init__(
        self,
        workload: Workload,
        plans: Sequence[Plan],
        num_domains: int,
        replacement: Replacement,
        *,
        sources: Sequence[Plan] | None = None,
    ) -> None:
        self.workload, self.plans, self.replacement = workload, tuple(plans), replacement
        self.sources = self.plans if sources is None else tuple(sources)
        numbers: dict[Plan, int] = {}
        old, new = (
            np.array([numbers.setdefault(plan, len(numbers)) for plan in given], dtype=np.int64)
            for given in (self.sources, self.plans)
        )
        self._is_change = old[:, np.newaxis] != new
        self.moved_bytes: Real = np.zeros(self._is_change.shape)
        self._ways: Ways | None = None
        self._copies: CopyChanges | None = None
        if not replacement.pays_bytes:
            return
        if any(plan.replicas for plan in numbers):
            self._copies = CopyChanges(workload, self.sources, self.plans, num_domains)
            self.moved_bytes[:] = self._copies.moved_bytes
        else:
            self._ways = self._filled_ways(num_domains)

    def times_s(self, topology: Topology, corrections: Corrections = NO_CORRECTIONS) -> Real:
        """Time of each change as `des.migration_s` has it, from row to column, (S, C). [s]

        ``inf`` where a layer has to go where no links lead; 0 between equal plans.
        """
        restart_s = float(self.replacement.restart_s)
        if not self.replacement.pays_bytes:
            return np.where(self._is_change, restart_s, 0.0)
        times_s: Real = np.full(self._is_change.shape, np.nan)
        is_plain = topology.movement is None and has_plain_transport(topology)
        if is_plain and corrections.transport is None:
            goodput, latency_s = direct_links(topology, corrections)
            overhead_s = float(corrections.message_overhead_s)
            if self._ways is not None:
                change_times(self._ways, goodput, latency_s, overhead_s, restart_s, times_s)
            elif self._copies is not None:
                times_s = (
                    self._copies.times_s(MoveRates(goodput, latency_s, overhead_s)) + restart_s
                )
                times_s[np.isinf(times_s)] = np.nan
        times_s[~self._is_change] = 0.0
        for old, new in np.argwhere(np.isnan(times_s)).tolist():
            times_s[old, new] = self._simulated_s(topology, old, new, corrections)
        return times_s

    def _filled_ways(self, num_domains: int) -> Ways:
        old, new = (
            np.array([plan.placement.domain_of_layer for plan in given], dtype=np.int32)
            for given in (self.sources, self.plans)
        )
        layer_bytes = state_bytes_of_layers(self.workload)
        return ways_of(old, new, num_domains, layer_bytes, self.moved_bytes)

    def _simulated_s(
        self, topology: Topology, old: int, new: int, corrections: Corrections
    ) -> float:
        plans = self.sources[old], self.plans[new]
        moves = tuple(layer_moves(topology, self.workload, *plans, corrections))
        try:
            last_s = moves_end_s(topology, moves, corrections)
        except UnreachableError:
            return math.inf
        restart_s = float(self.replacement.restart_s)
        if last_s is None:  # the readable engine says which layer never arrives
            return migration_s(
                topology, self.workload, *plans, restart_s=restart_s, corrections=corrections
            )
        return last_s + restart_s


def state_bytes_of_layers(workload: Workload) -> Real:
    """Model state of each layer, (L,). [bytes]"""
    return workload.state_bytes * np.array(workload.num_parameters, dtype=np.float64)


def ways_of(old: Small, new: Small, num_domains: int, layer_bytes: Real, moved_bytes: Real) -> Ways:
    """Messages of changes between placements, by link; ``moved_bytes`` is written.

    Parameters
    ----------
    old, new
        Domains of the layers before and after, (S, L) and (C, L).
    layer_bytes
        As `state_bytes_of_layers`, (L,).
    moved_bytes
        Of each change, (S, C). [bytes]
    """
    first = np.empty(len(old) * len(new) + 1, dtype=np.int64)
    count_ways(old, new, num_domains, first)
    ways = Ways(
        first=first,
        way=np.empty(first[-1], dtype=np.int32),
        num_bytes=np.empty(first[-1]),
        num_messages=np.empty(first[-1]),
    )
    fill_ways(old, new, num_domains, layer_bytes, ways, moved_bytes)
    return ways
