"""NCCL over sockets between sites: what its window lets through, and settings that open it.

Formulas from NCCL's defaults, not measured: no plan is ranked by them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from agents.decision.bound_plan import BoundPlan
from agents.judge.step_times import mean_step
from des.base.checks import require_non_negative, require_positive

_STEPS = 8
"""Chunks of a connection that NCCL has under way (``NCCL_STEPS``)."""
_CHANNELS = 2
"""Channels of NCCL to a peer on another host, typically; the settings ask for as many."""
DEFAULT_CHUNK_BYTES = 128 * 1024
"""Default of ``NCCL_P2P_NET_CHUNKSIZE``."""
_MOST_CHUNK_BYTES = 4 * 2**20
_FLOW_BYTES = 3 * 2**20
"""Half of the largest receive buffer of a connection on Linux as it comes (``tcp_rmem``)."""
_MOST_SOCKETS, _MOST_THREADS = 64, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteBorder:
    """One direction between two sites, with the pairs of GPUs that send to each other at once."""

    source: str
    target: str
    bandwidth_bytes_per_s: float
    round_trip_s: float
    num_pairs: int

    def __post_init__(self) -> None:
        owner = f"border {self.source}->{self.target}"
        require_positive(owner, "bandwidth_bytes_per_s", self.bandwidth_bytes_per_s)
        require_non_negative(owner, "round_trip_s", self.round_trip_s)
        require_positive(owner, "num_pairs", self.num_pairs)

    @property
    def in_flight_bytes(self) -> float:
        """Bandwidth-delay product: bytes under way that fill the border. [bytes]"""
        return self.bandwidth_bytes_per_s * self.round_trip_s

    def pair_bytes_per_s(self, chunk_bytes: float) -> float:
        """Rate that NCCL lets a pair of GPUs reach, or its share of the border. [bytes/s]"""
        share = self.bandwidth_bytes_per_s / self.num_pairs
        window = _STEPS * _CHANNELS * chunk_bytes
        return min(share, window / self.round_trip_s) if self.round_trip_s else share


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclSettings:
    """Settings of NCCL that let a pair of GPUs fill its share of every border.

    Attributes
    ----------
    chunk_bytes
        Chunk of a send: 8 of each of 2 channels are under way.
    num_threads, sockets_per_thread
        Connections of a pair, as each has but its window under way.
    """

    chunk_bytes: int
    num_threads: int
    sockets_per_thread: int

    @classmethod
    def of(cls, borders: tuple[SiteBorder, ...]) -> "NcclSettings":
        """Take what the border with most under way for a pair of GPUs needs; powers of 2.

        Examples
        --------
        >>> border = SiteBorder(source="A", target="B", bandwidth_bytes_per_s=1.25e9,
        ...                 round_trip_s=0.05, num_pairs=8)
        >>> NcclSettings.of((border,))
        NcclSettings(chunk_bytes=524288, num_threads=4, sockets_per_thread=1)
        """
        pair_bytes = max((one.in_flight_bytes / one.num_pairs for one in borders), default=0.0)
        chunk = _power_of_two(
            pair_bytes / (_STEPS * _CHANNELS), DEFAULT_CHUNK_BYTES, _MOST_CHUNK_BYTES
        )
        sockets = _power_of_two(pair_bytes / _FLOW_BYTES, 1, _MOST_SOCKETS)
        threads = min(sockets, _MOST_THREADS)
        return cls(chunk_bytes=chunk, num_threads=threads, sockets_per_thread=sockets // threads)

    def text(self) -> str:
        """Return the variables, for a shell; equal on all hosts."""
        return (
            "# Settings of NCCL over sockets, from the bandwidth-delay product of each border.\n"
            "# Equal on all hosts. NCCL_SOCKET_IFNAME must be set where a host has several ways.\n"
            f"NCCL_NCHANNELS_PER_NET_PEER={_CHANNELS}\n"
            f"NCCL_SOCKET_NTHREADS={self.num_threads}\n"
            f"NCCL_NSOCKS_PERTHREAD={self.sockets_per_thread}\n"
            f"NCCL_P2P_NET_CHUNKSIZE={self.chunk_bytes}\n"
            f"NCCL_BUFFSIZE={max(4 * 2**20, _STEPS * self.chunk_bytes)}\n"
        )


def _power_of_two(needed: float, least: int, most: int) -> int:
    """Least power of 2 that is enough, between bounds."""
    return min(most, max(least, 2 ** math.ceil(math.log2(needed)))) if needed > least else least


def site_borders(bound: BoundPlan) -> tuple[SiteBorder, ...]:
    """Return both directions between sites that exchange activations, gradients or parameters.

    Raises
    ------
    UnreachableError
        If no path joins two of them.
    """
    pairs: dict[tuple[int, int], int] = {}
    for source, target in _neighbours(bound):
        own = min(bound.plan.parallelism[one].gpus_per_device for one in (source, target))
        for ends in ((source, target), (target, source)):
            pairs[ends] = max(own, pairs.get(ends, 0))
    return tuple(_border(bound, *ends, count) for ends, count in pairs.items())


def nccl_step_s(bound: BoundPlan, borders: tuple[SiteBorder, ...], chunk_bytes: float) -> float:
    """Time of a step whose pairs of GPUs reach what NCCL's window lets through; not measured. [s]

    The window is a bound of each pair, and those of a border share no other: links are as slow as
    the pairs over them.
    """
    topology = bound.topology
    links = list(topology.links)
    for one in borders:
        rate = one.num_pairs * one.pair_bytes_per_s(chunk_bytes)
        for hop in topology.route(topology.index_of[one.source], topology.index_of[one.target]):
            slower = min(rate, links[hop].bandwidth_bytes_per_s)
            links[hop] = replace(links[hop], bandwidth_bytes_per_s=slower)
    world = replace(topology, links=tuple(links))
    return mean_step(world, bound.workload, bound.plan, bound.corrections)[0]


def nccl_steps_s(bound: BoundPlan) -> tuple[float, float]:
    """Times of a step over NCCL's sockets: as NCCL comes, and with `NcclSettings`. [s]

    Raises
    ------
    UnreachableError
        If no path joins two sites that exchange messages.
    """
    borders = site_borders(bound)
    chunks = DEFAULT_CHUNK_BYTES, NcclSettings.of(borders).chunk_bytes
    as_it_comes_s, own_s = (nccl_step_s(bound, borders, chunk) for chunk in chunks)
    return as_it_comes_s, own_s


def _neighbours(bound: BoundPlan) -> Iterator[tuple[int, int]]:
    """Domains of stages next to each other, and of the layers of replicas in a ring."""
    replicas = bound.plan.stages_of_replicas
    for stages in replicas:
        for one, other in pairwise(stages):
            if one.domain != other.domain:
                yield one.domain, other.domain
    layers = [one.domain_of_layer for one in bound.plan.placements]
    for here, there in zip(layers, [*layers[1:], layers[0]], strict=True):
        for ends in dict.fromkeys(zip(here, there, strict=True)):
            if ends[0] != ends[1]:
                yield ends


def _border(bound: BoundPlan, source: int, target: int, num_pairs: int) -> SiteBorder:
    topology = bound.topology
    there, back = topology.route(source, target), topology.route(target, source)
    return SiteBorder(
        source=topology.domains[source].name,
        target=topology.domains[target].name,
        bandwidth_bytes_per_s=min(topology.links[hop].bandwidth_bytes_per_s for hop in there),
        round_trip_s=sum(topology.links[hop].latency_s for hop in (*there, *back)),
        num_pairs=num_pairs,
    )
