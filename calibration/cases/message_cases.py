"""Single messages each way between two domains: cases to fit a law of the transport to."""

from collections.abc import Sequence

from calibration.cases.case import PlacementCase
from des.job.workload import Layer, Workload
from des.plan.placement import Placement
from des.plan.plan import Plan
from des.world.topology import Link, Topology

SIZES_IN_PRODUCTS = (
    1 / 16,
    1 / 8,
    1 / 4,
    3 / 8,
    1 / 2,
    3 / 4,
    1.0,
    1.5,
    2.0,
    3.0,
    4.0,
    6.0,
    8.0,
    16.0,
)
"""Sizes of messages over the bandwidth-delay product of their link."""

_FLOPS = 1e9
"""Work of a layer: microseconds on any domain."""


def message_cases(
    topology: Topology, sizes_products: Sequence[float] = SIZES_IN_PRODUCTS
) -> list[PlacementCase]:
    """Make a case of each size on each different link of a world, in the order of both.

    Sizes are in bandwidth-delay products of the link. Links with equal figures count once, links
    without a latency not at all; the way back has the figures of the way there.

    Raises
    ------
    ValueError
        If no link of the world has a latency.
    """
    figures = dict.fromkeys(
        (link.bandwidth_bytes_per_s, link.latency_s) for link in topology.links if link.latency_s
    )
    if not figures:
        raise ValueError("message cases: topology must have links with a latency, got none")
    return [
        _case(topology, bandwidth, latency_s, size * 2.0 * latency_s * bandwidth)
        for bandwidth, latency_s in figures
        for size in sizes_products
    ]


def message_figures(case: PlacementCase) -> tuple[float, float, float]:
    """Size [bytes], rate [bytes/s] and latency [s] of the message of a case."""
    link = case.topology.links[0]
    return case.workload.message_bytes, link.bandwidth_bytes_per_s, link.latency_s


def _case(
    topology: Topology, bandwidth: float, latency_s: float, num_bytes: float
) -> PlacementCase:
    here, there = topology.domains[:2]
    links = tuple(
        Link(
            source=source.name,
            target=target.name,
            bandwidth_bytes_per_s=bandwidth,
            latency_s=latency_s,
        )
        for source, target in ((here, there), (there, here))
    )
    layer = Layer(
        forward_flops=_FLOPS,
        input_gradient_flops=_FLOPS,
        weight_gradient_flops=_FLOPS,
        num_parameters=1.0,
        activation_bytes=1.0,
        weight_input_bytes=1.0,
    )
    workload = Workload(
        name="message",
        layers=(layer, layer),
        num_microbatches=1,
        tokens_per_microbatch=1,
        message_bytes=num_bytes,
    )
    return PlacementCase(
        topology=Topology(domains=(here, there), links=links, transport=topology.transport),
        workload=workload,
        plan=Plan(placement=Placement.even(2, 2), schedule="gpipe"),
    )
