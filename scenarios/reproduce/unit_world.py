"""Domains of 1 FLOP/s, in which a pass of n FLOPs takes n seconds."""

from des import Domain

FREE_BANDWIDTH_BYTES_PER_S = 1e300
"""Bandwidth at which the time of any message vanishes in a float."""


def unit_domain(name: str, *, memory_bytes: float = 1.0) -> Domain:
    """One GPU of 1 FLOP/s that reaches its peak."""
    return Domain(
        name=name,
        num_gpus=1,
        gpu_peak_flops_per_s=1.0,
        gpu_memory_bytes=memory_bytes,
        gpu_memory_bandwidth_bytes_per_s=1.0,
        attainable_fraction=1.0,
        intra_bandwidth_bytes_per_s=1.0,
        intra_latency_s=0.0,
    )
