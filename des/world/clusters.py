"""The servers of all domains of a world as one cluster."""

from des.devices.cluster import RACK, Cluster, ClusterNode, Switch
from des.world.domain import Domain
from des.world.topology import Topology

DOMAIN = "domain"
"""Level of the domains, above that of their racks."""


def cluster_of_domains(topology: Topology) -> Cluster:
    """Make a cluster of the servers of all domains, below their racks and domains.

    A domain without ``nodes`` counts as one server of all its GPUs. Racks are named by their domain
    too, as domains may have racks of one name.

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
        switches += [
            Switch(name=_rack(domain, rack), level=RACK, parent=domain.name)
            for rack in dict.fromkeys(racks)
        ]
        nodes += [
            ClusterNode(
                name=f"{domain.name}-{number}",
                switch=_rack(domain, racks[number]) if racks else domain.name,
                server=None if domain.nodes is None else domain.nodes.server,
                num_gpus=domain.num_gpus // domain.num_nodes,
            )
            for number in range(domain.num_nodes)
        ]
    return Cluster(nodes=tuple(nodes), switches=tuple(switches))


def _rack(domain: Domain, rack: str) -> str:
    return f"{domain.name}/{rack}"
