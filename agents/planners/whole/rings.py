"""Exchanges of gradients between groups of domains: the best rings and trees, and their times."""

from dataclasses import replace
from itertools import permutations

import numpy as np

from agents.planners.whole.exchange_kernels import (
    MOST_FOR_ALL_RINGS,
    GradientWays,
    exchanges_s,
    grown_ring,
    write_edges,
)
from agents.planners.whole.trees import Tree, best_tree
from des import Corrections, Topology, Workload
from des.compiled.many.job import job_on
from des.compiled.many.layout import Real, Whole
from des.compiled.many.steady import Plans

NUM_BUCKETS = 8
"""Buckets into which the gradients of a copy are divided where that is tried."""

_PROBE_BYTES = 2.0**30

_ROOM = (1 << (MOST_FOR_ALL_RINGS - 1), MOST_FOR_ALL_RINGS - 1)
"""Rows and columns of what the kernel of all rings remembers."""


class ExchangeTimes:
    """Estimates of exchanges between pipelines of a job on one network.

    A ring of R groups passes ``2 (R - 1)`` parts of ``1 / R`` of the gradients of each layer from
    where one group has it to where the next has it; the slowest way sets the pace. Groups are rows
    of a table of pipelines with a stage for each domain.
    """

    def __init__(self, topology: Topology, workload: Workload, corrections: Corrections) -> None:
        job = job_on(topology, replace(workload, message_bytes=_PROBE_BYTES), corrections)
        self._ways = GradientWays(
            s_per_byte=job.wire_s / _PROBE_BYTES,
            flight_s=job.latency_s,
            parameters_before=np.cumsum([0.0, *workload.num_parameters]),
        )

    def rings_and_stars_s(
        self, plans: Plans, rows: Whole, sizes: Whole, num_bytes: float = 1.0
    ) -> tuple[Real, Real]:
        """Times of the best ring and of a good tree of buckets of a layer, (N,) each. [s]

        Parameters
        ----------
        rows
            Groups of each partition, (N, R), those behind its last one left out.
        sizes
            How many groups each has, (N,).
        num_bytes
            Of a parameter.
        """
        size = rows.shape[1]
        ring_s, star_s = np.empty((2, len(sizes)))
        room = np.zeros((4, max(size, _ROOM[0]), max(size, _ROOM[1])))
        ways = self._ways._replace(s_per_byte=self._ways.s_per_byte * num_bytes)
        num_layers = len(ways.parameters_before) - 1
        exchanges_s(ways, plans, rows, sizes, num_layers, room, ring_s, star_s)
        return ring_s, star_s

    def ring(self, plans: Plans, bits: float) -> tuple[int, ...]:
        """Order groups, all rows of a table, to the quickest ring found."""
        cost_s, latency_s = self._edges_s(plans)
        return quickest_ring(cost_s * (bits / 8.0) / len(cost_s) + latency_s)

    def tree(self, plans: Plans, bits: float, num_chunks: int) -> Tree:
        """Return a quick tree of groups, along which their values go in chunks."""
        cost_s, latency_s = self._edges_s(plans)
        return best_tree(cost_s * (bits / 8.0), latency_s, num_chunks)

    def _edges_s(self, plans: Plans) -> tuple[Real, Real]:
        """Times of a byte a parameter between groups, and latencies, (R, R) each. [s]"""
        size = len(plans.num_stages)
        cost_s, latency_s = np.zeros((2, size, size))
        write_edges(self._ways, plans, np.arange(size), cost_s, latency_s)
        return cost_s, latency_s


def quickest_ring(step_s: Real) -> tuple[int, ...]:
    """Ring whose slowest edge is quickest: of a few groups the best, of more a grown one."""
    count = len(step_s)
    if count <= MOST_FOR_ALL_RINGS:
        rings = [(0, *rest) for rest in permutations(range(1, count))]
        edges_s = step_s.tolist()
        return min(rings, key=lambda ring: _ring_key(edges_s, ring))
    found = []
    for start in range(count):
        order = np.empty(count)
        found.append((grown_ring(step_s, count, start, order), order))
    best = min(found, key=lambda each: each[0])[1]
    return tuple(best.astype(int).tolist())


def _ring_key(step_s: list[list[float]], ring: tuple[int, ...]) -> tuple[float, float]:
    steps = [step_s[here][there] for here, there in zip(ring, ring[1:] + ring[:1], strict=True)]
    return max(steps), sum(steps)
