"""Worlds with some of their domains, or without the links of two of them, standing still."""

from collections.abc import Collection

from des.world.topology import Topology


def without_domain(topology: Topology, name: str) -> Topology:
    """Return the world without a domain and its links."""
    return with_domains(topology, topology.index_of.keys() - {name})


def with_domains(topology: Topology, names: Collection[str]) -> Topology:
    """Return the world with some of its domains and the links between them."""
    links = [one for one in topology.links if one.source in names and one.target in names]
    domains = [one for one in topology.domains if one.name in names]
    return Topology.of(domains, links, transport=topology.transport)


def without_links(topology: Topology, source: str, target: str) -> Topology:
    """Return the world without the links of two domains, there and back."""
    lost = {source, target}
    links = [one for one in topology.links if {one.source, one.target} != lost]
    return Topology.of(topology.domains, links, transport=topology.transport)
