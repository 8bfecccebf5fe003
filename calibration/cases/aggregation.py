"""Unequal links made equal: one bandwidth and one latency for networks that know no others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, harmonic_mean
from types import MappingProxyType
from typing import Literal, get_args

from des.world.topology import Topology

Aggregation = Literal["min", "mean", "max", "harmonic"]

DEFAULT_AGGREGATION: Aggregation = "min"

_Reduction = Callable[[Sequence[float]], float]

_BANDWIDTH: Mapping[Aggregation, _Reduction] = MappingProxyType(
    {"min": min, "mean": fmean, "max": max, "harmonic": harmonic_mean}
)
_LATENCY: Mapping[Aggregation, _Reduction] = MappingProxyType(
    {"min": max, "mean": fmean, "max": min, "harmonic": fmean}
)
"""Latencies go with the bandwidths: the worst link is slow and far."""


def aggregated(topology: Topology, aggregation: Aggregation) -> Topology:
    """Give all links of a world one bandwidth and one latency.

    Parameters
    ----------
    topology
        A world whose links stand still.
    aggregation
        Mean of the links' figures, each link counting once. ``min``: the least bandwidth
        and the greatest latency. ``max``: the greatest bandwidth and the least latency. ``mean``:
        arithmetic means. ``harmonic``: the harmonic mean of the bandwidths and the arithmetic one
        of the latencies, so that a message takes the mean of its times over all links.

    Returns
    -------
    Topology
        The same domains, pairs, routes and rules; the same value if the links are equal already.

    Raises
    ------
    ValueError
        If there is no such aggregation, or the links move within the iteration.

    Examples
    --------
    >>> from des import Domain, Link
    >>> figures = dict(num_gpus=1, gpu_peak_flops_per_s=1e12, gpu_memory_bytes=1e9)
    >>> figures |= dict(gpu_memory_bandwidth_bytes_per_s=1e9, attainable_fraction=1.0)
    >>> figures |= dict(intra_bandwidth_bytes_per_s=1e9, intra_latency_s=0.0)
    >>> world = Topology.of(
    ...     [Domain(name=name, **figures) for name in "AB"],
    ...     [
    ...         Link(source="A", target="B", bandwidth_bytes_per_s=1e9, latency_s=0.01),
    ...         Link(source="B", target="A", bandwidth_bytes_per_s=3e9, latency_s=0.03),
    ...     ],
    ... )
    >>> link = aggregated(world, "harmonic").links[0]
    >>> link.bandwidth_bytes_per_s, link.latency_s
    (1500000000.0, 0.02)
    """
    _check(aggregation)
    if topology.movement is not None:
        raise ValueError(
            "topology: movement must be None to aggregate its links, got links that move within "
            "the iteration; take a snapshot of them, such as topology.at_start()"
        )
    latencies_s = tuple(link.latency_s for link in topology.links)
    bandwidths = [link.bandwidth_bytes_per_s for link in topology.links]
    if len(set(bandwidths)) <= 1 and len(set(latencies_s)) <= 1:
        return topology
    bandwidth = _reduce(_BANDWIDTH[aggregation], bandwidths)
    latency_s = _reduce(_LATENCY[aggregation], latencies_s)
    return replace(
        topology,
        links=tuple(
            replace(link, bandwidth_bytes_per_s=bandwidth, latency_s=latency_s)
            for link in topology.links
        ),
        routing_latencies_s=topology.routing_latencies_s or latencies_s,
    )


def aggregated_inside(topology: Topology, aggregation: Aggregation) -> Topology:
    """Give all domains one bandwidth and one latency between their GPUs, as `aggregated` does."""
    _check(aggregation)
    domains = topology.domains
    bandwidth = _reduce(
        _BANDWIDTH[aggregation], [domain.intra_bandwidth_bytes_per_s for domain in domains]
    )
    latency_s = _reduce(_LATENCY[aggregation], [domain.intra_latency_s for domain in domains])
    return replace(
        topology,
        domains=tuple(
            replace(domain, intra_bandwidth_bytes_per_s=bandwidth, intra_latency_s=latency_s)
            for domain in domains
        ),
    )


def _reduce(reduction: _Reduction, values: Sequence[float]) -> float:
    """Reduce values to one; equal ones to themselves, which a mean may miss by its rounding."""
    return values[0] if len(set(values)) == 1 else reduction(values)


def _check(aggregation: str) -> None:
    if aggregation not in get_args(Aggregation):
        raise ValueError(
            f"network_aggregation: must be one of {', '.join(get_args(Aggregation))}; "
            f"got {aggregation!r}"
        )
