"""Members of gradient exchanges in a program, and the messages of their rings."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from des.compiled.flows import Flows, Mark
from des.compiled.kernels.program import MEMBER, RELEASE, STAGE
from des.costs.inner_sums import half_sum_s, halves_before, left_fraction
from des.costs.local_borders import summed_part_inside
from des.job.workload import Workload
from des.plan.buckets import Bucket
from des.plan.corrections import Corrections
from des.plan.plan import Plan
from des.world.topology import Topology


class Exchanges(NamedTuple):
    """Arrays of a program that are about gradients."""

    stages: np.ndarray
    releases: np.ndarray
    members: np.ndarray
    num_late: int = 0


def lower_exchanges(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    buckets: Sequence[Bucket],
    flows: Flows,
    *,
    num_workers: int,
    corrections: Corrections,
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
                flows,
                topology,
                plan,
                number=number,
                bucket=bucket,
                first_receiver=first_receiver,
                corrections=corrections,
            )
        for position, index in enumerate(bucket.stages):
            stage, after = plan.stages[index], (position + 1) % len(bucket.stages)
            half_s = half_sum_s(topology, workload, plan, stage, bucket, corrections=corrections)
            if not bucket.after_step:
                releases[index].append((len(members), left_fraction(workload, stage, bucket)))
            members.append(
                (
                    plan.device_of_stage[index],
                    halves_before(plan, stage, bucket),
                    num_steps,
                    first_message + after * num_steps,
                    first_message + position * num_steps,
                    -1.0 if half_s is None else half_s,
                )
            )
    return Exchanges(
        stages=_stage_records(workload, plan, [len(found) for found in releases]),
        releases=np.array([one for found in releases for one in found] or [(0, 0.0)], RELEASE),
        members=np.array(members, MEMBER),
        num_late=sum(len(bucket.stages) for bucket in buckets if bucket.after_step),
    )


def _add_ring(
    flows: Flows,
    topology: Topology,
    plan: Plan,
    *,
    number: int,
    bucket: Bucket,
    first_receiver: int,
    corrections: Corrections,
) -> None:
    """Add a flow to each member from the one before it, one message per step."""
    part_bytes = bucket.num_bytes / len(bucket.stages)
    for position, index in enumerate(bucket.stages):
        before = bucket.stages[position - 1]
        here, there = plan.stages[before], plan.stages[index]
        devices = (plan.device_of_stage[before], plan.device_of_stage[index])
        ends = {
            "num_messages": 2 * (len(bucket.stages) - 1),
            "receiver": first_receiver + position,
        }
        if here.domain != there.domain:
            flows.add_links(
                topology.route(here.domain, there.domain),
                part_bytes,
                Mark(before, "G", number, 0),
                endpoint=devices[0],
                **ends,
            )
        elif devices[0] == devices[1]:
            flows.add_stay(**ends)
        else:
            border = summed_part_inside(topology, plan, (here, there), part_bytes, corrections)
            flows.add_local(devices, border, **ends)


def _stage_records(workload: Workload, plan: Plan, num_releases: Sequence[int]) -> np.ndarray:
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    sizes = plan.replica_sizes
    records = np.zeros(len(num_releases), STAGE)
    records["replica"] = np.repeat(np.arange(len(sizes)), sizes)
    records["num_passes"] = np.repeat(shares, sizes)
    records["end_release"] = np.cumsum(num_releases)
    records["first_release"] = records["end_release"] - num_releases
    return records
