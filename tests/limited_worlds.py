"""Worlds whose sites have uplinks, downlinks and caps."""

from dataclasses import replace

from hypothesis import strategies as st

from des import Topology
from des.world.access import Access


@st.composite
def limited(
    draw: st.DrawFn, topology: Topology, rates: st.SearchStrategy[float] | None = None
) -> Topology:
    """The same world with limits on some sites and links, which may hold several domains.

    ``rates`` (default: a tenth to twice the first link's) are those of limits. [bytes/s]
    """
    if topology.transport.sharing == "fair" and topology.transport.half_duplex:
        topology = replace(topology, transport=replace(topology.transport, half_duplex=False))
    if rates is None:
        rates = st.floats(0.1, 2.0).map(lambda part: part * topology.links[0].bandwidth_bytes_per_s)
    maybe = st.none() | rates
    sites = draw(st.lists(st.sampled_from(["s", "t", None]), min_size=4, max_size=4))
    ways = {site: (draw(maybe), draw(maybe)) for site in ("s", "t")}
    domains = []
    for domain, site in zip(topology.domains, sites, strict=False):
        uplink, downlink = (draw(maybe), draw(maybe)) if site is None else ways[site]
        access = Access(
            uplink_bytes_per_s=uplink,
            downlink_bytes_per_s=downlink,
            flow_cap_bytes_per_s=draw(maybe),
            host_cap_bytes_per_s=draw(maybe),
        )
        domains.append(replace(domain, site=site, access=access))
    links = [replace(link, flow_cap_bytes_per_s=draw(maybe)) for link in topology.links]
    return replace(topology, domains=tuple(domains), links=tuple(links))
