"""Ways between nodes and rings over them, by hand: racks, contention, NVLink domains."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.costs.collectives import ring_all_reduce_s
from des.devices.cluster import Block, Cluster, ClusterNode, Switch
from des.devices.node_rings import ring_hops

GBIT = 125e6


def racks(num_racks=2, per_rack=4, blocks=()):
    """Racks of nodes at 100 Gbit/s and 0.1 ms inside, 50 Gbit/s and 0.5 ms across."""
    nodes = tuple(
        ClusterNode(
            name=f"n{index}",
            switch=f"r{index // per_rack}",
            uplink_bytes_per_s=100 * GBIT,
            uplink_latency_s=0.05e-3,
            block=next((block.name for block in blocks), None) if index < 2 else None,
        )
        for index in range(num_racks * per_rack)
    )
    units = tuple(
        Switch(
            name=f"r{index}",
            level="rack",
            parent="spine",
            uplink_bytes_per_s=50 * GBIT,
            uplink_latency_s=0.2e-3,
        )
        for index in range(num_racks)
    )
    spine = Switch(name="spine", level="spine")
    return Cluster(nodes=nodes, switches=(*units, spine), blocks=tuple(blocks))


def test_a_ring_of_four_nodes_takes_twice_the_bytes_and_five_latencies_over_two_racks():
    one, two = (
        ring_hops(racks(), [ring])[0]
        for ring in (("n0", "n1", "n2", "n3"), ("n0", "n4", "n5", "n1"))
    )
    payload = 100e6
    near, far = (
        ring_all_reduce_s(payload, 4, hop.bandwidth_bytes_per_s, hop.latency_s)
        for hop in (one, two)
    )
    assert near == pytest.approx(6 * 0.1e-3 + 1.5 * payload / (100 * GBIT))
    assert far == pytest.approx(6 * 0.5e-3 + 1.5 * payload / (50 * GBIT))
    assert (one.num_links, two.num_links) == (2, 4)


def test_rings_that_leave_a_rack_share_its_uplink():
    rings = [("n0", "n4"), ("n1", "n5"), ("n2", "n3")]
    first, second, inside = ring_hops(racks(), rings)
    assert first.bandwidth_bytes_per_s == second.bandwidth_bytes_per_s == pytest.approx(25 * GBIT)
    assert inside.bandwidth_bytes_per_s == pytest.approx(100 * GBIT)


def test_nodes_of_an_nvlink_domain_meet_there():
    cluster = racks(blocks=[Block(name="nvl", bandwidth_bytes_per_s=900e9)])
    (hop,) = ring_hops(cluster, [("n0", "n1")])
    assert (hop.num_links, hop.bandwidth_bytes_per_s, hop.latency_s) == (1, 900e9, 0.0)


def test_nothing_joins_nodes_without_switches_and_a_single_node_has_no_ring():
    apart = Cluster(nodes=(ClusterNode(name="a"), ClusterNode(name="b")))
    assert ring_hops(apart, [("a", "b"), ("a",)]) == (None, None)
    with pytest.raises(ValueError, match="nodes of a hop must be two, got 'a' twice"):
        ring_hops(apart, [("a", "a")])


@given(st.permutations(range(8)), st.integers(2, 8))
def test_the_order_in_which_nodes_are_named_changes_nothing(order, num):
    names = [f"n{index}" for index in order[:num]]
    assert ring_hops(racks(), [names]) == ring_hops(racks(), [sorted(names)])
