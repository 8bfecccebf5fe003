"""Worlds without one of their domains, or without the links of two of them."""

from collections.abc import Sequence

from des.world.topology import Link, Topology


def without_domain(topology: Topology, name: str) -> Topology:
    """Return the world without a domain and its links."""
    links = [one for one in topology.links if name not in (one.source, one.target)]
    return _keep(topology, links, lost=name)


def without_links(topology: Topology, source: str, target: str) -> Topology:
    """Return the world without the links of two domains, there and back."""
    lost = {source, target}
    return _keep(topology, [one for one in topology.links if {one.source, one.target} != lost])


def _keep(topology: Topology, links: Sequence[Link], lost: str | None = None) -> Topology:
    """The world with some of its links, which stand still at the figures given."""
    domains = [one for one in topology.domains if one.name != lost]
    return Topology.of(domains, links, transport=topology.transport)
