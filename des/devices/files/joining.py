"""Facts of several readings of one machine, joined into its server."""

from collections.abc import Sequence
from dataclasses import replace

from des.devices.files.sysfs import SysfsCard
from des.devices.server import Gpu, NumaNode, Server
from des.devices.spans import numbers_in


def with_numa_nodes(server: Server, nodes: Sequence[NumaNode]) -> Server:
    """Return the server with NUMA nodes, their CPUs, memory and distances.

    A GPU whose matrix names CPUs but no nodes is near the nodes of those CPUs.

    Raises
    ------
    ValueError
        If a GPU is near a node that is not among these, or near CPUs that none of them has.
    """
    known = {node.number for node in nodes}
    owners: dict[int, set[int]] = {}  # simulated nodes share their CPUs
    for node in nodes:
        for cpu in numbers_in(node.cpus):
            owners.setdefault(cpu, set()).add(node.number)
    gpus = []
    for gpu in server.gpus:
        foreign = [number for number in gpu.numa_nodes if number not in known]
        lost = [cpu for cpu in numbers_in(gpu.cpus) if cpu not in owners]
        if foreign or lost:
            what = f"NUMA node {foreign[0]}" if foreign else f"CPU {lost[0]}"
            raise ValueError(
                f"{server.name}: {gpu.name} is near {what}, which is of none of the NUMA nodes "
                f"{', '.join(map(str, sorted(known)))}: are they of the same machine?"
            )
        gpus.append(_near_nodes(gpu, owners))
    return replace(server, gpus=tuple(gpus), numa_nodes=tuple(nodes))


def _near_nodes(gpu: Gpu, owners: dict[int, set[int]]) -> Gpu:
    if gpu.numa_nodes or not gpu.cpus:
        return gpu
    near = set().union(*(owners[cpu] for cpu in numbers_in(gpu.cpus)))
    return replace(gpu, numa_nodes=tuple(sorted(near)))


def with_cards(server: Server, cards: Sequence[SysfsCard]) -> Server:
    """Return the server with NUMA nodes and rates of the cards that the system has by these names.

    Cards that the matrix does not have are left out: their tokens are not known.
    """
    of_name = {card.device: card for card in cards}
    joined = []
    for nic in server.nics:
        card = of_name.get(nic.device or nic.name)
        joined.append(
            replace(
                nic,
                numa_node=card.numa_node,
                bandwidth_bytes_per_s=card.bandwidth_bytes_per_s or nic.bandwidth_bytes_per_s,
            )
            if card
            else nic
        )
    return replace(server, nics=tuple(joined))
