"""Limits that the links of a site share, from the domains' `Access`, and most of one message."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from des.dynamics import LinkFigures
from des.world.access import OPEN
from des.world.domain import Domain
from des.world.transport import Transport


class CappedLink(LinkFigures, Protocol):
    """A link that may have a cap for one flow."""

    @property
    def flow_cap_bytes_per_s(self) -> float | None:
        """Most of one TCP connection; None means no cap. [bytes/s]"""


class SharedRate(NamedTuple):
    """A rate that some links share: their messages together never send faster.

    ``links`` are positions, in rising order.
    """

    name: str
    rate_bytes_per_s: float
    links: tuple[int, ...]


def check_sites(domains: Sequence[Domain], transport: Transport) -> None:
    """Refuse sites whose domains disagree on the uplink or the downlink, and ambiguous names.

    Fair parts of a medium of both directions and of an uplink are not defined together.
    """
    if transport.half_duplex and transport.sharing == "fair" and _are_limited(domains):
        raise ValueError(
            "transport: half_duplex must be False where sharing is fair and domains have a site, "
            "an uplink, a downlink or a cap; got True"
        )
    first_of: dict[str, Domain] = {}
    for domain in domains:
        first = first_of.setdefault(domain.site_name, domain)
        if first is not domain and None in (first.site, domain.site):
            raise ValueError(
                f"domain {domain.name}: site must be another name than that of a domain outside "
                f"it, got {domain.site_name!r}"
            )
        for field in ("uplink_bytes_per_s", "downlink_bytes_per_s"):
            here, there = getattr(domain.access, field), getattr(first.access, field)
            if here != there:
                raise ValueError(
                    f"domain {domain.name}: {field} must be that of {first.name}, of the same "
                    f"site, {there!r}; got {here!r}"
                )


def gates_of(domains: Sequence[Domain], links: Sequence[LinkFigures]) -> tuple[SharedRate, ...]:
    """All rates that links share: uplinks, downlinks, hosts, and WAN links of several domains.

    Links inside a site have no part in them. Where a site has several domains, all links to one
    other site stand for one line, which has the bandwidth of the widest.
    """
    if not _are_limited(domains):
        return ()
    by_name = {domain.name: domain for domain in domains}
    sharing: dict[tuple[str, str], list[int]] = defaultdict(list)
    rates: dict[tuple[str, str], float] = {}
    for index, source, target in _crossing(by_name, links):
        line = f"{source.site_name}->{target.site_name}"
        hosts_bytes_per_s = source.access.host_cap_bytes_per_s
        limits = (
            ("uplink", source.site_name, source.access.uplink_bytes_per_s),
            ("downlink", target.site_name, target.access.downlink_bytes_per_s),
            ("hosts", source.name, hosts_bytes_per_s and source.num_nodes * hosts_bytes_per_s),
            ("line", line, links[index].bandwidth_bytes_per_s),
        )
        for kind, name, rate in limits:
            if rate is not None:
                sharing[kind, name].append(index)
                rates[kind, name] = max(rate, rates.get((kind, name), 0.0))
    return tuple(
        SharedRate(f"{kind} of {name}", rates[kind, name], tuple(users))
        for (kind, name), users in sorted(sharing.items())
        if kind != "line" or len(users) > 1
    )


def message_caps_bytes_per_s(
    domains: Sequence[Domain],
    links: Sequence[CappedLink],
    transport: Transport,
    gates: Iterable[SharedRate],
) -> tuple[float, ...]:
    """Most that one message gets of each link, whatever else is sent; ``inf`` is no cap. [bytes/s]

    A message has ``num_endpoint_pairs * flows_per_pair`` flows, and leaves from as many hosts of
    its domain as it has endpoints, or from all.
    """
    num_pairs = transport.num_endpoint_pairs
    num_flows = num_pairs * transport.flows_per_pair
    caps = [num_flows * _least(link.flow_cap_bytes_per_s) for link in links]
    if not _are_limited(domains):
        return tuple(caps)
    by_name = {domain.name: domain for domain in domains}
    for index, source, target in _crossing(by_name, links):
        flow = _least(source.access.flow_cap_bytes_per_s, target.access.flow_cap_bytes_per_s)
        host = min(num_pairs, source.num_nodes) * _least(source.access.host_cap_bytes_per_s)
        caps[index] = min(caps[index], num_flows * flow, host)
    for gate in gates:
        for index in gate.links:
            caps[index] = min(caps[index], gate.rate_bytes_per_s)
    return tuple(caps)


def notes_on_sites(domains: Sequence[Domain], links: Sequence[LinkFigures]) -> tuple[str, ...]:
    """Name the links that are wider than the uplink or the downlink which they lead through."""
    by_name = {domain.name: domain for domain in domains}
    notes = {}
    for index, source, target in _crossing(by_name, links):
        width = links[index].bandwidth_bytes_per_s
        ends = (
            ("uplink", source.site_name, source.access.uplink_bytes_per_s),
            ("downlink", target.site_name, target.access.downlink_bytes_per_s),
        )
        for kind, name, rate in ends:
            if rate is not None and rate < width:
                notes[kind, name, source.site_name, target.site_name] = (
                    f"{kind} of {name}, {8e-9 * rate:g} Gbit/s, is below its link "
                    f"{source.site_name}->{target.site_name}, {8e-9 * width:g} Gbit/s"
                )
    return tuple(notes.values())


def _are_limited(domains: Iterable[Domain]) -> bool:
    """Whether a domain has limits, or shares those of a site."""
    return any(domain.site is not None or domain.access != OPEN for domain in domains)


def _crossing(
    by_name: dict[str, Domain], links: Sequence[LinkFigures]
) -> Iterator[tuple[int, Domain, Domain]]:
    """Links between different sites, with the domains that they join."""
    for index, link in enumerate(links):
        source, target = by_name[link.source], by_name[link.target]
        if source.site_name != target.site_name:
            yield index, source, target


def _least(*rates: float | None) -> float:
    return min((rate for rate in rates if rate is not None), default=math.inf)
