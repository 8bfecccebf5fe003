"""GPUs of a domain that exchange data: the nodes they lie in and the wires they have.

A device of ``tensor x context x data`` GPUs takes them in the order of their numbers, device by
device; its tensor groups are ``tensor`` GPUs in a row, and its data groups hold one GPU of each of
them (the order of Megatron-LM: tensor within context within data within pipeline). Of the copies in
that order ``context`` in a row share a sequence, and ``expert`` in a row the experts; whole experts
lie on as many GPUs in a row. Groups of one
device communicate at the same time and share the cards of their nodes; different devices of a node
do not see each other. All counts are of the first, the last and the full nodes of a device, so no
cost grows with the number of replicas; flows over the uplinks of racks (`des.costs.rack_flows`),
where they are known, are counted node by node.
"""

from collections import Counter
from functools import lru_cache

from des.costs.node_collectives import RankGroup
from des.costs.rack_flows import group_flows, pair_flows
from des.plan.parallelism import Parallelism
from des.world.domain import Domain
from des.world.nodes import Nodes


@lru_cache(maxsize=4096)
def tensor_group(domain: Domain, parallelism: Parallelism) -> RankGroup:
    """One replica's GPUs, which share every layer."""
    return _in_a_row(domain, parallelism, parallelism.tensor)


def expert_group(domain: Domain, parallelism: Parallelism) -> RankGroup:
    """GPUs that share routed experts: of copies in a row, or where experts are whole in a row."""
    if parallelism.whole_experts:
        return _in_a_row(domain, parallelism, parallelism.expert, is_all_to_all=True)
    return block_group(domain, parallelism, parallelism.expert)


