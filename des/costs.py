"""Arithmetic of the simulator: how long work and messages take. Waiting lives in `des.engine`."""

import math
from dataclasses import replace

from des.corrections import Corrections
from des.topology import Link, Topology


def quickest_message_s(
    topology: Topology, source: int, target: int, num_bytes: float, corrections: Corrections
) -> tuple[float, float]:
    """Least time of a message that meets no queue, and of its slowest wire alone. [s]

    Where links move during the iteration every hop is taken at its best. No message is faster, and
    no two messages of the route leave its slowest wire closer together.
    """
    movement = topology.movement
    total_s = slowest_wire_s = 0.0
    for hop in topology.route(source, target):
        base = topology.links[hop]
        link = corrected(base, corrections)
        bandwidth, latency_s = link.bandwidth_bytes_per_s, link.latency_s
        if movement is not None:
            extremes = movement.law.extremes(base)
            bandwidth *= extremes.most_bandwidth_factor
            latency_s *= extremes.least_latency_factor
        transfer_s = num_bytes / bandwidth if bandwidth else math.inf  # a link that is never up
        wire_s = corrections.message_overhead_s + transfer_s
        total_s += wire_s + latency_s
        slowest_wire_s = max(slowest_wire_s, wire_s)
    return total_s, slowest_wire_s


def corrected(link: Link, corrections: Corrections) -> Link:
    """Return the link with calibrated figures."""
    return replace(
        link,
        bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * corrections.wan_bandwidth_factor,
        latency_s=link.latency_s * corrections.wan_latency_factor,
    )
