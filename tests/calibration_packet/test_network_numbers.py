"""Worlds as the numbers of a network of packets, by hand."""

from dataclasses import replace

import pytest
from strategies import world

from calibration.packet.links import PacketLinks
from calibration.packet.numbers import JointNumbers, RouteNumbers, WindowNumbers, network_numbers
from calibration.packet.process import PacketProcess
from calibration.reference.binaries import ReferenceRunError
from des import Topology, read_topology, write_topology
from des.world.packet_transport import PacketTransport

GBIT = 1.25e8
PAIR = world("AB", {"AB": (GBIT, 0.02), "BA": (2 * GBIT, 0.02)})
NEVER_FULL = 2**30


def with_packets(topology: Topology, packets: PacketTransport) -> Topology:
    return replace(topology, transport=replace(topology.transport, packets=packets))


def test_two_links_of_equal_latency_are_one_joint():
    numbers = network_numbers(PAIR)

    assert numbers.joints == (JointNumbers(0, 1, 10**9, 2 * 10**9, 20_000_000, NEVER_FULL, 0.0),)
    assert set(numbers.routes) == {RouteNumbers(1, 0, 0), RouteNumbers(0, 0, 1)}
    assert numbers.place_of_link == ((0, 0), (0, 1))


def test_windows_are_products_of_bandwidth_and_delay_with_a_margin():
    """1.3 x 125 MB/s x (40 ms + 40 us to and from the hosts): 100 segments of 65,000 bytes."""
    there, back = network_numbers(PAIR).windows

    assert there == WindowNumbers(0, 1, 100, 6_506_500)
    assert back == WindowNumbers(1, 0, 200, 13_013_000)


def test_links_of_unlike_latency_have_a_joint_each():
    numbers = network_numbers(world("AB", {"AB": (GBIT, 0.02), "BA": (GBIT, 0.03)}))

    assert [(one.first, one.second, one.delay_ns) for one in numbers.joints] == [
        (0, 1, 20_000_000),
        (1, 0, 30_000_000),
    ]
    assert set(numbers.routes) == {RouteNumbers(1, 0, 0), RouteNumbers(0, 1, 0)}


def test_a_link_without_a_way_back_carries_its_own_acknowledgements():
    numbers = network_numbers(world("AB", {"AB": (GBIT, 0.02)}))

    assert set(numbers.routes) == {RouteNumbers(1, 0, 0), RouteNumbers(0, 0, 1)}
    assert [(one.source, one.target) for one in numbers.windows] == [(0, 1)]


def test_tcp_begins_with_the_window_of_the_standard():
    """14,600 bytes: 1 segment of 65,000, 2 of 8,948 and 10 of 1,460."""
    windows = [
        network_numbers(
            with_packets(PAIR, PacketTransport(congestion="cubic", segment_bytes=size))
        ).windows[0]
        for size in (65000, 8948, 1460)
    ]

    assert [one.initial_segments for one in windows] == [1, 2, 10]


@pytest.mark.parametrize(
    ("congestion", "acknowledgements", "is_first"),
    [
        ("line_rate_window", None, True),
        ("cubic", None, False),
        ("bbr", "first", True),
        ("line_rate_window", "in_order", False),
    ],
)
def test_acknowledgements_leave_first_by_default_where_networks_have_none(
    congestion, acknowledgements, is_first
):
    packets = PacketTransport(congestion=congestion, acknowledgements=acknowledgements)

    assert network_numbers(with_packets(PAIR, packets)).transport.acknowledges_first is is_first


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("congestion", "reno", "congestion must be one of line_rate_window, cubic, bbr"),
        ("connections", "old", "connections must be one of reused, fresh; got 'old'"),
        ("acknowledgements", "last", "acknowledgements must be one of first, in_order; got 'last'"),
        ("loss_fraction", 1.0, r"loss_fraction must be at least 0 and below 1, got 1\.0"),
        ("segment_bytes", 70000, "segment_bytes must be from 536 to 65000, got 70000"),
        ("buffer_bytes", 100.0, "buffer_bytes must hold at least one segment of 65000 bytes"),
        ("flows", 0, "flows must be a whole number from 1"),
        ("queue_products", 0.0, "queue_products must be positive and finite, got 0.0"),
    ],
)
def test_settings_that_no_network_has_are_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        PacketTransport(**{field: value})


def test_queues_are_in_bytes_or_in_products_of_each_link():
    """1 Gbit/s and 40 ms there and back are 5 MB; ten segments are the least without a size."""
    rooms = {
        (None, None): 5e6,
        (None, 2.5): 12.5e6,
        (None, 0.01): 650_000.0,
        (100_000.0, None): 100_000.0,
    }

    for (num_bytes, products), expected in rooms.items():
        packets = PacketTransport(
            congestion="cubic", queue_bytes=num_bytes, queue_products=products
        )
        assert packets.room_bytes(5e6) == expected
    assert PacketTransport(queue_products=2.0).room_bytes(5e6) == 10e6
    with pytest.raises(ValueError, match="only one of queue_bytes and queue_products may be given"):
        PacketTransport(queue_bytes=1e6, queue_products=1.0)


def test_settings_survive_a_file(tmp_path):
    packets = PacketTransport(
        congestion="bbr", first_segments=3, acknowledgements="first", queue_products=0.5
    )
    write_topology(tmp_path / "world.yaml", with_packets(PAIR, packets))

    assert read_topology(tmp_path / "world.yaml").transport.packets == packets


def test_routes_that_part_at_a_gateway_are_refused():
    """D reaches C by A and B, since that is quicker than A's own link, which A's messages take."""
    links = {"AB": 1, "BC": 1, "AC": 9, "DA": 1}
    both = {**links, **{ends[::-1]: latency for ends, latency in links.items()}}
    topology = world("ABCD", {ends: (GBIT, latency / 100) for ends, latency in both.items()})

    with pytest.raises(ValueError, match="must not part at a gateway, as those to C do at A"):
        network_numbers(topology)


def test_without_the_extra_the_error_names_its_command(monkeypatch):
    """The message of an installation that lacks the extra, whether or not this one has it."""
    monkeypatch.setattr("sys.path", [])

    with pytest.raises(ReferenceRunError, match=r"pip install 'eastwest\[ns3\]'"):
        PacketProcess()


def test_a_message_too_large_is_refused_before_ns3_hears_of_it():
    links = object.__new__(PacketLinks)

    with pytest.raises(ValueError, match="a message must have at most"):
        links.send(0, 0, 1, 1e300, 0.0)
