"""The world: domains of GPUs and the directed WAN links that join them."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from des.base.checks import require_non_negative, require_positive, require_seed
from des.base.extras import require_extra
from des.base.lazy import lazy_imports
from des.dynamics import STEADY, Law, Movement, UniformLaw
from des.dynamics.link_course import Weather
from des.dynamics.site_law import SpotLaw
from des.world.domain import Domain
from des.world.packet_transport import PacketTransport
from des.world.routes import lowest_latency_path
from des.world.site_limits import SharedRate, check_sites, gates_of, message_caps_bytes_per_s
from des.world.transport import PLAIN, Transport

with lazy_imports(__name__):
    import networkx as nx

MOST_DOMAINS = 1000
"""Bound of the domains of a world: a thousand may have a million links, about a gigabyte. Files of
more are refused before their links are made."""


def require_few_domains(field: str, count: int) -> None:
    """Refuse a world of more than `MOST_DOMAINS` domains, naming the field of its file."""
    if count > MOST_DOMAINS:
        raise ValueError(f"{field}: must hold at most {MOST_DOMAINS} domains, got {count}")


class UnreachableError(ValueError):
    """A plan needs to send between two domains that no path of links joins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One direction of a WAN link between two domains.

    The price is for 1e9 bytes sent this way; None means that it is not known (see
    `des.views.prices`). The cap is that of one TCP connection; None means none.
    """

    source: str
    target: str
    bandwidth_bytes_per_s: float
    latency_s: float
    price_usd_per_gb: float | None = None
    flow_cap_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        if self.source == self.target:
            raise ValueError(f"{self}: source and target must differ, got {self.source!r} twice")
        require_positive(str(self), "bandwidth_bytes_per_s", self.bandwidth_bytes_per_s)
        require_non_negative(str(self), "latency_s", self.latency_s)
        if self.price_usd_per_gb is not None:
            require_non_negative(str(self), "price_usd_per_gb", self.price_usd_per_gb)
        if self.flow_cap_bytes_per_s is not None:
            require_positive(str(self), "flow_cap_bytes_per_s", self.flow_cap_bytes_per_s)

    def __str__(self) -> str:
        return f"link {self.source}->{self.target}"


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Domains in a fixed order, the links between them and the law by which the links move.

    ``links`` are ordered by (source, target) position of their domains, so equal worlds are equal
    values. ``dynamics`` says how links may move; ``movement`` is set where they keep moving while
    an iteration runs. ``routing_latencies_s``, one per link, are what routes are chosen by; None
    means those of the links. A drawn epoch keeps those of its world, as routing tables do not
    follow jitter. ``transport`` says how messages share links, ``availability`` which domains go.
    """

    domains: tuple[Domain, ...]
    links: tuple[Link, ...]
    dynamics: Law = STEADY
    movement: Movement | None = None
    routing_latencies_s: tuple[float, ...] | None = None
    transport: Transport = PLAIN
    availability: SpotLaw | None = None

    def __post_init__(self) -> None:
        if not self.domains:
            raise ValueError("topology: domains must hold at least one domain, got none")
        for name, count in Counter(domain.name for domain in self.domains).items():
            if count > 1:
                raise ValueError(f"topology: domain names must be unique, got {name!r} {count}x")
        for link in self.links:
            for end in (link.source, link.target):
                if end not in self.index_of:
                    known = ", ".join(self.index_of)
                    raise ValueError(f"{link}: domain must be one of {known}; got {end!r}")
                self.transport.check_domain(end, self.domains[self.index_of[end]].num_gpus)
        keys = [self._position(link) for link in self.links]
        for earlier, later in pairwise(keys):
            if earlier == later:
                raise ValueError(
                    f"{self.link_between(*later)}: must be given once, got a duplicate"
                )
        if keys != sorted(keys):
            raise ValueError("topology: links must be ordered; use Topology.of to order them")
        check_sites(self.domains, self.transport)
        self.dynamics.check_links(self.links)
        if self.movement is not None:
            self.movement.law.check_links(self.links)

    @classmethod
    def of(
        cls,
        domains: Sequence[Domain],
        links: Sequence[Link],
        dynamics: Law = STEADY,
        transport: Transport = PLAIN,
    ) -> "Topology":
        """Make a topology from links in any order."""
        index_of = {domain.name: index for index, domain in enumerate(domains)}
        last = len(domains)  # links of unknown domains go last and are refused there
        ordered = sorted(
            links,
            key=lambda link: (index_of.get(link.source, last), index_of.get(link.target, last)),
        )
        return cls(
            domains=tuple(domains), links=tuple(ordered), dynamics=dynamics, transport=transport
        )

    @cached_property
    def index_of(self) -> dict[str, int]:
        """Position of each domain by name."""
        return {domain.name: index for index, domain in enumerate(self.domains)}

    @cached_property
    def link_index(self) -> dict[tuple[int, int], int]:
        """Position in ``links`` by (source, target) position of the domains."""
        return {self._position(link): index for index, link in enumerate(self.links)}

    @cached_property
    def gates(self) -> tuple[SharedRate, ...]:
        """Rates that several links share, such as the uplink of a site; none in a plain world."""
        return gates_of(self.domains, self.links)

    @cached_property
    def message_caps_bytes_per_s(self) -> tuple[float, ...]:
        """Most that one message gets of each link; ``inf`` where nothing but the link bounds it."""
        return message_caps_bytes_per_s(self.domains, self.links, self.transport, self.gates)

    @property
    def first_limit(self) -> str | None:
        """Name of the first rate that links share, or that a message has at most; None: neither."""
        if self.gates:
            return self.gates[0].name
        capped = zip(self.links, self.message_caps_bytes_per_s, strict=True)
        return next((f"cap of a flow on {link}" for link, cap in capped if cap < math.inf), None)

    def require_no_limits(self, owner: str) -> None:
        """Refuse uplinks, downlinks, sites of several domains and caps."""
        if self.first_limit is not None:
            raise ValueError(
                f"{owner}: domains and links must have no site, uplink, downlink or cap, which it "
                f"does not know; got {self.first_limit}"
            )

    @property
    def num_domains(self) -> int:
        """Number of domains, K."""
        return len(self.domains)

    @property
    def peak_flops_per_s(self) -> float:
        """Peak of all GPUs of all domains. [FLOP/s]"""
        return sum(domain.peak_flops_per_s for domain in self.domains)

    def link_between(self, source: int, target: int) -> Link:
        """Return the direct link between two domains, given by position."""
        return self.links[self.link_index[source, target]]

    @cached_property
    def round_trips_s(self) -> tuple[float, ...]:
        """Latency of each link there and back; where none leads back, as long as there. [s]"""
        own_s = {(link.source, link.target): link.latency_s for link in self.links}
        return tuple(
            link.latency_s + own_s.get((link.target, link.source), link.latency_s)
            for link in self.links
        )

    def route(self, source: int, target: int) -> tuple[int, ...]:
        """Positions in ``links`` of the hops from one domain to another.

        The direct link where there is one, else the path of lowest total latency; among equals
        that of fewest hops, then the one through the earlier domains.

        Raises
        ------
        UnreachableError
            If no path joins the two domains.
        """
        direct = self.link_index.get((source, target))
        if direct is not None:
            return (direct,)
        latencies_s = self.routing_latencies_s or tuple(link.latency_s for link in self.links)
        path = lowest_latency_path(tuple(self.link_index), latencies_s, source, target)
        if path is None:
            pair = f"{self.domains[source].name} -> {self.domains[target].name}"
            raise UnreachableError(f"topology: no path of links joins {pair}, which the plan needs")
        return tuple(self.link_index[hop] for hop in pairwise(path))

    def to_networkx(self) -> "nx.DiGraph[str]":
        """Return domains and links at base figures as a directed graph, in SI units.

        Raises
        ------
        ValueError
            If the extra ``networkx`` is not installed.
        """
        require_extra("to_networkx", "networkx")
        graph: nx.DiGraph[str] = nx.DiGraph()
        figures = ("num_gpus", "attainable_flops_per_s", "memory_bytes")
        for domain in self.domains:
            graph.add_node(domain.name, **{name: getattr(domain, name) for name in figures})
        for link in self.links:
            of_link = ("bandwidth_bytes_per_s", "latency_s")
            ends = link.source, link.target
            graph.add_edge(*ends, **{name: getattr(link, name) for name in of_link})
        return graph

    def scaled(self, bandwidth_factors: np.ndarray, latency_factors: np.ndarray) -> "Topology":
        """Return the same world with each link's figures times its factors, and no movement."""
        factors = zip(bandwidth_factors.tolist(), latency_factors.tolist(), strict=True)
        links = tuple(
            replace(
                link,
                bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * bandwidth_factor,
                latency_s=link.latency_s * latency_factor,
            )
            for link, (bandwidth_factor, latency_factor) in zip(self.links, factors, strict=True)
        )
        routing = self.routing_latencies_s or tuple(link.latency_s for link in self.links)
        return replace(self, links=links, movement=None, routing_latencies_s=routing)

    def epoch_of(self, seed: int) -> "Topology":
        """Return the world as the epoch of a seed finds it, around the figures of this one.

        Links that are drawn once an epoch come back with their new figures; links that move in
        time come back with a `Movement` on top of their base figures.
        """
        require_seed("topology", "seed", seed)
        law = self.dynamics
        if isinstance(law, UniformLaw) and law.update_interval_s is None:
            return self.scaled(*law.factors(len(self.links), seed, 0))
        return replace(self, movement=Movement(law=law, seed=seed))

    def draw_epoch(self, rng: np.random.Generator) -> "Topology":
        """Return `epoch_of` the seed that a generator gives next."""
        return self.epoch_of(int(rng.integers(2**63)))

    def later(self, duration_s: float) -> "Topology":
        """Return the world in which time 0 is that much later; links that stand still stay so."""
        require_non_negative("topology", "duration_s", duration_s)
        moving = self.movement
        if moving is None or duration_s == 0:
            return self
        return replace(self, movement=replace(moving, start_s=moving.start_s + duration_s))

    def factors_at_start(self) -> tuple[np.ndarray, np.ndarray]:
        """Bandwidth and latency factors at time 0, each shaped (num_links,).

        A bandwidth factor of 0 is a link that is down.
        """
        factors = np.ones((2, len(self.links)))
        if self.movement is not None:
            weather = Weather(self.movement, self.links)
            for link in range(len(self.links)):
                factors[:, link] = weather.piece(link, 0.0)[:2]
        return factors[0], factors[1]

    def with_packets(self, packets: PacketTransport) -> "Topology":
        """Return the world with other TCP settings for networks of packets."""
        return replace(self, transport=replace(self.transport, packets=packets))

    def at_start(self) -> "Topology":
        """Return the world as an observer sees it at time 0, with the links standing still.

        Raises
        ------
        ValueError
            If a link is down then: a standing link has a bandwidth. See `factors_at_start`.
        """
        if self.movement is None:
            return self
        return self.scaled(*self.factors_at_start())

    def _position(self, link: Link) -> tuple[int, int]:
        return self.index_of[link.source], self.index_of[link.target]
