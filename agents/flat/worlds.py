"""World of an episode: one given topology, or links drawn for every episode."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product
from math import comb
from typing import Protocol

import numpy as np

from agents.flat.kernels.worlds import course_seed, epoch_seed, within
from des import Domain, Law, Link, Movement, Topology, UniformLaw, read_topology
from des.base.checks import require_count, require_seed
from des.base.random_numbers import uniform_pair
from des.costs.message_times import hop_goodput_bytes_per_s
from des.dynamics.link_course import Weather
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
    def dynamics(self) -> Law:
        """Law of the moving links."""

    @property
    def largest_bandwidth_bytes_per_s(self) -> float:
        """Highest base bandwidth that an episode can have."""

    @property
    def largest_latency_s(self) -> float:
        """Highest base latency that an episode can have."""

    def extreme_worlds(self) -> Sequence[Topology]:
        """Worlds that have the highest figures which links can have by the law."""

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
        If the topology moves already.
    """

    topology: Topology

    def __post_init__(self) -> None:
        if self.topology.movement is not None:
            raise ValueError(
                "environment: topology must not be moving already, as each episode draws its own "
                f"movement; got {self.topology.movement!r}"
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
    def dynamics(self) -> Law:
        """Law of the moving links."""
        return self.topology.dynamics

    @property
    def largest_bandwidth_bytes_per_s(self) -> float:
        """Highest base bandwidth, inside a domain or between two."""
        inside = (domain.intra_bandwidth_bytes_per_s for domain in self.topology.domains)
        return max([*inside, *(link.bandwidth_bytes_per_s for link in self.topology.links)])

    @property
    def largest_latency_s(self) -> float:
        """Highest base latency between two domains, over all hops, or inside one."""
        return float(path_matrices(self.topology)[1].max())

    def extreme_worlds(self) -> Sequence[Topology]:
        """Return the topology: it has the highest figures."""
        return (self.topology,)

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
    dynamics: Law

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

    def extreme_worlds(self) -> Sequence[Topology]:
        """Return worlds whose links all have the lowest or the highest figures.

        A law may make most of either: one that replays figures has higher factors on lower ones.
        """
        bandwidths = (LOWEST_BANDWIDTH_BYTES_PER_S, HIGHEST_BANDWIDTH_BYTES_PER_S)
        corners = product(bandwidths, (LOWEST_LATENCY_S, HIGHEST_LATENCY_S))
        return tuple(self._joined([corner] * comb(self.num_domains, 2)) for corner in corners)

    def world(self, seed: int) -> Topology:
        """Return the links of the episode that has a seed; each pair has numbers of its own."""
        require_seed("environment", "seed", seed)
        figures = []
        for pair in range(comb(self.num_domains, 2)):
            bandwidth_eps, latency_eps = uniform_pair(seed, pair, 0)
            bandwidth = within(
                LOWEST_BANDWIDTH_BYTES_PER_S, HIGHEST_BANDWIDTH_BYTES_PER_S, bandwidth_eps
            )
            figures.append((bandwidth, within(LOWEST_LATENCY_S, HIGHEST_LATENCY_S, latency_eps)))
        return self._joined(figures)

    def _joined(self, figures: Sequence[tuple[float, float]]) -> Topology:
        """Join all domains, every pair by links of its bandwidth and latency."""
        model = _model_domain()
        domains = [replace(model, name=f"domain{index}") for index in range(self.num_domains)]
        links = []
        pairs = combinations([domain.name for domain in domains], 2)
        for (one, other), (bandwidth, latency_s) in zip(pairs, figures, strict=True):
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


def has_course(law: Law) -> bool:
    """Whether links take one course through an episode, not one of its own in each epoch.

    The uniform law has no memory, so each epoch of it is drawn alone.
    """
    return not isinstance(law, UniformLaw)


class EpisodeWorlds:
    """Worlds that the epochs of an episode find, and hold to their ends.

    Under the uniform law an epoch is drawn from the seed and its number. Any other law draws one
    course from the seed, of which the epoch begins at ``start_s``.
    """

    def __init__(self, base_world: Topology, seed: int) -> None:
        self._base_world, self._seed = base_world, seed
        self._movement: Movement | None = None
        if has_course(base_world.dynamics):
            moving = base_world.epoch_of(int(course_seed(seed)))
            assert moving.movement is not None, "a course moves"
            self._movement, self._weather = moving.movement, Weather(moving.movement, moving.links)

    def topology(self, epoch: int, start_s: float) -> Topology:
        """Return the world of an epoch."""
        if self._movement is None:
            return self._base_world.epoch_of(int(epoch_seed(self._seed, epoch))).at_start()
        replace(self._movement, start_s=start_s)  # refuses what is too late
        factors = np.ones((2, len(self._base_world.links)))
        for link in range(factors.shape[1]):
            factors[:, link] = self._weather.piece(link, start_s)[:2]
        return self._base_world.scaled(*factors)


def require_bandwidth(source: WorldSource) -> None:
    """Refuse a law under which a link may be down: an epoch that holds it would never end."""
    for world in source.extreme_worlds():
        for link in world.links:
            if world.dynamics.extremes(link).least_bandwidth_factor <= 0.0:
                law = type(world.dynamics).__name__
                raise ValueError(
                    "environment: dynamics must leave every link some bandwidth, as an epoch holds "
                    f"its links from start to end; {link} may be down under {law}"
                )


def highest_figures(source: WorldSource) -> tuple[float, float]:
    """Highest bandwidth [bytes/s] and latency of a path [s] that the law of a source can lead to.

    Figures inside domains count as well.
    """
    bandwidths, latencies_s = [0.0], [0.0]
    for world in source.extreme_worlds():
        extremes = [world.dynamics.extremes(link) for link in world.links]
        most = np.array([[one.most_bandwidth_factor, one.most_latency_factor] for one in extremes])
        factors = most.reshape(-1, 2).T
        bandwidths += [domain.intra_bandwidth_bytes_per_s for domain in world.domains]
        bandwidths += [
            link.bandwidth_bytes_per_s * factor
            for link, factor in zip(world.links, factors[0].tolist(), strict=True)
        ]
        slowest = world.scaled(np.ones(len(world.links)), factors[1])
        latencies_s.append(float(path_matrices(slowest)[1].max()))
    return max(bandwidths), max(latencies_s)


def path_matrices(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Bandwidth [bytes/s] and latency [s] between every two domains, each shaped (K, K).

    The links stand still. The diagonal holds the figures inside the domain. A path of several hops
    has the sum of their latencies and, as each hop stores the whole message, the inverse of the
    summed inverse bandwidths. A TCP window limits the bandwidth of a hop.
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
            rates = [hop_goodput_bytes_per_s(topology, index) for index in route]
            bandwidth[source, target] = 1.0 / sum(1.0 / rate for rate in rates)
            latency[source, target] = sum(topology.links[index].latency_s for index in route)
    return bandwidth, latency
