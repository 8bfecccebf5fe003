"""Completion times of flows, as recorded from ns-3 itself; they need the extra ``ns3``."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from strategies import unit_domain

from calibration.packet import numbers
from calibration.packet.links import PacketLinks
from calibration.packet.process import KNOWN_VERSION, PacketProcess, ns3_version
from calibration.reference.binaries import ReferenceRunError
from des import Link, Topology, UniformLaw
from des.dynamics.replay import LinkSeries, Replay
from des.world.packet_transport import PacketTransport

CASES = json.loads((Path(__file__).parents[1] / "golden/ns3_flows.json").read_text())["cases"]
SMALL = "cold_cubic_1MB_5Gbps_30ms"


@pytest.fixture(scope="module")
def process():
    try:
        version = ns3_version()
    except ReferenceRunError as error:
        pytest.skip(f"the extra ns3 is not installed: {error}")
    if version != KNOWN_VERSION:
        pytest.skip(f"flows were recorded from ns-3 {KNOWN_VERSION}, installed is {version}")
    process = PacketProcess()
    yield process
    process.close()


def flow_times_s(topology, process, flows, *, is_warm=True):
    """Seconds from the start of each flow (source, target, bytes, start) to its last byte."""
    links = PacketLinks(topology, process, is_warm=is_warm)
    for number, flow in enumerate(flows):
        links.send(number, *flow)
    ended_s = {}
    while len(ended_s) < len(flows):
        time_s, arrived = links.advance(math.inf)
        ended_s |= dict.fromkeys(arrived, time_s)
    return [ended_s[number] - flow[3] for number, flow in enumerate(flows)]


def packets_of(case) -> PacketTransport:
    tcp = case["tcp"]
    link, *others = case["wan_links"]
    own_queues = bool(others)  # each of its own bandwidth-delay product, which is the default
    return PacketTransport(
        congestion=tcp["congestion_control"],
        connections="reused" if tcp["reuse_connection_per_direction"] else "fresh",
        segment_bytes=tcp["segment_size_bytes"],
        first_segments=tcp["initial_cwnd_segments"],
        buffer_bytes=tcp["send_buffer_bytes"],
        queue_bytes=None if own_queues else link["queue_capacity_bytes"],
        loss_fraction=link["packet_loss_probability"],
    )


def world_of(case) -> Topology:
    """Three domains; each link of the case in both directions, with its changes of rate."""
    links, series = [], []
    for link in case["wan_links"]:
        first, second = "ABC"[link["node_a"]], "ABC"[link["node_b"]]
        latency_s, changes = link["one_way_delay_s"], link["bandwidth_changes"]
        rates = [each["bandwidth_bps"] / 8 for each in (link, *changes)]
        times_s = (0.0, *(each["time_s"] for each in changes))
        for source, target in ((first, second), (second, first)):
            links.append(
                Link(
                    source=source,
                    target=target,
                    bandwidth_bytes_per_s=rates[0],
                    latency_s=latency_s,
                )
            )
            series.append(
                LinkSeries(
                    source=source,
                    target=target,
                    times_s=times_s,
                    bandwidths_bytes_per_s=tuple(rates),
                    latencies_s=(latency_s,) * len(rates),
                )
            )
    moves = any(link["bandwidth_changes"] for link in case["wan_links"])
    law = Replay(name="case", series=tuple(series), holds_last=True)
    still = UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.0)
    topology = Topology.of([unit_domain(name) for name in "ABC"], links, law if moves else still)
    transport = replace(topology.transport, packets=packets_of(case))
    topology = replace(topology, transport=transport)
    return topology.epoch_of(0) if moves else topology


def flows_of(case):
    return [
        (one["source_node"], one["destination_node"], float(one["size_bytes"]), one["start_time_s"])
        for one in case["flows"]
    ]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_flows_end_when_they_did(case, process, monkeypatch):
    """Handshakes, slow start, drops, moving rates and random losses, all to the microsecond.

    They were recorded with ns-3's own wait for a second segment.
    """
    monkeypatch.setattr(numbers, "DELAYED_ACK_NS", 200_000_000)
    times_s = flow_times_s(world_of(case), process, flows_of(case), is_warm=False)

    assert times_s == pytest.approx(case["completion_s"], abs=1e-6)


def test_two_runs_are_equal_and_a_killed_child_is_an_error(process):
    case = next(each for each in CASES if each["name"] == SMALL)
    own = PacketProcess()
    first = flow_times_s(world_of(case), own, flows_of(case))

    assert flow_times_s(world_of(case), own, flows_of(case)) == first

    links = PacketLinks(world_of(case), own)
    own._child.kill()
    with pytest.raises(ReferenceRunError, match="the child ended with -9 during advance"):
        links.advance(math.inf)
    assert not own.is_alive


def test_messages_of_both_directions_do_not_slow_each_other_down_where_acknowledgements_go_first(
    process,
):
    """10 bandwidth-delay products of 7.5 MB at 1 Gbit/s; in order, bunches idle."""
    ends = ("AB", "BA")
    links = [
        Link(source=a, target=b, bandwidth_bytes_per_s=1.25e8, latency_s=0.03) for a, b in ends
    ]
    still = UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.0)
    pair = Topology.of([unit_domain(name) for name in "AB"], links, still)
    flows = [(0, 1, 7.5e7, 0.0), (1, 0, 7.5e7, 0.0)]

    def times_s(acknowledgements, num):
        packets = PacketTransport(acknowledgements=acknowledgements)
        world = replace(pair, transport=replace(pair.transport, packets=packets))
        return flow_times_s(world, process, flows[:num])

    (alone_s,) = times_s("first", 1)
    assert alone_s == pytest.approx(0.6 + 0.03, rel=2e-3)
    assert times_s("first", 2) == pytest.approx([alone_s, alone_s], rel=1e-3)
    assert min(times_s("in_order", 2)) > 1.1 * alone_s
