"""Gradients of a bucket within a domain: when they are made, and what summing them up takes."""

from collections.abc import Mapping
from types import MappingProxyType

from des.costs.bound_stages import BoundStage
from des.costs.copy_collectives import held_parameters, over_copies_s
from des.costs.message_times import correct_inside
from des.costs.node_collectives import RankGroup, group_all_reduce_s, group_reduce_scatter_s
from des.job.transformer import WEIGHT_BYTES
from des.job.workload import Workload
from des.plan.buckets import Bucket, parameters_of
from des.plan.corrections import Corrections

_HALVES_BEFORE: Mapping[str, int] = MappingProxyType({"part": 1, "first": 2, "done": 0})


def halves_before(stage: BoundStage, bucket: Bucket) -> int:
    """Half all-reduces of the GPUs of a device before the ring between domains.

    A reduce-scatter leaves every GPU its part of the sum; with an all-gather after it all have all.
    Sharded gradients are scattered within the passes, see `des.costs.sharded_passes`.
    """
    if stage.parallelism is not None and stage.parallelism.shards("gradients"):
        return 0
    return _HALVES_BEFORE[bucket.inside]


def halves_after(bucket: Bucket) -> int:
    """Half all-reduces of the GPUs of a device after the ring: none of what is only scattered."""
    return 0 if bucket.half == "scatter" else 1


def left_fraction(workload: Workload, stage: BoundStage, bucket: Bucket) -> float:
    """Part of a stage's backward pass that comes after it has made a bucket.

    A pass spends its time on the layers in proportion to the FLOPs of their whole backward pass.
    """
    flops, own = workload.sums_before.backward_flops, stage.stage
    return (flops[bucket.first_layer] - flops[own.first_layer]) / own.total(flops)


def payload_bytes(workload: Workload, bucket: Bucket, tensor: int) -> float:
    """Gradients of a bucket that one of ``tensor`` GPUs holds. [bytes]"""
    parameters = parameters_of(workload, bucket.first_layer, bucket.num_layers)
    return workload.gradient_bytes * parameters / tensor


def half_sum_s(
    workload: Workload, stage: BoundStage, bucket: Bucket, corrections: Corrections
) -> float | None:
    """Time of half an all-reduce among the replicas of a stage's device. [s]

    None where the device is one, and where its replicas shard the weights: then passes gather them.
    Reduce-scatter and all-gather of as many bytes take the same, see `des.costs.collectives`; new
    weights have 2 bytes each. Where every GPU needs the whole sum and no domain has a part in it,
    it is half of the quicker of ring and tree.
    """
    parallelism = stage.parallelism
    if parallelism is None or parallelism.shards("parameters"):
        return None
    inside = correct_inside(stage.domain, corrections)
    needs_parts = bucket.between_domains or parallelism.shards("optimiser")
    held = held_parameters(workload, bucket.first_layer, bucket.num_layers, parallelism)
    return over_copies_s(
        group_reduce_scatter_s if needs_parts else _half_all_reduce_s,
        held,
        WEIGHT_BYTES if bucket.half == "gather" else workload.gradient_bytes,
        inside,
        parallelism,
        device=stage.stage.device,
    )


def _half_all_reduce_s(num_bytes: float, group: RankGroup) -> float:
    half_s = group_reduce_scatter_s(num_bytes, group)
    if group.num_nodes == 1:
        return half_s
    return min(half_s, group_all_reduce_s(num_bytes, group) / 2)
