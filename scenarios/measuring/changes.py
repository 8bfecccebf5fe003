"""Changes of a world by measurements: links between sites, and networks inside them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from calibration.measurements.reading import Reading
from des.world.domain import Domain
from des.world.topology import Link, Topology
from scenarios.measuring.combined import Combined, bandwidths, latencies, of_pair
from scenarios.measuring.site_access import SiteLimit, limits_of_sites

_STEPS_OF = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}
"""Steps of the ring of a collective, by the ranks less one."""

_UNUSED = {
    "jitter": "links of a world have no jitter; a law of their course may (--law)",
    "rate_at_least": "the sender limited itself (-b), so the link has this or more",
    "traffic": "bytes that others send are no bandwidth",
    "gpu_load": "a load is given to decide: --loads SITE=0.5",
    "server": "a domain reads it as nodes: {server: FILE}",
    "step": "steps of training are for `eastwest calibrate runs`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A figure of a world before and after, and the measurements that set it."""

    owner: str
    field: str
    before: float | None
    after: Combined


@dataclass(slots=True, kw_only=True)
class MeasuredWorld:
    """A world with what was measured, the changes, and reasons why readings were not used."""

    topology: Topology
    changes: list[Change] = field(default_factory=list)
    unused: list[tuple[Reading, str]] = field(default_factory=list)

    @property
    def assumed(self) -> list[str]:
        """Figures of links and of inner networks that no measurement has set."""
        known = {(one.owner, one.field) for one in self.changes}
        links = [
            f"{link}: {name}"
            for name in ("bandwidth", "latency")
            for link in self.topology.links
            if (str(link), name) not in known
        ]
        inner = [
            f"domain {one.name}: {name}"
            for one in self.topology.domains
            for name in ("intra_bandwidth", "intra_latency", *(_NODE_FIELDS if one.nodes else ()))
            if (f"domain {one.name}", name) not in known
        ]
        shared = [
            f"site {site}: {way}"
            for site in dict.fromkeys(one.site_name for one in self.topology.domains)
            for way in ("uplink", "downlink")
            if self.topology.num_domains > 2 and (f"site {site}", way) not in known
        ]
        return [*links, *inner, *shared, "peaks, memory and prices of GPUs, and times of layers"]


_NODE_FIELDS = ("nic_bandwidth", "nic_latency")


def apply_measurements(topology: Topology, readings: Sequence[Reading]) -> MeasuredWorld:
    """Set what was measured in a world; the rest stays as it is.

    Raises
    ------
    ValueError
        If a site of a measurement is none of the world.
    """
    known = {one.name for one in topology.domains} | {one.site_name for one in topology.domains}
    for one in readings:
        for site in filter(None, (one.source_site, one.target_site)):
            if site not in known:
                raise ValueError(
                    f"{one.file}: {site} must be a site of the world, {', '.join(sorted(known))}; "
                    "got none of them (a file of sites maps hosts to sites: --sites)"
                )
    limits, alone = limits_of_sites(readings)
    measured = MeasuredWorld(topology=topology)
    for limit in limits:
        _set_limit(measured, limit)
    _set_links(measured, alone)
    measured.topology = replace(
        measured.topology,
        domains=tuple(_domain(measured, one, readings) for one in measured.topology.domains),
    )
    _set_loss(measured, readings)
    used = {id(one) for change in measured.changes for one in change.after.readings}
    measured.unused += [(one, _reason(one)) for one in readings if id(one) not in used]
    return measured


def _reason(reading: Reading) -> str:
    """Reason for which a measurement sets nothing."""
    if reading.what in _UNUSED:
        return _UNUSED[reading.what]
    if reading.what == "loss":
        return "nothing answered" if reading.value == 1.0 else "no packet was lost"
    if not (reading.source_site and reading.target_site):
        return "its file names no site; call it or its folder SITE_..., or ping with -I ADDRESS"
    if reading.what in ("round_trip", "bandwidth") and reading.note:
        return f"{reading.note}; others are not"
    if reading.link is not None:
        return "over several sites" if reading.hosts else "the world has no such link"
    return "inside a site, whose domain has no nodes" if reading.hosts else "inside a site"


