"""Iterations eligible for the recurrence of `des.compiled.kernels.recurrence`."""

from itertools import pairwise

from des.plan.buckets import sums_inside
from des.plan.placement import device_numbers
from des.plan.plan import Plan, replica_stages
from des.schedules import is_static
from des.world.topology import Topology


def is_foreseeable(topology: Topology, plan: Plan) -> bool:
    """Whether nothing that happens in an iteration can change the order of anything else.

    So it is where the schedule asks for counts alone, every stage has a device of its own, every
    border between domains is one direct link each way, links serve in turn and each way by itself,
    senders never wait, and no gradients are exchanged.

    Parameters
    ----------
    plan
        One that matches the topology.
    """
    if not has_plain_transport(topology) or plan.sends == "blocking":
        return False
    if plan.replicas or not is_static(plan.schedule):
        return False
    stages = replica_stages(plan.placement, plan.parallelism)
    if any(sums_inside(plan.parallelism_of(stage.domain)) for stage in stages):
        return False
    if len(set(device_numbers(stages))) < len(stages):
        return False
    borders = [(upper.domain, lower.domain) for upper, lower in pairwise(stages)]
    return all(
        way in topology.link_index
        for here, there in borders
        if here != there
        for way in ((here, there), (there, here))
    )


def has_plain_transport(topology: Topology) -> bool:
    """Whether links serve in turn and each by itself, without caps, and messages never wait."""
    transport = topology.transport
    return (
        transport.sharing == "fifo"
        and transport.endpoints == "overlapped"
        and not transport.half_duplex
        and transport.is_immediate
        and topology.first_limit is None
    )
