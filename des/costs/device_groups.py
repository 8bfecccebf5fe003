"""GPUs of servers that take part in a collective: their rings, hops, launch and way out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from des.costs.node_collectives import RankGroup
from des.devices.gpu_ports import LinkClass
from des.devices.link_figures import DeviceFigures, NetworkConstants
from des.devices.ring_order import Hop, best_ring_order, hop_speed, rings_at_once, slowest_hop
from des.devices.server import Server

CARD_FRACTION = 0.96
"""Part of a network card's line rate that messages reach: NCCL has 12 GB/s for 100 Gbit/s
(``graph/topo.h``).
"""

CARD_STEP_S = 4e-6
"""Latency of a step of a ring over network cards with RDMA: NCCL's for its LL128 protocol
(``graph/tuning.cc``). Fitted networks have their own.
"""


@dataclass(frozen=True, kw_only=True)
class DeviceGroup:
    """GPUs of one or several servers that take part in a collective.

    Attributes
    ----------
    parts
        Servers, and the places in each of the GPUs that take part.
    figures
        Constants of links between GPUs.
    network
        Constants between servers; None with one server.
    """

    parts: tuple[tuple[Server, tuple[int, ...]], ...]
    figures: DeviceFigures
    network: NetworkConstants | None = None

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("group of GPUs: servers must be at least one, got none")
        for server, places in self.parts:
            known = set(range(server.num_gpus))
            if not places or len(set(places)) < len(places) or not set(places) <= known:
                raise ValueError(
                    f"server {server.name}: GPUs must be one or more different places from 0 to "
                    f"{server.num_gpus - 1}, got {places!r}"
                )
        if len(self.parts) > 1 and self.network is None:
            raise ValueError("group of GPUs: network must be given for several servers, got none")

    @classmethod
    def of_server(
        cls,
        server: Server,
        figures: DeviceFigures,
        *,
        places: Sequence[int] | None = None,
        num_servers: int = 1,
        network: NetworkConstants | None = None,
    ) -> Self:
        """Make one of the same GPUs, all if not given, of one or several servers of a kind."""
        chosen = tuple(range(server.num_gpus) if places is None else places)
        return cls(parts=((server, chosen),) * num_servers, figures=figures, network=network)

    @cached_property
    def links(self) -> tuple[tuple[tuple[LinkClass, ...], ...], ...]:
        """Links of every two GPUs of each part, in the order of its places."""
        return tuple(self.figures.links_of(server.part(places)) for server, places in self.parts)

    @cached_property
    def rings(self) -> tuple[tuple[int, ...], ...]:
        """Order of the best ring through each part, as places in its server."""
        return tuple(
            tuple(places[at] for at in best_ring_order(hops))
            for (_, places), hops in zip(self.parts, self._hops, strict=True)
        )

    @cached_property
    def inner_hop(self) -> Hop | None:
        """Pace of the slowest part's rings; None where no part has two GPUs.

        That is the slowest hop of the best ring. GPUs that NVLinks join one by one, not at a
        switch, send round several rings at once, both ways, as NCCL does.
        """
        paces = [self._pace(part, hops) for part, hops in enumerate(self._hops) if len(hops) > 1]
        return min(paces, key=hop_speed) if paces else None

    def _pace(self, part: int, hops: list[list[Hop]]) -> Hop:
        server, places = self.parts[part]
        order = best_ring_order(hops)
        bandwidth, latency_s = slowest_hop(hops, order)
        pairs = zip(order, (*order[1:], order[0]), strict=True)
        nvlinks = server.part(places).nvlinks
        least = min(nvlinks[one][other] for one, other in pairs)
        ports = [self.figures.of_gpu(server.gpus[place]).ports for place in places]
        is_switched = any(
            sum(server.nvlinks[place]) > port.most_nvlinks
            for place, port in zip(places, ports, strict=True)
        )
        if least == 0 or is_switched or len(places) == 2:
            return bandwidth, latency_s
        return bandwidth * 2 * sum(rings_at_once(nvlinks)) / least, latency_s

    @cached_property
    def outer_hop(self) -> Hop | None:
        """Narrowest way out of a server, for all its GPUs together; None with one server."""
        if self.network is None or len(self.parts) == 1:
            return None
        least = min(len(places) for _, places in self.parts)
        return self.network.way_out_bytes_per_s(least), self.network.step_s

    @property
    def num_ranks(self) -> int:
        """All GPUs of the group."""
        return sum(len(places) for _, places in self.parts)

    @property
    def ring_hop(self) -> Hop:
        """Least bandwidth and most latency of a ring over all GPUs."""
        hops = [hop for hop in (self.inner_hop, self.outer_hop) if hop is not None]
        if not hops:
            return 1.0, 0.0
        return min(hop[0] for hop in hops), max(hop[1] for hop in hops)

    @cached_property
    def rank_group(self) -> RankGroup:
        """Ranks on nodes, as `des.costs.node_collectives` has them."""
        inner, outer = self.inner_hop or (1.0, 0.0), self.outer_hop or (1.0, 0.0)
        return RankGroup(
            num_ranks=self.num_ranks,
            num_nodes=len(self.parts),
            most_per_node=max(len(places) for _, places in self.parts),
            inner_bandwidth_bytes_per_s=inner[0],
            inner_latency_s=inner[1],
            outer_bandwidth_bytes_per_s=outer[0],
            outer_latency_s=outer[1],
        )

    @cached_property
    def launch_and_floor_s(self) -> tuple[float, float]:
        """Longest launch and floor of the GPUs' models. [s]"""
        constants = [
            self.figures.of_gpu(server.gpus[place]).constants
            for server, places in self.parts
            for place in places
        ]
        return max(each.launch_s for each in constants), max(each.floor_s for each in constants)

    @cached_property
    def origins(self) -> tuple[str, ...]:
        """Sentences on where the constants of the GPUs are from, each once."""
        found = [
            self.figures.of_gpu(server.gpus[place]).origin
            for server, places in self.parts
            for place in places
        ]
        return tuple(dict.fromkeys(found))

    @cached_property
    def _hops(self) -> tuple[list[list[Hop]], ...]:
        return tuple(
            [[(link.bandwidth_bytes_per_s, link.latency_s) for link in row] for row in links]
            for links in self.links
        )


def network_of_cards(
    server: Server, places: Sequence[int], figures: DeviceFigures
) -> NetworkConstants:
    """Constants of a network from the cards that are nearest to some GPUs of a server.

    Each GPU sends over all cards nearest to it, over PCIe; all together get out what these cards
    carry.

    Raises
    ------
    ValueError
        If the server has no cards, or the bandwidth of one is not known.
    """
    own: list[float] = []
    cards: dict[str, float] = {}
    for place in places:
        near = server.nearest_nics(place)
        if near is None:
            raise ValueError(
                f"server {server.name}: network cards must be known for several servers, got none"
            )
        rates = {}
        for card in near[1]:
            if card.bandwidth_bytes_per_s is None:
                raise ValueError(
                    f"server {server.name}, network card {card.name}: bandwidth must be known for "
                    "several servers, got none"
                )
            rates[card.name] = card.bandwidth_bytes_per_s * CARD_FRACTION
        links = figures.of_gpu(server.gpus[place])
        pcie_bytes_per_s = links.ports.pcie_bytes_per_s * links.constants.pcie_fraction
        own.append(min(sum(rates.values()), pcie_bytes_per_s))
        cards |= rates
    return NetworkConstants(
        gpu_bandwidth_bytes_per_s=min(own),
        server_bandwidth_bytes_per_s=sum(cards.values()),
        step_s=CARD_STEP_S,
    )
