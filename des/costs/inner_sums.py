"""Gradients of a bucket within a domain: when they are made, and what summing them up takes."""

from collections.abc import Mapping
from types import MappingProxyType

from des.costs.collectives import reduce_scatter_s
from des.costs.message_times import corrected_inside
from des.job.transformer import GRADIENT_BYTES
from des.job.workload import Workload
from des.plan.buckets import Bucket, parameters_of
from des.plan.corrections import Corrections
from des.plan.placement import Stage
from des.plan.plan import Plan
from des.world.topology import Topology

HALVES_BEFORE: Mapping[str, int] = MappingProxyType({"part": 1, "first": 2, "done": 0})
"""Half all-reduces of the GPUs of a device before the ring between domains, by `Bucket.inside`.

A reduce-scatter leaves every GPU its part of the sum; with an all-gather after it all have all.
"""


def left_fraction(workload: Workload, stage: Stage, bucket: Bucket) -> float:
    """Part of a stage's backward pass that comes after it has made a bucket.

    A pass spends its time on the layers in proportion to the FLOPs of their whole backward pass.
    """
    flops = workload.sums_before.backward_flops
    return (flops[bucket.first_layer] - flops[stage.first_layer]) / stage.total(flops)


def payload_bytes(workload: Workload, bucket: Bucket, tensor: int) -> float:
    """Gradients of a bucket that one of ``tensor`` GPUs holds. [bytes]"""
    parameters = parameters_of(workload, bucket.first_layer, bucket.num_layers)
    return GRADIENT_BYTES * parameters / tensor


def half_sum_s(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    domain: int,
    bucket: Bucket,
    *,
    corrections: Corrections,
) -> float | None:
    """Time of half an all-reduce among the replicas of a device; None where it is but one. [s]

    Reduce-scatter and all-gather take the same, see `des.costs.collectives`.
    """
    parallelism = plan.parallelism_of(domain)
    if parallelism is None:
        return None
    figures = corrected_inside(topology.domains[domain], corrections)
    return reduce_scatter_s(
        payload_bytes(workload, bucket, parallelism.tensor),
        parallelism.data,
        figures.intra_bandwidth_bytes_per_s,
        figures.intra_latency_s,
    )
