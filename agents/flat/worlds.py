"""World of an episode: one given topology, or links drawn for every episode."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Protocol

import numpy as np

from agents.flat.kernels.worlds import within
from des import Domain, Dynamics, Link, Topology, read_topology
from des.base.checks import require_count, require_seed
from des.base.random_numbers import uniform_pair
from des.costs.message_times import hop_goodput_bytes_per_s
from des.worlds import EAST_CENTRAL_WEST

LOWEST_BANDWIDTH_BYTES_PER_S, HIGHEST_BANDWIDTH_BYTES_PER_S = 2e9 / 8, 5e9 / 8
LOWEST_LATENCY_S, HIGHEST_LATENCY_S = 0.020, 0.100
"""Drawn links have 2-5 Gbit/s and 20-100 ms."""


class WorldSource(Protocol):
    """Gives the base world of each episode; links move around its figures."""

    @property
    def num_domains(self) -> int:
        """Number of domains, K."""

    @property
    def dynamics(self) -> Dynamics:
        """Law of the moving links."""

    @property
    def largest_bandwidth_bytes_per_s(self) -> float:
        """Highest base bandwidth that an episode can have."""

    @property
    def largest_latency_s(self) -> float:
        """Highest base latency that an episode can have."""

    def world(self, seed: int) -> Topology:
        """Return the base world of the episode that has a seed within [0, 2**63)."""

    def draw(self, rng: np.random.Generator) -> Topology:
        """Return the `world` of the seed that a generator gives next."""


@dataclass(frozen=True, kw_only=True)
class GivenWorld:
    """The same topology in every episode; every pair of its domains must be joined.

    Raises
    ------
    UnreachableError
        If some pair of domains is joined by no path: a policy may ask for any.
    ValueError
        If the topology moves already, or its links by another law than `Dynamics`.
    """

    topology: Topology

    def __post_init__(self) -> None:
        if self.topology.movement is not None:
            raise ValueError(
                "environment: topology must not be moving already, as each epoch draws its own "
                f"movement; got {self.topology.movement!r}"
            )
        if not isinstance(self.topology.dynamics, Dynamics):
            raise ValueError(
                "environment: dynamics must be uniform, as each epoch is drawn alone and other "
                f"laws need a course of them; got {type(self.topology.dynamics).__name__}"
            )
        for source in range(self.num_domains):
            for target in range(self.num_domains):
                if source != target:
                    self.topology.route(source, target)

    @property
    def num_domains(self) -> int:
        """Number of domains, K."""
        return self.topology.num_domains

    @property
    def dynamics(self) -> Dynamics:
        """Law of the moving links."""
        law = self.topology.dynamics
        assert isinstance(law, Dynamics)  # checked when constructed
        return law

    @property
    def largest_bandwidth_bytes_per_s(self) -> float:
        """Highest base bandwidth, inside a domain or between two."""
        inside = (domain.intra_bandwidth_bytes_per_s for domain in self.topology.domains)
        return max([*inside, *(link.bandwidth_bytes_per_s for link in self.topology.links)])

    @property
    def largest_latency_s(self) -> float:
        """Highest base latency between two domains, over all hops, or inside one."""
        return float(path_matrices(self.topology)[1].max())

    def world(self, seed: int) -> Topology:
        """Return the topology, whatever the seed."""
        return self.topology

    def draw(self, rng: np.random.Generator) -> Topology:
        """Return the topology; the generator moves on as for any source."""
        return self.world(int(rng.integers(2**63)))


@dataclass(frozen=True, kw_only=True)
class DrawnWorld:
    """Equal domains, every two joined by a link drawn for each episode.

    Bandwidth and latency are uniform between the bounds of this module and the same both ways; the
    domains are those of the shipped East-Central-West world.
    """

    num_domains: int
    dynamics: Dynamics

    def __post_init__(self) -> None:
        require_count("environment", "num_domains", self.num_domains)

    @property
    def largest_bandwidth_bytes_per_s(self) -> float:
        """Bandwidth inside a domain."""
        return _model_domain().intra_bandwidth_bytes_per_s

    @property
    def largest_latency_s(self) -> float:
        """Highest latency that can be drawn."""
        return HIGHEST_LATENCY_S

    def world(self, seed: int) -> Topology:
        """Return the links of the episode that has a seed; each pair has numbers of its own."""
        require_seed("environment", "seed", seed)
        model = _model_domain()
        domains = [replace(model, name=f"domain{index}") for index in range(self.num_domains)]
        links = []
        pairs = combinations([domain.name for domain in domains], 2)
        for pair, (one, other) in enumerate(pairs):
            bandwidth_eps, latency_eps = uniform_pair(seed, pair, 0)
            bandwidth = within(
                LOWEST_BANDWIDTH_BYTES_PER_S, HIGHEST_BANDWIDTH_BYTES_PER_S, bandwidth_eps
            )
            latency_s = within(LOWEST_LATENCY_S, HIGHEST_LATENCY_S, latency_eps)
            for source, target in ((one, other), (other, one)):
                links.append(
                    Link(
                        source=source,
                        target=target,
                        bandwidth_bytes_per_s=bandwidth,
                        latency_s=latency_s,
                    )
                )
        return Topology.of(domains, links, self.dynamics)

    def draw(self, rng: np.random.Generator) -> Topology:
        """Return the `world` of the seed that a generator gives next."""
        return self.world(int(rng.integers(2**63)))


@lru_cache(maxsize=1)
def _model_domain() -> Domain:
    return read_topology(EAST_CENTRAL_WEST).domains[0]


def path_matrices(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Bandwidth [bytes/s] and latency [s] between every two domains, each shaped (K, K).

    The diagonal holds the figures inside the domain. A path of several hops has the sum of their
    latencies and, as each hop stores the whole message, the inverse of the summed inverse
    bandwidths. A TCP window limits the bandwidth of a hop.
    """
    size = topology.num_domains
    bandwidth, latency = np.empty((size, size)), np.empty((size, size))
    for source, domain in enumerate(topology.domains):
        for target in range(size):
            if source == target:
                bandwidth[source, target] = domain.intra_bandwidth_bytes_per_s
                latency[source, target] = domain.intra_latency_s
                continue
            route = topology.route(source, target)
            hops = [topology.links[index] for index in route]
            rates = [hop_goodput_bytes_per_s(topology, index) for index in route]
            bandwidth[source, target] = 1.0 / sum(1.0 / rate for rate in rates)
            latency[source, target] = sum(hop.latency_s for hop in hops)
    return bandwidth, latency
