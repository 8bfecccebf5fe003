"""Exchanges of gradients between groups of domains: the best rings and trees, and their times."""

from dataclasses import replace
from itertools import permutations

import numpy as np

from agents.planners.whole.trees import Tree, best_star_s, best_tree
from des import Corrections, Placement, Topology, Workload
from des.compiled.many.job import job_on
from des.compiled.many.layout import Real

MOST_FOR_ALL_RINGS = 6
"""Most groups of which all rings are looked at: 120."""

NUM_BUCKETS = 8
"""Buckets into which the gradients of a copy are divided where that is tried."""

_PROBE_BYTES = 2.0**30


class ExchangeTimes:
    """Estimates of exchanges between pipelines of a job on one network.

    A ring of R groups passes ``2 (R - 1)`` parts of ``1 / R`` of the gradients of each layer from
    where one group has it to where the next has it; the slowest way sets the pace.
    """

    def __init__(self, topology: Topology, workload: Workload, corrections: Corrections) -> None:
        job = job_on(topology, replace(workload, message_bytes=_PROBE_BYTES), corrections)
        self._s_per_byte: Real = job.wire_s / _PROBE_BYTES
        self._latency_s: Real = job.latency_s
        self._parameters = np.array(workload.num_parameters)
        self._known: dict[tuple[Placement, Placement], tuple[float, float]] = {}

    def edge_s(self, source: Placement, target: Placement) -> tuple[float, float]:
        """Time of a byte a parameter from one group to another, and the latency of a part. [s]"""
        key = (source, target)
        if key not in self._known:
            here, there = np.array(source.domain_of_layer), np.array(target.domain_of_layer)
            size = len(self._s_per_byte)
            passed = np.bincount(
                here * size + there, weights=self._parameters, minlength=size * size
            ).reshape(size, size)
            used = passed > 0.0
            self._known[key] = (
                float((passed[used] * self._s_per_byte[used]).max()),
                float(self._latency_s[used].max()),
            )
        return self._known[key]

    def ring(self, groups: tuple[Placement, ...], bits: float) -> tuple[tuple[int, ...], float]:
        """Order groups to the quickest ring found, and say how long an exchange takes. [s]"""
        cost_s, latency_s = self._edges_s(groups)
        return _ring(cost_s * (bits / 8.0), latency_s)

    def ring_and_star_s(self, groups: tuple[Placement, ...], bits: float) -> tuple[float, float]:
        """Times of the best ring and the best star of buckets. [s]"""
        cost_s, latency_s = self._edges_s(groups)
        cost_s *= bits / 8.0
        return _ring(cost_s, latency_s)[1], best_star_s(cost_s, latency_s, NUM_BUCKETS)

    def tree(self, groups: tuple[Placement, ...], bits: float, num_chunks: int) -> Tree:
        """Return a quick tree of groups, along which their values go in chunks."""
        cost_s, latency_s = self._edges_s(groups)
        return best_tree(cost_s * (bits / 8.0), latency_s, num_chunks)

    def _edges_s(self, groups: tuple[Placement, ...]) -> tuple[Real, Real]:
        """`edge_s` from every group to every other, (R, R) each."""
        cost_s, latency_s = np.zeros((2, len(groups), len(groups)))
        for one, other in permutations(range(len(groups)), 2):
            cost_s[one, other], latency_s[one, other] = self.edge_s(groups[one], groups[other])
        return cost_s, latency_s


def _ring(cost_s: Real, latency_s: Real) -> tuple[tuple[int, ...], float]:
    """The quickest ring found for values that take so long between groups, and its time. [s]"""
    count = len(cost_s)
    step_s = cost_s / count + latency_s
    order = _best_ring(step_s)
    slowest_s = max(
        step_s[here, there] for here, there in zip(order, order[1:] + order[:1], strict=True)
    )
    return order, float(2 * (count - 1) * slowest_s)


def _best_ring(step_s: Real) -> tuple[int, ...]:
    """Ring whose slowest edge is quickest: of a few groups the best, of more a grown one."""
    count = len(step_s)
    if count <= MOST_FOR_ALL_RINGS:
        rings = [(0, *rest) for rest in permutations(range(1, count))]
    else:
        rings = [_grown_ring(step_s, start) for start in range(count)]
    return min(rings, key=lambda ring: _ring_key(step_s, ring))


def _grown_ring(step_s: Real, start: int) -> tuple[int, ...]:
    order = [start]
    while len(order) < len(step_s):
        onward = step_s[order[-1]].copy()
        onward[order] = np.inf
        order.append(int(onward.argmin()))
    return tuple(order)


def _ring_key(step_s: Real, ring: tuple[int, ...]) -> tuple[float, float]:
    steps = [step_s[here, there] for here, there in zip(ring, ring[1:] + ring[:1], strict=True)]
    return float(max(steps)), float(sum(steps))
