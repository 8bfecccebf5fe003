"""Predicted times of ring all-reduces among GPUs of a server."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from des.costs.collectives import ring_all_reduce_s
from des.devices.gpus import GpuTopology
from des.devices.rings import Real
from des.devices.server import Server


def places_all_reduce_s(server: Server, places: Sequence[int], payload_bytes: float) -> float:
    """Time of an all-reduce in the best ring of some GPUs, given by their places. [s]"""
    return float(set_all_reduces_s(server, places, len(places), payload_bytes)[-1])


def places_ring(server: Server, places: Sequence[int]) -> tuple[float, float]:
    """Bandwidth [bytes/s] and latency [s] of the slowest hop in the best ring of some GPUs."""
    wires = _topology(server, tuple(places)).wires
    return float(wires.ring_bandwidth_bytes_per_s[-1]), float(wires.ring_latency_s[-1])


def set_all_reduces_s(
    server: Server, places: Sequence[int], size: int, payload_bytes: float
) -> Real:
    """Time of an all-reduce in every set of some GPUs, (2**n,); infinite for those of other sizes.

    Sets are numbered as in `agents.devices.set_tables`. The best ring of a set is that whose
    slowest hop is fastest (`des.devices.rings`). A single GPU has nothing to exchange.
    """
    wires = _topology(server, tuple(reversed(places))).wires  # there GPU i is bit i
    counts = np.array([chosen.bit_count() for chosen in range(1 << len(places))])
    chosen = np.flatnonzero(counts == size)
    hops = list(
        zip(
            wires.ring_bandwidth_bytes_per_s[chosen].tolist(),
            wires.ring_latency_s[chosen].tolist(),
            strict=True,
        )
    )
    time_s = {hop: _all_reduce_s(payload_bytes, size, *hop) for hop in set(hops)}
    times_s = np.full(1 << len(places), np.inf)
    times_s[chosen] = [time_s[hop] for hop in hops]
    return times_s


def _all_reduce_s(
    payload_bytes: float, size: int, bandwidth_bytes_per_s: float, latency_s: float
) -> float:
    if size == 1:
        return 0.0
    return ring_all_reduce_s(payload_bytes, size, bandwidth_bytes_per_s, latency_s)


@lru_cache(maxsize=64)
def _topology(server: Server, places: tuple[int, ...]) -> GpuTopology:
    """Topology of some of a server's GPUs, in the given order."""
    return GpuTopology.of_server(server.part(places))
