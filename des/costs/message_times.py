"""Arithmetic of the simulator: how long work and messages take. Waiting lives in
`des.engine.iteration`.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np

from des.costs.connection_window import WindowFigures, window_figures
from des.costs.start_up import StartUp, start_up_on, start_up_s
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.transport_law import TransportLaw
from des.world.domain import Domain
from des.world.topology import Link, Topology
from des.world.transport import goodput_bytes_per_s, goodputs_bytes_per_s


def quickest_message_s(
    topology: Topology, source: int, target: int, num_bytes: float, corrections: Corrections
) -> tuple[float, float]:
    """Least time of a message that meets no queue, and of its slowest wire alone. [s]

    Where links move during the iteration every hop is taken at its best. No message is faster, and
    ``n`` messages of the route keep its slowest wire busy for ``n`` times the second figure, which
    is 0 where messages have links to themselves (``sharing`` none).
    """
    movement, window_bytes = topology.movement, topology.transport.message_window_bytes
    sharing = topology.transport.sharing
    total_s = slowest_wire_s = 0.0
    for hop in topology.route(source, target):
        base = topology.links[hop]
        link = corrected(base, corrections)
        bandwidth, latency_s = link.bandwidth_bytes_per_s, link.latency_s
        round_trip_s = topology.round_trips_s[hop] * corrections.wan_latency_factor
        if movement is not None:
            extremes = movement.law.extremes(base)
            bandwidth *= extremes.most_bandwidth_factor
            latency_s *= extremes.least_latency_factor
            round_trip_s *= extremes.least_latency_factor
        goodput = goodput_bytes_per_s(bandwidth, round_trip_s, window_bytes)
        goodput = min(goodput, _cap_bytes_per_s(topology, hop, corrections))
        # A link that is never up has no rate; messages that share one overlap their overheads.
        alone_s = corrections.message_overhead_s + (num_bytes / goodput if goodput else math.inf)
        shared_s = num_bytes / bandwidth if bandwidth else math.inf
        total_s += alone_s + latency_s
        law = corrections.transport
        if law is not None and law.connections == "fresh" and movement is None:
            total_s += start_up_s(start_up_on(law, goodput, round_trip_s), 0.0, num_bytes)
        taken_s = {"fifo": alone_s, "fair": shared_s, "none": 0.0}[sharing]
        slowest_wire_s = max(slowest_wire_s, taken_s)
    return total_s, slowest_wire_s


def direct_links(
    topology: Topology, corrections: Corrections = NO_CORRECTIONS
) -> tuple[np.ndarray, np.ndarray]:
    """Goodputs [bytes/s] and latencies [s] of links that stand still, from row to column, (K, K).

    Where there is no link both are 0.
    """
    size, links = topology.num_domains, topology.links
    if len(links) == size * (size - 1):  # in order of source and target, as entries are
        is_link = pairs_apart(size)
    else:
        is_link = np.zeros((size, size), dtype=np.bool_)
        for ends in topology.link_index:
            is_link[ends] = True
    bandwidth, latency_s = np.zeros((2, size, size))
    bandwidth[is_link] = [link.bandwidth_bytes_per_s for link in links]
    latency_s[is_link] = [link.latency_s for link in links]
    goodput = bandwidth * corrections.wan_bandwidth_factor
    window_bytes = topology.transport.message_window_bytes
    if window_bytes is not None:
        back_s = np.where(is_link.T, latency_s.T, latency_s)
        round_trip_s = (latency_s + back_s) * corrections.wan_latency_factor
        goodput = goodputs_bytes_per_s(goodput, round_trip_s, window_bytes)
    if topology.first_limit is not None:
        caps = np.array(topology.message_caps_bytes_per_s) * corrections.wan_bandwidth_factor
        goodput[is_link] = np.minimum(goodput[is_link], caps)
    return goodput, latency_s * corrections.wan_latency_factor


@cache
def pairs_apart(num_domains: int) -> np.ndarray:
    """Mask of the pairs of two different domains, (K, K), which cannot be written to."""
    apart: np.ndarray = ~np.eye(num_domains, dtype=np.bool_)
    apart.flags.writeable = False
    return apart


def hop_goodput_bytes_per_s(
    topology: Topology, hop: int, corrections: Corrections = NO_CORRECTIONS
) -> float:
    """Rate of a message alone on a link that stands still, under TCP window and caps. [bytes/s]"""
    goodput = goodput_bytes_per_s(
        corrected(topology.links[hop], corrections).bandwidth_bytes_per_s,
        topology.round_trips_s[hop] * corrections.wan_latency_factor,
        topology.transport.message_window_bytes,
    )
    return min(goodput, _cap_bytes_per_s(topology, hop, corrections))


def _cap_bytes_per_s(topology: Topology, hop: int, corrections: Corrections) -> float:
    """Most that a message gets of a link whatever its bandwidth, corrected as that is."""
    return topology.message_caps_bytes_per_s[hop] * corrections.wan_bandwidth_factor


def hop_start_up(
    law: TransportLaw, topology: Topology, hop: int, corrections: Corrections
) -> StartUp:
    """Figures of a law of the transport on a link at base figures, corrected."""
    rate_bytes_per_s = hop_goodput_bytes_per_s(topology, hop, corrections)
    round_trip_s = topology.round_trips_s[hop] * corrections.wan_latency_factor
    return start_up_on(law, rate_bytes_per_s, round_trip_s)


def hop_window(topology: Topology, hop: int, corrections: Corrections) -> WindowFigures | None:
    """Figures of the hosts' windows on a link at base figures, corrected; None: they have none."""
    hosts = topology.transport.hosts
    if hosts is None:
        return None
    round_trip_s = topology.round_trips_s[hop] * corrections.wan_latency_factor
    return window_figures(hosts, hop_goodput_bytes_per_s(topology, hop, corrections), round_trip_s)


def corrected(link: Link, corrections: Corrections) -> Link:
    """Return the link with calibrated figures."""
    if corrections.wan_bandwidth_factor == corrections.wan_latency_factor == 1.0:
        return link
    return replace(
        link,
        bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * corrections.wan_bandwidth_factor,
        latency_s=link.latency_s * corrections.wan_latency_factor,
    )


def correct_inside(domain: Domain, corrections: Corrections) -> Domain:
    """Return the domain with calibrated figures of the links between its GPUs and nodes."""
    if corrections.intra_bandwidth_factor == corrections.intra_latency_factor == 1.0:
        return domain
    nodes = domain.nodes
    if nodes is not None:
        nodes = replace(
            nodes,
            nic_bandwidth_bytes_per_s=(
                nodes.nic_bandwidth_bytes_per_s * corrections.intra_bandwidth_factor
            ),
            nic_latency_s=nodes.nic_latency_s * corrections.intra_latency_factor,
            rack_latency_s=nodes.rack_latency_s * corrections.intra_latency_factor,
            rack_uplink_bytes_per_s=(
                None
                if nodes.rack_uplink_bytes_per_s is None
                else nodes.rack_uplink_bytes_per_s * corrections.intra_bandwidth_factor
            ),
        )
    return replace(
        domain,
        nodes=nodes,
        intra_bandwidth_bytes_per_s=(
            domain.intra_bandwidth_bytes_per_s * corrections.intra_bandwidth_factor
        ),
        intra_latency_s=domain.intra_latency_s * corrections.intra_latency_factor,
    )
