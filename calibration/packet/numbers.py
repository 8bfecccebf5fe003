"""Worlds as the numbers that the facade of ns-3 takes: hosts, joints, routes, windows."""

from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from des.world.packet_transport import MOST_QUEUE_BYTES, PacketTransport
from des.world.topology import Topology, UnreachableError

NS_PER_S = 1e9
BITS_PER_BYTE = 8
HOST_LATENCY_S = 1e-5
"""Latency between a host and its gateway, one way. [s]"""

DELAYED_ACK_NS = 40_000_000
"""Longest wait of an acknowledgement for a second segment: that of Linux. ns-3's own is 200 ms,
which windows of a few segments wait for. [ns]
"""

MOST_RATE_BITS_PER_S = 1e13
MOST_FLOWS = 64


class JointNumbers(NamedTuple):
    """Link between two gateways: rates of both directions, delay, queues, losses."""

    first: int
    second: int
    there_bits_per_s: int
    back_bits_per_s: int
    delay_ns: int
    queue_bytes: int
    loss_fraction: float


class RouteNumbers(NamedTuple):
    """Entry of a gateway: packets for a host leave over a joint, from the gateway at its end."""

    target: int
    joint: int
    end: int


class WindowNumbers(NamedTuple):
    """First window and socket buffers of connections from one host to another."""

    source: int
    target: int
    initial_segments: int
    buffer_bytes: int


class TransportNumbers(NamedTuple):
    """TCP settings of all connections, in the order of the facade's ``Transport``."""

    is_bbr: bool
    reuses_connections: bool
    segment_size_bytes: int
    initial_window_segments: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    delayed_ack_count: int
    delayed_ack_ns: int
    min_rto_ns: int
    num_flows: int
    acknowledges_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkNumbers:
    """A network before its first message.

    ``place_of_link`` has the joint and the direction of each directed link of the world.
    """

    num_hosts: int
    transport: TransportNumbers
    joints: tuple[JointNumbers, ...]
    routes: tuple[RouteNumbers, ...]
    windows: tuple[WindowNumbers, ...]
    place_of_link: tuple[tuple[int, int], ...]


def network_numbers(topology: Topology) -> NetworkNumbers:
    """Turn a world into the numbers of a network.

    A pair of links of equal latency is one joint; any other link has one of its own, whose way back
    carries nothing but acknowledgements where no other route leads back.

    Raises
    ------
    ValueError
        If a figure is outside what ns-3 holds, or if two routes part at a gateway although both
        lead to the same domain: gateways know targets, not sources.
    """
    packets = topology.transport.packets
    if packets.flows > MOST_FLOWS:
        raise ValueError(
            f"transport.packets: flows must be at most {MOST_FLOWS}, got {packets.flows}"
        )
    joints, place_of_link = _joints(topology, packets)
    return NetworkNumbers(
        num_hosts=topology.num_domains,
        transport=_transport(packets),
        joints=joints,
        routes=_routes(topology, place_of_link),
        windows=_windows(topology, packets),
        place_of_link=place_of_link,
    )


def rate_bits_per_s(owner: str, bandwidth_bytes_per_s: float) -> int:
    """Rate of a link in whole bits per second.

    Raises
    ------
    ValueError
        If it is below 1 bit/s or above `MOST_RATE_BITS_PER_S`.
    """
    rate = round(bandwidth_bytes_per_s * BITS_PER_BYTE)
    if not 1 <= rate <= MOST_RATE_BITS_PER_S:
        raise ValueError(
            f"{owner}: bandwidth_bytes_per_s must be from 0.125 to "
            f"{MOST_RATE_BITS_PER_S / BITS_PER_BYTE:g} for a network of packets, "
            f"got {bandwidth_bytes_per_s!r}"
        )
    return rate


def _transport(packets: PacketTransport) -> TransportNumbers:
    buffer_bytes = int(packets.window_bytes(MOST_QUEUE_BYTES / 64))
    return TransportNumbers(
        is_bbr=packets.congestion == "bbr",
        reuses_connections=packets.connections == "reused",
        segment_size_bytes=packets.segment_bytes,
        initial_window_segments=packets.first_window_segments(buffer_bytes),
        send_buffer_bytes=buffer_bytes,
        receive_buffer_bytes=buffer_bytes,
        delayed_ack_count=packets.acknowledged_segments,
        delayed_ack_ns=DELAYED_ACK_NS,
        min_rto_ns=200_000_000,
        num_flows=packets.flows,
        acknowledges_first=packets.acknowledges_first,
    )


