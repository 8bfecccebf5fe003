"""Members of gradient exchanges in a program, and the messages of their rings."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from des.buckets import Bucket
from des.collectives import all_gather_s
from des.compiled.flows import Flows, Mark
from des.kernels.program import MEMBER, RELEASE, STAGE
from des.placement import Stage
from des.plan import Plan
from des.topology import Topology
from des.transformer import GRADIENT_BYTES
from des.workload import Workload, total

_NUM_BEFORE = {"part": 1, "first": 2, "done": 0}
"""Collectives among the GPUs of a device before the ring between domains."""


class Exchanges(NamedTuple):
    """Arrays of a program that are about gradients."""

    stages: np.ndarray
    releases: np.ndarray
    members: np.ndarray


def lower_exchanges(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    buckets: Sequence[Bucket],
    flows: Flows,
    *,
    num_workers: int,
) -> Exchanges:
    """Number the members bucket by bucket; their rings' messages join the flows."""
    members: list[tuple[float, ...]] = []
    releases: list[list[tuple[int, float]]] = [[] for _ in plan.stages]
    for number, bucket in enumerate(buckets):
        num_steps = 2 * (len(bucket.stages) - 1) if bucket.between_domains else 0
        first_member, first_message = len(members), flows.num_messages
        if num_steps:
            first_receiver = num_workers + first_member
            _add_ring(
                flows, topology, plan, number=number, bucket=bucket, first_receiver=first_receiver
            )
        for position, index in enumerate(bucket.stages):
            stage, after = plan.stages[index], (position + 1) % len(bucket.stages)
            releases[index].append((len(members), _left_fraction(workload, stage, bucket)))
            members.append(
                (
                    plan.device_of_stage[index],
                    _NUM_BEFORE[bucket.inside],
                    num_steps,
                    first_message + after * num_steps,
                    first_message + position * num_steps,
                    _inside_s(topology, workload, plan, stage, bucket),
                )
            )
    return Exchanges(
        stages=_stage_records(workload, plan, [len(found) for found in releases]),
        releases=np.array([one for found in releases for one in found] or [(0, 0.0)], RELEASE),
        members=np.array(members, MEMBER),
    )


def _add_ring(
    flows: Flows,
    topology: Topology,
    plan: Plan,
    *,
    number: int,
    bucket: Bucket,
    first_receiver: int,
) -> None:
    """Add a flow to each member from the one before it, a message a step."""
    for position, index in enumerate(bucket.stages):
        before = bucket.stages[position - 1]
        flows.add_links(
            topology.route(plan.stages[before].domain, plan.stages[index].domain),
            bucket.num_bytes / len(bucket.stages),
            Mark(before, "G", number, 0),
            num_messages=2 * (len(bucket.stages) - 1),
            endpoint=plan.device_of_stage[before],
            receiver=first_receiver + position,
        )


def _stage_records(workload: Workload, plan: Plan, num_releases: Sequence[int]) -> np.ndarray:
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    sizes = plan.replica_sizes
    records = np.zeros(len(num_releases), STAGE)
    records["replica"] = np.repeat(np.arange(len(sizes)), sizes)
    records["num_passes"] = np.repeat(shares, sizes)
    records["end_release"] = np.cumsum(num_releases)
    records["first_release"] = records["end_release"] - num_releases
    return records


def _left_fraction(workload: Workload, stage: Stage, bucket: Bucket) -> float:
    """How much of a stage's backward pass comes after it has made a bucket."""
    flops = workload.sums_before.backward_flops
    return (flops[bucket.first_layer] - flops[stage.first_layer]) / stage.total(flops)


def _inside_s(
    topology: Topology, workload: Workload, plan: Plan, stage: Stage, bucket: Bucket
) -> float:
    """Half an all-reduce among the replicas of one device; negative where there are none. [s]"""
    parallelism = plan.parallelism_of(stage.domain)
    if parallelism is None:
        return -1.0
    domain = topology.domains[stage.domain]
    parameters = total(workload.sums_before.num_parameters, bucket.first_layer, bucket.num_layers)
    return all_gather_s(
        GRADIENT_BYTES * parameters / parallelism.tensor,
        parallelism.data,
        domain.intra_bandwidth_bytes_per_s,
        domain.intra_latency_s,
    )