def _in_a_row(
    domain: Domain, parallelism: Parallelism, size: int, *, is_all_to_all: bool = False
) -> RankGroup:
    """GPUs in a row, which are a part of a node or fill whole ones."""
    nodes = domain.nodes
    if nodes is None or size <= nodes.gpus_per_node:
        return _on_one_node(domain, size)
    return _on_nodes(
        domain,
        nodes,
        num_ranks=size,
        members=(size // nodes.gpus_per_node, nodes.gpus_per_node, nodes.gpus_per_node),
        num_groups=1,
        rack_flows=_most_flows(domain, parallelism, size, 1, is_all_to_all=is_all_to_all),
    )


@lru_cache(maxsize=4096)
def data_group(domain: Domain, parallelism: Parallelism, device: int) -> RankGroup:
    """One GPU of each copy of a device's weights: those that sum up gradients."""
    return _apart(domain, parallelism, device, parallelism.tensor)


@lru_cache(maxsize=4096)
def expert_data_group(domain: Domain, parallelism: Parallelism, device: int) -> RankGroup:
    """GPUs of a device with the same experts: those that sum up their gradients."""
    return _apart(domain, parallelism, device, parallelism.expert_parts)


def _apart(domain: Domain, parallelism: Parallelism, device: int, stride: int) -> RankGroup:
    """GPUs of a device that lie ``stride`` apart, as many as there are."""
    size, nodes = parallelism.gpus_per_device // stride, domain.nodes
    if nodes is None or parallelism.num_gpus <= nodes.gpus_per_node:
        return _on_one_node(domain, size)
    members = nodes_of(device * size, size, max(1, nodes.gpus_per_node // stride))
    if members[0] == 1:
        return _on_one_node(domain, size)
    gpus = parallelism.gpus_per_device
    return _on_nodes(
        domain,
        nodes,
        num_ranks=size,
        members=members,
        num_groups=min(stride, nodes.gpus_per_node),
        rack_flows=group_flows(nodes, _gpus_of(parallelism, device), gpus, stride),
    )


@lru_cache(maxsize=4096)
def block_group(
    domain: Domain, parallelism: Parallelism, count: int, *, num_senders: int | None = None
) -> RankGroup:
    """GPUs of ``count`` copies in a row, one of each, as all such groups of a device have them.

    The blocks of ``tensor x count`` GPUs fill nodes without remainder, or whole ones. All GPUs of a
    group in a node send out at a time, to all others, or ``num_senders`` of them, in a ring.
    """
    nodes = domain.nodes
    if (
        nodes is None
        or parallelism.num_gpus <= nodes.gpus_per_node
        or parallelism.tensor * count <= nodes.gpus_per_node
    ):
        return _on_one_node(domain, count)
    per_node = max(1, nodes.gpus_per_node // parallelism.tensor)
    return _on_nodes(
        domain,
        nodes,
        num_ranks=count,
        members=(count // per_node, per_node, num_senders or per_node),
        num_groups=min(parallelism.tensor, nodes.gpus_per_node),
        rack_flows=_most_flows(
            domain,
            parallelism,
            parallelism.tensor * count,
            parallelism.tensor,
            is_all_to_all=num_senders is None,
        ),
    )


def _most_flows(
    domain: Domain, parallelism: Parallelism, block: int, stride: int, *, is_all_to_all: bool
) -> float:
    """Flows of `group_flows` of that device of a domain which has most, whichever are in use."""
    if domain.nodes is None or not domain.nodes.has_priced_racks:
        return 0.0
    return max(
        group_flows(
            domain.nodes, _gpus_of(parallelism, device), block, stride, is_all_to_all=is_all_to_all
        )
        for device in range(domain.num_gpus // parallelism.gpus_per_device)
    )


def _gpus_of(parallelism: Parallelism, device: int) -> range:
    size = parallelism.gpus_per_device
    return range(device * size, (device + 1) * size)


def outer_wire(
    domain: Domain, parallelism: Parallelism, device: int, *, distance: int = 1
) -> tuple[float, float] | None:
    """Bandwidth [bytes/s] and latency [s] from GPUs to their partners in another device, or back.

    That device is ``distance`` on: 1 for the next one, more where chunks go round in a loop. Of the
    pairs that lie in different nodes the slowest, as all GPUs of a device send at the same time;
    None where no pair does.
    """
    nodes = domain.nodes
    if nodes is None or parallelism.num_gpus <= nodes.gpus_per_node:
        return None
    size = parallelism.gpus_per_device
    num_senders = most_crossing(device * size, size, nodes.gpus_per_node, partner=distance * size)
    if num_senders == 0:
        return None
    flows = pair_flows(nodes, _gpus_of(parallelism, device), distance * size)
    return nodes.way_out(1, num_senders, flows)


def nodes_of(first: int, count: int, size: int) -> tuple[int, int, int]:
    """Nodes of ``size`` places that places in a row lie in; most and fewest of them in one node.

    Examples
    --------
    >>> nodes_of(6, 20, 8)  # 2, 8, 8 and 2
    (4, 8, 2)
    >>> nodes_of(1, 3, 8)
    (1, 3, 3)
    """
    num_nodes = (first + count - 1) // size - first // size + 1
    if num_nodes == 1:
        return 1, count, count
    head, tail = size - first % size, (first + count - 1) % size + 1
    full = (size,) if num_nodes > 2 else ()
    return num_nodes, max(head, tail, *full), min(head, tail)


@lru_cache(maxsize=4096)
def most_crossing(first: int, count: int, size: int, *, partner: int) -> int:
    """Most places of one node whose partners, ``partner`` places on, lie in another node.

    Of the ``count`` places from ``first`` on as senders and of their partners as receivers.

    Examples
    --------
    >>> [most_crossing(first, 4, 8, partner=4) for first in (0, 4)]
    [0, 4]
    >>> most_crossing(0, 6, 8, partner=6), most_crossing(0, 2, 8, partner=6)
    (4, 0)
    """
    if partner >= size:  # every partner lies in another node
        return max(nodes_of(first, count, size)[1], nodes_of(first + partner, count, size)[1])
    pairs = [(place // size, (place + partner) // size) for place in range(first, first + count)]
    crossing = [pair for pair in pairs if pair[0] != pair[1]]
    loads = Counter(sender for sender, _ in crossing), Counter(there for _, there in crossing)
    return max((max(load.values(), default=0) for load in loads), default=0)


def _on_one_node(domain: Domain, size: int) -> RankGroup:
    return RankGroup(
        num_ranks=size,
        most_per_node=size,
        inner_bandwidth_bytes_per_s=domain.intra_bandwidth_bytes_per_s,
        inner_latency_s=domain.intra_latency_s,
    )


def _on_nodes(
    domain: Domain,
    nodes: Nodes,
    *,
    num_ranks: int,
    members: tuple[int, int, int],
    num_groups: int,
    rack_flows: float,
) -> RankGroup:
    """Group over several nodes; the node with the fewest ranks has the narrowest way out."""
    num_nodes, most, fewest = members
    bandwidth, latency_s = nodes.way_out(fewest, num_groups, rack_flows)
    return RankGroup(
        num_ranks=num_ranks,
        num_nodes=num_nodes,
        most_per_node=most,
        inner_bandwidth_bytes_per_s=domain.intra_bandwidth_bytes_per_s,
        inner_latency_s=domain.intra_latency_s,
        outer_bandwidth_bytes_per_s=bandwidth,
        outer_latency_s=latency_s,
    )
