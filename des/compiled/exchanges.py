"""Members of gradient exchanges in a program, their steps and messages."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from des.compiled.flows import Flows, Mark
from des.compiled.kernels.program import MEMBER, RELEASE, STAGE, STEP
from des.costs.inner_sums import half_sum_s, halves_after, halves_before, left_fraction
from des.costs.local_borders import summed_part_inside
from des.job.workload import Workload
from des.plan.buckets import Bucket
from des.plan.corrections import Corrections
from des.plan.exchange_steps import Steps, exchange_steps, num_parts
from des.plan.plan import Plan
from des.world.topology import Topology


class Exchanges(NamedTuple):
    """Arrays of a program that are about gradients."""

    stages: np.ndarray
    releases: np.ndarray
    members: np.ndarray
    steps: np.ndarray
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
    """Number the members bucket by bucket; their messages join the flows."""
    members: list[tuple[float, ...]] = []
    steps: list[tuple[bool, int]] = []
    releases: list[list[tuple[int, float]]] = [[] for _ in plan.stages]
    for number, bucket in enumerate(buckets):
        own: Steps = ()
        if bucket.between_domains:
            is_half = bucket.half is not None
            own = exchange_steps(plan.exchange.tree, len(bucket.stages), is_half=is_half)
        first_message = flows.num_messages
        _add_messages(
            flows,
            topology,
            plan,
            own,
            number=number,
            bucket=bucket,
            first_receiver=num_workers + len(members),
            corrections=corrections,
        )
        for position, index in enumerate(bucket.stages):
            stage, first_step = plan.stages[index], len(steps)
            if own:
                steps += [(one.is_sent, first_message + one.message) for one in own[position]]
            half_s = half_sum_s(topology, workload, plan, stage, bucket, corrections=corrections)
            if not bucket.after_step:
                releases[index].append((len(members), left_fraction(workload, stage, bucket)))
            members.append(
                (
                    plan.device_of_stage[index],
                    halves_before(plan, stage, bucket),
                    halves_after(bucket),
                    first_step,
                    len(steps),
                    -1.0 if half_s is None else half_s,
                )
            )
    return Exchanges(
        stages=_stage_records(workload, plan, [len(found) for found in releases]),
        releases=np.array([one for found in releases for one in found] or [(0, 0.0)], RELEASE),
        members=np.array(members, MEMBER),
        steps=np.array(steps or [(False, 0)], STEP),
        num_late=sum(len(bucket.stages) for bucket in buckets if bucket.after_step),
    )


def _add_messages(
    flows: Flows,
    topology: Topology,
    plan: Plan,
    steps: Steps,
    *,
    number: int,
    bucket: Bucket,
    first_receiver: int,
    corrections: Corrections,
) -> None:
    """Add the messages of an exchange by receiver, those in a row from one sender as a flow."""
    part_bytes = bucket.num_bytes / num_parts(plan.exchange.tree, len(bucket.stages))
    for position, own in enumerate(steps):
        senders = [one.other for one in own if not one.is_sent]
        for sender, waits in groupby(senders):
            before, index = bucket.stages[sender], bucket.stages[position]
            here, there = plan.stages[before], plan.stages[index]
            devices = (plan.device_of_stage[before], plan.device_of_stage[index])
            ends = {"num_messages": len(list(waits)), "receiver": first_receiver + position}
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
