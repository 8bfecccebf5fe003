"""Decisions on a cluster of 10,000 nodes: sets of 64, half of the nodes free."""

from collections.abc import Callable

from agents.devices.node_request import NodeRequest
from agents.devices.node_sets import choose_nodes
from des.devices.cluster import Cluster, ClusterNode, Switch

NUM_NODES, NODES_PER_RACK, RACKS_PER_SPINE = 10_000, 16, 32


def node_set_decisions() -> list[tuple[str, Callable[[], object]]]:
    """Sets of 64 nodes with several wishes; the last also makes the cluster and its levels."""
    cluster = large_cluster()
    free = [node.name for at, node in enumerate(cluster.nodes) if at * 7919 % 100 < 50]

    def chosen(wish: NodeRequest, of: Cluster = cluster) -> object:
        return choose_nodes(of, free, wish)

    return [
        ("64 of 10k nodes", lambda: chosen(NodeRequest(count=64))),
        (
            "64 of 10k nodes, at most 2 in a rack",
            lambda: chosen(NodeRequest(count=64, spread=(("rack", 2),))),
        ),
        (
            "64 of 10k nodes, data in 2 racks",
            lambda: chosen(NodeRequest(count=64, data=("r3", "r100"))),
        ),
        (
            "cluster of 10k nodes made, then 64 of them",
            lambda: chosen(NodeRequest(count=64), large_cluster()),
        ),
    ]


def large_cluster() -> Cluster:
    """Racks of 16 nodes below spines of 32 racks below one datacentre."""
    num_racks = -(-NUM_NODES // NODES_PER_RACK)
    num_spines = -(-num_racks // RACKS_PER_SPINE)
    racks = (
        Switch(name=f"r{at}", level="rack", parent=f"s{at // RACKS_PER_SPINE}")
        for at in range(num_racks)
    )
    spines = (Switch(name=f"s{at}", level="spine", parent="dc") for at in range(num_spines))
    return Cluster(
        nodes=tuple(
            ClusterNode(name=f"n{at:05d}", switch=f"r{at // NODES_PER_RACK}")
            for at in range(NUM_NODES)
        ),
        switches=(*racks, *spines, Switch(name="dc", level="datacentre")),
    )
