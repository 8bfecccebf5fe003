"""Borders between devices of one domain: messages of activations, and sums of gradients."""

from des.base.node_arithmetic import message_to_node_s
from des.costs.bound_stages import BoundStage
from des.costs.message_times import correct_inside
from des.costs.node_collectives import group_all_gather_s
from des.costs.node_groups import outer_wire, tensor_group
from des.job.workload import Workload
from des.plan.corrections import Corrections
from des.plan.parallelism import Parallelism
from des.schedules import Border
from des.world.domain import Domain


def local_message_s(
    workload: Workload,
    domain: Domain,
    parallelism: Parallelism,
    corrections: Corrections,
    *,
    device: int,
    distance: int = 1,
) -> Border:
    """Border between a device and one ``distance`` on in its domain, in either direction.

    Every GPU sends the share of its replica to its partner. To another node each may instead send
    its part of the share, which the partner's tensor group then gathers, if that is quicker.

    Notes
    -----
    The parts are the scatter/gather optimisation of D. Narayanan et al., "Efficient large-scale
    language model training on GPU clusters using Megatron-LM", SC 2021, section 4.1.
    """
    inside = correct_inside(domain, corrections)
    share_bytes = workload.message_bytes / parallelism.copies
    wire = outer_wire(inside, parallelism, device, distance=distance)
    if wire is None:
        transfer_s = share_bytes / inside.intra_bandwidth_bytes_per_s
        return Border(transfer_s=transfer_s, latency_s=inside.intra_latency_s)
    bandwidth, latency_s = wire
    gather_s = group_all_gather_s(share_bytes, tensor_group(inside, parallelism))
    transfer_s, flight_s = message_to_node_s(
        share_bytes, parallelism.tensor, bandwidth, latency_s, gather_s
    )
    return Border(transfer_s=transfer_s, latency_s=flight_s)


def border_inside(
    workload: Workload, here: BoundStage, there: BoundStage, corrections: Corrections
) -> Border:
    """Border between two stages of one domain, which is none where they are on one device."""
    distance = abs(here.stage.device - there.stage.device)
    if distance == 0:
        return Border()
    assert here.parallelism is not None  # a domain without one is one device
    return local_message_s(
        workload,
        here.domain,
        here.parallelism,
        corrections,
        device=min(here.stage.device, there.stage.device),
        distance=distance,
    )


def sum_part_inside(
    part_bytes: float, here: BoundStage, there: BoundStage, corrections: Corrections
) -> Border:
    """Border over which two devices of a domain sum up gradients of pipelines that share it.

    Every GPU of a device sends its share of the part.
    """
    distance = abs(here.stage.device - there.stage.device)
    if distance == 0:
        return Border()
    assert here.parallelism is not None  # a domain without one is one device
    inside = correct_inside(here.domain, corrections)
    device = min(here.stage.device, there.stage.device)
    wire = outer_wire(inside, here.parallelism, device, distance=distance) or (
        inside.intra_bandwidth_bytes_per_s,
        inside.intra_latency_s,
    )
    share_bytes = part_bytes / here.num_gpus
    return Border(transfer_s=share_bytes / wire[0], latency_s=wire[1])
