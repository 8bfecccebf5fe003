"""Arithmetic of the simulator: how long work and messages take. Waiting lives in `des.engine`."""

import math
from collections.abc import Sequence
from dataclasses import replace

from des.corrections import Corrections
from des.dynamics import Movement
from des.placement import Stage
from des.schedules import Pass
from des.topology import Domain, Link, Topology
from des.workload import Workload


def compute_rate_flops_per_s(domain: Domain, corrections: Corrections) -> float:
    """Speed at which a domain works through layers: all its GPUs taken as one device. [FLOP/s]"""
    return domain.attainable_flops_per_s / corrections.compute_time_factor


def stage_times_s(
    topology: Topology, workload: Workload, stages: Sequence[Stage], corrections: Corrections
) -> list[dict[Pass, float]]:
    """Time of each pass of each stage for one microbatch. [s]"""
    flops: dict[Pass, tuple[float, ...]] = {
        "F": workload.forward_flops,
        "B": workload.backward_flops,
        "D": workload.input_gradient_flops,
        "W": workload.weight_gradient_flops,
    }
    times: list[dict[Pass, float]] = []
    for stage in stages:
        rate = compute_rate_flops_per_s(topology.domains[stage.domain], corrections)
        times.append({kind: sum(each[stage.layers]) / rate for kind, each in flops.items()})
    return times


def quickest_message_s(
    topology: Topology, source: int, target: int, num_bytes: float, corrections: Corrections
) -> tuple[float, float]:
    """Least time of a message that meets no queue, and of its slowest wire alone. [s]

    Where links move during the iteration every hop is taken at its best. No message is faster, and
    no two messages of the route leave its slowest wire closer together.
    """
    law = None if topology.movement is None else topology.movement.law
    total_s = slowest_wire_s = 0.0
    for hop in topology.route(source, target):
        link = corrected(topology.links[hop], corrections)
        bandwidth, latency_s = link.bandwidth_bytes_per_s, link.latency_s
        if law is not None:
            bandwidth *= 1.0 + law.bandwidth_fluctuation
            latency_s *= 1.0 - law.latency_jitter
        wire_s = corrections.message_overhead_s + num_bytes / bandwidth
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


class Weather:
    """Factors of all links in each segment of a moving network, drawn when first asked for."""

    def __init__(self, movement: Movement, num_links: int) -> None:
        self._movement = movement
        self._num_links = num_links
        self._segments: dict[int, tuple[list[float], list[float]]] = {}

    @property
    def interval_s(self) -> float:
        """Length of a segment. [s]"""
        return self._movement.interval_s

    def segment_at(self, time_s: float) -> int:
        """Segment that rules at a time; a border belongs to the segment it opens."""
        segment = math.floor(time_s / self.interval_s)
        if (segment + 1) * self.interval_s <= time_s:  # the division was rounded down
            return segment + 1
        return segment - 1 if segment * self.interval_s > time_s else segment

    def bandwidth_factor(self, segment: int, link: int) -> float:
        """Factor on a link's bandwidth."""
        return self._factors(segment)[0][link]

    def latency_factor(self, segment: int, link: int) -> float:
        """Factor on a link's latency."""
        return self._factors(segment)[1][link]

    def _factors(self, segment: int) -> tuple[list[float], list[float]]:
        factors = self._segments.get(segment)
        if factors is None:
            bandwidth, latency = self._movement.factors(segment, self._num_links)
            factors = self._segments[segment] = (bandwidth.tolist(), latency.tolist())
        return factors


def serialisation_end_s(
    start_s: float,
    num_bytes: float,
    bandwidth_bytes_per_s: float,
    *,
    link: int = 0,
    weather: Weather | None = None,
) -> float:
    """Time when the last of ``num_bytes`` leaves, at a bandwidth that may change on the way. [s]

    The bandwidth is constant within a segment of the weather, so the sum over segments is exact.

    Examples
    --------
    >>> serialisation_end_s(2.0, 5e8, 1e9)
    2.5
    """
    if weather is None:
        return start_s + num_bytes / bandwidth_bytes_per_s
    segment = weather.segment_at(start_s)
    rate = bandwidth_bytes_per_s * weather.bandwidth_factor(segment, link)
    while True:
        border_s = (segment + 1) * weather.interval_s
        end_s = start_s + num_bytes / rate
        if end_s <= border_s:
            return end_s
        segment += 1
        next_rate = bandwidth_bytes_per_s * weather.bandwidth_factor(segment, link)
        if next_rate != rate:  # an equal rate goes on as if there were no border, to the last bit
            num_bytes -= (border_s - start_s) * rate
            start_s, rate = border_s, next_rate