def _joints(
    topology: Topology, packets: PacketTransport
) -> tuple[tuple[JointNumbers, ...], tuple[tuple[int, int], ...]]:
    """Joints of all links, and the joint and direction of each link."""
    joints: list[JointNumbers] = []
    places: dict[int, tuple[int, int]] = {}
    for (source, target), index in topology.link_index.items():
        if index in places:
            continue
        link = topology.links[index]
        back_index = topology.link_index.get((target, source))
        back = link if back_index is None else topology.links[back_index]
        places[index] = len(joints), 0
        if back_index is not None and back.latency_s == link.latency_s:
            places[back_index] = len(joints), 1
        else:
            back = link
        rates = [rate_bits_per_s(str(each), each.bandwidth_bytes_per_s) for each in (link, back)]
        product_bytes = max(rates) / BITS_PER_BYTE * topology.round_trips_s[index]
        joints.append(
            JointNumbers(
                first=source,
                second=target,
                there_bits_per_s=rates[0],
                back_bits_per_s=rates[1],
                delay_ns=round(link.latency_s * NS_PER_S),
                queue_bytes=int(packets.room_bytes(product_bytes)),
                loss_fraction=packets.loss_fraction,
            )
        )
    return tuple(joints), tuple(places[index] for index in range(len(topology.links)))


def _routes(
    topology: Topology, place_of_link: tuple[tuple[int, int], ...]
) -> tuple[RouteNumbers, ...]:
    """Routes of all pairs of domains, and ways back for acknowledgements."""
    chosen: dict[tuple[int, int], tuple[int, int]] = {}
    for source, target in permutations(range(topology.num_domains), 2):
        for gateway, place in _hops(topology, place_of_link, source, target):
            if chosen.setdefault((gateway, target), place) != place:
                names = topology.domains
                raise ValueError(
                    "network of packets: routes to one domain must not part at a gateway, as "
                    f"those to {names[target].name} do at {names[gateway].name}; join "
                    f"{names[gateway].name} and {names[target].name} by one quickest path"
                )
    return tuple(RouteNumbers(target, *place) for (_, target), place in chosen.items())


def _hops(
    topology: Topology, place_of_link: tuple[tuple[int, int], ...], source: int, target: int
) -> list[tuple[int, tuple[int, int]]]:
    """Gateways from one domain to another, each with the joint and the end that it sends over."""
    try:
        route = topology.route(source, target)
    except UnreachableError:
        return _hops_back(topology, place_of_link, source, target)
    return [(topology.index_of[topology.links[link].source], place_of_link[link]) for link in route]


def _hops_back(
    topology: Topology, place_of_link: tuple[tuple[int, int], ...], source: int, target: int
) -> list[tuple[int, tuple[int, int]]]:
    """The route of the other direction, backwards; none where none leads there either."""
    try:
        route = topology.route(target, source)
    except UnreachableError:
        return []
    hops = []
    for link in reversed(route):
        joint, end = place_of_link[link]
        hops.append((topology.index_of[topology.links[link].target], (joint, 1 - end)))
    return hops


def _windows(topology: Topology, packets: PacketTransport) -> tuple[WindowNumbers, ...]:
    """Windows of all pairs that a route joins, by the bandwidth-delay products of their routes."""
    windows = []
    for source, target in permutations(range(topology.num_domains), 2):
        try:
            route = topology.route(source, target)
        except UnreachableError:
            continue
        least = min(topology.links[link].bandwidth_bytes_per_s for link in route)
        round_trip_s = sum(topology.round_trips_s[link] for link in route) + 4 * HOST_LATENCY_S
        window_bytes = min(packets.window_bytes(least * round_trip_s), MOST_QUEUE_BYTES)
        segments = packets.first_window_segments(window_bytes)
        windows.append(WindowNumbers(source, target, segments, int(window_bytes)))
    return tuple(windows)