def _set_limit(measured: MeasuredWorld, limit: SiteLimit) -> None:
    """Set what the links of a site have together; its domains share it."""
    field, topology = f"{limit.way}_bytes_per_s", measured.topology
    first = next(one for one in topology.domains if limit.site in (one.name, one.site_name))
    domains = tuple(
        replace(one, access=replace(one.access, **{field: limit.rate.value}))
        if one.site_name == first.site_name
        else one
        for one in topology.domains
    )
    measured.topology = replace(topology, domains=domains)
    measured.changes.append(
        Change(
            owner=f"site {first.site_name}",
            field=limit.way,
            before=getattr(first.access, field),
            after=limit.rate,
        )
    )


def _set_links(measured: MeasuredWorld, readings: Sequence[Reading]) -> None:
    rates, times = bandwidths(readings), latencies(readings)
    topology = measured.topology
    links = []
    for link in topology.links:
        ends = _ends(topology, link)
        found = {
            "bandwidth_bytes_per_s": rates.get(ends),
            "latency_s": times.get((min(ends), max(ends))),
        }
        known = {name: one for name, one in found.items() if one is not None}
        measured.changes += [
            Change(
                owner=str(link),
                field=name.removesuffix("_s").removesuffix("_bytes_per"),
                before=getattr(link, name),
                after=one,
            )
            for name, one in known.items()
        ]
        update: dict[str, Any] = {name: one.value for name, one in known.items()}
        links.append(replace(link, **update))
    measured.topology = replace(topology, links=tuple(links))


def _ends(topology: Topology, link: Link) -> tuple[str, str]:
    """Sites of the two ends."""
    source, target = (
        topology.domains[topology.index_of[end]].site_name for end in (link.source, link.target)
    )
    return source, target


def _set_loss(measured: MeasuredWorld, readings: Sequence[Reading]) -> None:
    """Set the loss of networks of packets to that of the worst link."""
    answered = [one for one in readings if 0.0 < one.value < 1.0]
    losses = of_pair(answered, "loss")
    if not losses:
        return
    worst = max(losses.values(), key=lambda one: one.value)
    packets = measured.topology.transport.packets
    measured.changes.append(
        Change(
            owner="packets",
            field="loss_fraction",
            before=packets.loss_fraction,
            after=worst,
        )
    )
    measured.topology = measured.topology.with_packets(replace(packets, loss_fraction=worst.value))


def _domain(measured: MeasuredWorld, domain: Domain, readings: Sequence[Reading]) -> Domain:
    """Set the network inside a node, and that between nodes."""
    mine = [
        one
        for one in readings
        if one.source_site == one.target_site and one.source_site in (domain.name, domain.site_name)
    ]
    update: dict[str, Any] = {}
    outer: dict[str, Any] = {}
    for name, unit_field, found in _inner_figures(domain, mine):
        is_outer = unit_field.startswith("nic")
        before = getattr(domain.nodes if is_outer else domain, unit_field)
        (outer if is_outer else update)[unit_field] = found.value
        measured.changes.append(
            Change(owner=f"domain {domain.name}", field=name, before=before, after=found)
        )
    if domain.nodes is not None and outer:
        update["nodes"] = replace(domain.nodes, **outer)
    return replace(domain, **update)


def _inner_figures(
    domain: Domain, readings: Sequence[Reading]
) -> Iterator[tuple[str, str, Combined]]:
    """Figures that collectives inside a site determine: name in files, field, value."""
    nodes = domain.nodes
    for name, cards in (("intra", 1), *((("nic", nodes.nics_per_node),) if nodes else ())):
        here = [one for one in readings if (one.fact("nodes") != "1") is (name == "nic")]
        rates = [one for one in here if one.what == "bus_bandwidth"]
        times = [one for one in here if one.what == "collective" and _num_steps(one)]
        if rates:
            shares = partial(_share, cards=cards)
            yield f"{name}_bandwidth", f"{name}_bandwidth_bytes_per_s", Combined.of(rates, shares)
        if times:
            yield (
                f"{name}_latency",
                f"{name}_latency_s",
                Combined.of(times, lambda one: one.value / _num_steps(one)),
            )


def _share(reading: Reading, cards: int) -> float:
    """Part of a card of what a node sends: rings of a collective use all of them."""
    return reading.value / cards


def _num_steps(reading: Reading) -> int:
    """Steps of the ring of a small collective; 0 where its kind is not known."""
    test = (reading.fact("test") or "").removesuffix("_perf").removesuffix("_mpi")
    return _STEPS_OF.get(test.removesuffix("_perf"), 0) * (int(reading.fact("ranks") or 1) - 1)
