"""Policies for NUMA nodes, as the topology manager of Kubernetes has them.

``none`` ignores the nodes. ``best-effort`` takes the least number of nodes that the free GPUs
allow. ``restricted`` refuses what needs more nodes than the server without other jobs would need.
``single-numa`` refuses more than one. A GPU may be near several nodes; one of them is enough.

References
----------
.. [1] Kubernetes, "Control Topology Management Policies on a node", documentation; KEP-693, "Node
   Topology Manager", section "Computing Preferred Affinity".
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Literal, get_args

from des.base.checks import require_one_of
from des.devices.server import Server

NumaPolicy = Literal["none", "best-effort", "restricted", "single-numa"]

POLICIES: tuple[NumaPolicy, ...] = get_args(NumaPolicy)


def gpus_near_nodes(server: Server, places: Collection[int]) -> dict[int, frozenset[int]]:
    """GPUs near each NUMA node, by the node's number; those of some places."""
    nodes = sorted({node for place in places for node in server.gpus[place].numa_nodes})
    return {
        node: frozenset(place for place in places if node in server.gpus[place].numa_nodes)
        for node in nodes
    }


def least_nodes(near: Mapping[int, frozenset[int]], num_gpus: int) -> int | None:
    """Least number of nodes that have some number of GPUs near them; None if all have fewer."""
    if num_gpus > len(frozenset().union(*near.values())):
        return None
    sizes = sorted(map(len, near.values()), reverse=True)
    if sum(sizes) == len(frozenset().union(*near.values())):  # no GPU is near two
        return next(count for count in range(1, len(sizes) + 1) if sum(sizes[:count]) >= num_gpus)
    return next(
        count
        for count in range(1, len(near) + 1)
        for chosen in combinations(near.values(), count)
        if len(frozenset().union(*chosen)) >= num_gpus
    )


def nodes_needed(server: Server, places: Collection[int]) -> int | None:
    """Least number of NUMA nodes that some GPUs are near to; None where one's are not known."""
    if not all(server.gpus[place].numa_nodes for place in places):
        return None
    return least_nodes(gpus_near_nodes(server, places), len(places))


def most_nodes(
    server: Server, num_gpus: int, free: Sequence[int], policy: NumaPolicy
) -> int | None:
    """Most NUMA nodes that a set of free GPUs, given by places, may be near to; None is any number.

    Raises
    ------
    ValueError
        If the policy cannot be met, naming the largest number of GPUs for which it can, or if it
        needs the nodes of GPUs of which they are not known.
    """
    require_one_of("placement", "policy", policy, POLICIES)
    unknown = [gpu.name for gpu in server.gpus if not gpu.numa_nodes]
    if policy == "none" or (policy == "best-effort" and unknown):
        return None
    if unknown:
        raise ValueError(
            f"server {server.name}: policy {policy} needs the NUMA nodes of all GPUs, which are "
            f"not known of {', '.join(unknown)}"
        )
    near = gpus_near_nodes(server, free)
    needed = least_nodes(near, num_gpus)
    assert needed is not None  # every free GPU is near a node
    allowed = _allowed(server, num_gpus, policy)
    if allowed is None or needed <= allowed:
        return needed
    largest = max(
        (
            count
            for count in range(1, num_gpus)
            if (least_nodes(near, count) or 0) <= (_allowed(server, count, policy) or 0)
        ),
        default=0,
    )
    raise ValueError(
        f"server {server.name}: policy {policy} allows {num_gpus} GPUs on {allowed} NUMA "
        f"node{'s' if allowed > 1 else ''}, got {len(free)} free GPUs that need {needed}; the "
        f"largest number that can be met is {largest}"
    )


def _allowed(server: Server, num_gpus: int, policy: NumaPolicy) -> int | None:
    """Most nodes that a policy allows; None is any number."""
    if policy == "single-numa":
        return 1
    if policy == "restricted":
        return least_nodes(gpus_near_nodes(server, range(server.num_gpus)), num_gpus)
    return None
