"""Flows over the uplinks of racks, of GPUs of a device that exchange at once.

A ring over nodes enters and leaves each of its racks once, whatever the number of nodes there, as
it visits them rack by rack (`des.devices.node_rings` finds the same of named nodes).
"""

from collections import Counter, defaultdict
from functools import lru_cache

import numpy as np

from des.world.nodes import Nodes, rack_order


@lru_cache(maxsize=4096)
def group_flows(
    nodes: Nodes, gpus: range, block: int, stride: int, *, is_all_to_all: bool = False
) -> float:
    """Most flows of groups over the uplink of a rack in one direction; 0 where none leaves a rack.

    Parameters
    ----------
    gpus
        GPUs of a device. They are blocks in a row, and the groups of a block have GPUs that lie
        ``stride`` apart.
    is_all_to_all
        Every GPU of a group sends to all others: the flows are as many as take on the uplink what
        those of a node take on its way out.
    """
    if nodes.rack_uplink_bytes_per_s is None:
        return 0.0
    racks, size = _racks(nodes), nodes.gpus_per_node
    num_ranks, per_node, alike = block // stride, max(1, size // stride), min(stride, size)
    flows: dict[int, float] = defaultdict(float)
    for begin in range(gpus.start, gpus.stop, block):
        for rank in range(0, stride, size):
            places = range(begin - begin % size + rank, begin + block, max(stride, size))
            own = Counter(racks[place // size].item() for place in places)
            for rack, num_nodes in own.items() if len(own) > 1 else ():
                inside = num_nodes * per_node
                sent = inside * (num_ranks - inside) / ((num_ranks - per_node) * per_node)
                flows[rack] += alike * (sent if is_all_to_all else 1.0)
    return max(flows.values(), default=0.0)


@lru_cache(maxsize=4096)
def pair_flows(nodes: Nodes, gpus: range, distance: int) -> float:
    """Most flows over the uplink of a rack as GPUs send to those that are ``distance`` on."""
    if nodes.rack_uplink_bytes_per_s is None:
        return 0.0
    places = np.arange(gpus.start, gpus.stop)
    here, there = (
        _racks(nodes)[each // nodes.gpus_per_node] for each in (places, places + distance)
    )
    is_out = here != there
    return float(max(np.bincount(racks[is_out], minlength=1).max() for racks in (here, there)))


@lru_cache(maxsize=256)
def _racks(nodes: Nodes) -> np.ndarray:
    """Number of the rack of each node, in the order in which plans take them."""
    number = {rack: at for at, rack in enumerate(dict.fromkeys(nodes.racks))}
    return np.array([number[nodes.racks[node]] for node in rack_order(nodes)])
