"""Worlds for calibration: steady ones with equal or unequal links, and snapshots of moving ones."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

from des.dynamics import STEADY, Law, UniformLaw
from des.world.domain import Domain
from des.world.topology import Link, Topology

LOWEST_BANDWIDTH_BYTES_PER_S, HIGHEST_BANDWIDTH_BYTES_PER_S = 2e9 / 8, 5e9 / 8
LOWEST_LATENCY_S, HIGHEST_LATENCY_S = 0.030, 0.080
"""Drawn links have 2-5 Gbit/s and 30-80 ms, as those of East-Central-West."""


def snapshot(topology: Topology, seed: int, start_s: float = 0.0) -> Topology | None:
    """Return the world as the epoch of a seed finds it at a time, with links that stand still.

    Routes stay those of the world, as in an epoch. None if a link is down at that time: then there
    is no steady world like it.

    Raises
    ------
    ValueError
        If the topology is one of an epoch already, or an argument is out of range.
    """
    if topology.movement is not None:
        raise ValueError(
            "sampler: topology must not be moving already, as each case draws its own epoch; "
            f"got {topology.movement!r}"
        )
    epoch = topology.epoch_of(seed).later(start_s)
    bandwidth_factors, _ = epoch.factors_at_start()
    return replace(epoch.at_start(), dynamics=STEADY) if bandwidth_factors.all() else None


def moves_in_time(topology: Topology) -> bool:
    """Whether links move within an epoch, so that its figures depend on the time."""
    law = topology.dynamics
    return not (isinstance(law, UniformLaw) and law.update_interval_s is None)


def repeat_domains(topology: Topology, num_domains: int) -> tuple[Domain, ...]:
    """Return ``num_domains`` domains, cycling through those of a topology; repeats are numbered.

    Examples
    --------
    >>> from des import read_topology
    >>> from des.worlds import EAST_CENTRAL_WEST
    >>> [each.name for each in repeat_domains(read_topology(EAST_CENTRAL_WEST), 5)]
    ['East', 'Central', 'West', 'East 2', 'Central 2']
    """
    domains = []
    for index in range(num_domains):
        turn, place = divmod(index, topology.num_domains)
        domain = topology.domains[place]
        domains.append(replace(domain, name=f"{domain.name} {turn + 1}") if turn else domain)
    return tuple(domains)


def join_world(
    topology: Topology,
    num_domains: int,
    figures: Callable[[], tuple[float, float]],
    law: Law = STEADY,
) -> Topology:
    """Join domains like those of a topology, every two by a link that is the same both ways.

    Parameters
    ----------
    topology
        Source of the domains and the transport.
    num_domains
        Number of domains, see `repeat_domains`.
    figures
        Gives the bandwidth [bytes/s] and the latency [s] of the next pair, in order.
    law
        Law of the links.
    """
    domains = repeat_domains(topology, num_domains)
    links = []
    for one, other in combinations([domain.name for domain in domains], 2):
        bandwidth_bytes_per_s, latency_s = figures()
        for source, target in ((one, other), (other, one)):
            links.append(
                Link(
                    source=source,
                    target=target,
                    bandwidth_bytes_per_s=bandwidth_bytes_per_s,
                    latency_s=latency_s,
                )
            )
    return Topology.of(domains, links, law, topology.transport)
