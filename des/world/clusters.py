"""The servers of all domains of a world as one cluster."""

from des.devices.cluster import RACK, Cluster, ClusterNode, Switch
from des.world.domain import Domain
from des.world.nodes import Nodes
from des.world.topology import Topology

DOMAIN = "zone"
"""Level of the domains, above that of their racks: Kubernetes calls a data centre so."""


def cluster_of_domains(topology: Topology) -> Cluster:
    """Make a cluster of the servers of all domains, below their racks and domains.

    A domain without ``nodes`` counts as one server of all its GPUs. Racks are named by their domain
    too, as domains may have racks of one name. Links above nodes and racks have figures where those
    of racks are known.

    Examples
    --------
    >>> from des import read_topology
    >>> cluster = cluster_of_domains(read_topology("two_sites_of_nodes"))
    >>> len(cluster.nodes), cluster.nodes[-1].name, cluster.nodes[-1].switch
    (256, 'South-127', 'South')
    """
    nodes, switches = list[ClusterNode](), list[Switch]()
    for domain in topology.domains:
        switches.append(Switch(name=domain.name, level=DOMAIN))
        racks = () if domain.nodes is None else domain.nodes.racks
        of_node, of_rack = _uplinks(domain.nodes)
        switches += [
            Switch(
                name=_rack(domain, rack),
                level=RACK,
                parent=domain.name,
                uplink_bytes_per_s=of_rack[0],
                uplink_latency_s=of_rack[1],
            )
            for rack in dict.fromkeys(racks)
        ]
        nodes += [
            ClusterNode(
                name=f"{domain.name}-{number}",
                switch=_rack(domain, racks[number]) if racks else domain.name,
                server=None if domain.nodes is None else domain.nodes.server,
                num_gpus=domain.num_gpus // domain.num_nodes,
                uplink_bytes_per_s=of_node[0],
                uplink_latency_s=of_node[1],
            )
            for number in range(domain.num_nodes)
        ]
    return Cluster(nodes=tuple(nodes), switches=tuple(switches))


def _uplinks(nodes: Nodes | None) -> tuple[tuple[float | None, float], ...]:
    """Bandwidth and latency of the links above a node and a rack, where those of racks are known.

    A way between two of them goes up and down.
    """
    if nodes is None or nodes.rack_uplink_bytes_per_s is None:
        return (None, 0.0), (None, 0.0)
    cards_bytes_per_s = nodes.nics_per_node * nodes.nic_bandwidth_bytes_per_s
    return (
        (cards_bytes_per_s, nodes.nic_latency_s / 2),
        (nodes.rack_uplink_bytes_per_s, nodes.rack_latency_s / 2),
    )


def _rack(domain: Domain, rack: str) -> str:
    return f"{domain.name}/{rack}"
