"""Groups of GPUs whose nodes stand in racks: by hand, and by the ways between named nodes."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noded import gpus_of_device, members_of_nodes
from sharing import gpus

from des import Domain, Nodes, Parallelism, Topology
from des.costs.node_groups import data_group, expert_group, outer_wire, tensor_group
from des.devices.node_rings import ring_hops
from des.world.clusters import cluster_of_domains
from des.world.nodes import rack_order

UPLINK, FAR_S = 1.5, 7.0


def in_racks(racks: tuple[str, ...], size: int = 2) -> Domain:
    """Nodes with a card of 2 bytes/s and 3 s, in racks."""
    nodes = Nodes(
        gpus_per_node=size,
        nics_per_node=1,
        nic_bandwidth_bytes_per_s=2.0,
        nic_latency_s=3.0,
        tensor_across_nodes=True,
        racks=racks,
        rack_uplink_bytes_per_s=UPLINK,
        rack_latency_s=FAR_S,
    )
    return replace(gpus("A", len(racks) * size, (7.0, 0.25)), nodes=nodes)


def rack_of(domain: Domain, gpu: int) -> str:
    """Rack of a GPU, as plans number them."""
    nodes = domain.nodes
    return nodes.racks[rack_order(nodes)[gpu // nodes.gpus_per_node]]


@st.composite
def racked(draw: st.DrawFn) -> tuple[Domain, Parallelism, int]:
    """A domain of nodes in racks, a way to share its GPUs, and one of its devices."""
    num_nodes, size = draw(st.integers(2, 12)), draw(st.sampled_from([1, 2, 4]))
    racks = draw(st.lists(st.sampled_from("abc"), min_size=num_nodes, max_size=num_nodes))
    tensor = draw(st.sampled_from([each for each in (1, 2, 4, 8) if each <= num_nodes * size]))
    data = draw(st.integers(1, num_nodes * size // tensor))
    shared = Parallelism(
        tensor=tensor,
        data=data,
        pipeline=draw(st.integers(1, num_nodes * size // (tensor * data))),
    )
    return in_racks(tuple(racks), size), shared, draw(st.integers(0, shared.pipeline - 1))


@given(case=racked())
def test_sums_have_the_slowest_hop_of_all_rings_over_the_named_nodes(case):
    domain, shared, device = case
    nodes, replicas = domain.nodes, gpus_of_device(shared, device)
    groups = [[replica[place] for replica in replicas] for place in range(shared.tensor)]
    names = [f"A-{number}" for number in rack_order(nodes)]
    rings = [
        [names[node] for node in members_of_nodes(each, nodes.gpus_per_node)] for each in groups
    ]
    world = Topology.of([domain], [])
    hops = [each for each in ring_hops(cluster_of_domains(world), rings) if each is not None]
    found = data_group(domain, shared, device)
    if hops and shared.num_gpus > nodes.gpus_per_node:
        assert found.outer_bandwidth_bytes_per_s == min(each.bandwidth_bytes_per_s for each in hops)
        assert found.outer_latency_s == max(each.latency_s for each in hops)


@given(case=racked(), distance=st.integers(1, 3))
def test_messages_of_a_device_share_the_uplink_that_most_of_them_take(case, distance):
    domain, shared, device = case
    if device + distance >= shared.pipeline:
        return
    pairs = zip(*(gpus_of_device(shared, one) for one in (device, device + distance)), strict=True)
    ways = [
        (rack_of(domain, here), rack_of(domain, there))
        for sent in pairs
        for here, there in zip(*sent, strict=True)
    ]
    out = [way for way in ways if way[0] != way[1]]
    found = outer_wire(domain, shared, device, distance=distance)
    if out:
        most = max(max(Counter(ends).values()) for ends in zip(*out, strict=True))
        assert found[0] <= UPLINK / most
        assert found[1] == 3.0 + FAR_S
    elif found is not None:
        assert found[1] == 3.0


def test_four_replicas_of_two_racks_take_the_uplink_and_its_latency():
    """Eight tensor ranks a node sum up at once, so each has an eighth of the 1.5 bytes/s."""
    shared = Parallelism(tensor=8, data=4)
    one, two = (
        data_group(in_racks(racks, 8), shared, 0) for racks in (("a",) * 4, ("a", "a", "b", "b"))
    )
    assert (one.outer_bandwidth_bytes_per_s, one.outer_latency_s) == (2.0 / 8, 3.0)
    assert (two.outer_bandwidth_bytes_per_s, two.outer_latency_s) == (1.5 / 8, 3.0 + FAR_S)


def test_plans_fill_the_largest_rack_first():
    """Of racks by turns too, so that four nodes of eight are in one rack."""
    domain = in_racks(("b", "a", "c", "a", "b", "a", "a"), 8)
    assert rack_order(domain.nodes) == (1, 3, 5, 6, 0, 4, 2)
    found = data_group(domain, Parallelism(tensor=8, data=4), 0)
    assert found.outer_latency_s == 3.0


def test_all_to_alls_take_what_leaves_a_rack_over_its_uplink():
    """Eight GPUs on four nodes, 4 of each rack: 4 x 4 parts over 1.5 bytes/s, 2 x 6 over 2."""
    found = expert_group(in_racks(("a", "a", "b", "b")), Parallelism(data=8, expert=8))
    part_s = 2 * 6 / found.outer_bandwidth_bytes_per_s
    assert part_s == pytest.approx(max(4 * 4 / UPLINK, 2 * 6 / 2.0))
    assert found.outer_latency_s == 3.0 + FAR_S


def test_tensor_groups_over_nodes_share_the_uplinks_that_several_cross():
    """Of three groups on six nodes, two nodes each, those at the ends stay in their racks."""
    racks = ("a", "a", "a", "b", "b", "b")
    found = tensor_group(in_racks(racks), Parallelism(tensor=4, data=3))
    assert (found.outer_bandwidth_bytes_per_s, found.outer_latency_s) == (UPLINK, 3.0 + FAR_S)
