"""Collectives over GPUs of servers: by hand, against bounds, renamed, at other bandwidths."""

from dataclasses import replace

import pytest
from device_figures import ROUND, bridged, switched
from hypothesis import given, settings
from hypothesis import strategies as st

from des.costs.collectives import halving_all_reduce_s, ring_all_reduce_s
from des.costs.device_collectives import all_reduce_time, collective_time
from des.costs.device_groups import DeviceGroup, network_of_cards
from des.devices.presets import simulated

LAUNCH_S = 20e-6
ALGORITHMS = ("ring", "tree", "halving", "hierarchical")
sizes = st.floats(0.0, 1e10)
groups = st.builds(
    lambda num, servers, kind: bridged() if kind else switched(num, servers),
    st.integers(2, 8),
    st.integers(1, 4),
    st.booleans(),
)


def test_a_ring_of_eight_at_a_switch_by_hand():
    """14 steps of 1 us, and 14/8 of 120 MB at 150 GB/s."""
    found = all_reduce_time(switched(), 120e6, "ring")

    assert found.time_s == pytest.approx(LAUNCH_S + 14e-6 + 1.4e-3)
    assert found.bus_bandwidth_bytes_per_s == pytest.approx(210e6 / found.time_s)


@pytest.mark.parametrize(
    ("num_gpus", "num_bytes", "kind", "time_s"),
    [
        (8, 120e6, "tree", 14e-6 + 1.6e-3),  # a chain: up and down 7 hops of 1 us, twice the buffer
        (8, 120e6, "halving", 6e-6 + 1.4e-3),  # 3 exchanges there and back; the bytes of a ring
        # Four exchange twice; before and after, 150 MB pass between the fifth and the first.
        (5, 150e6, "halving", 6e-6 + 1.5e-3 + 2e-3),
    ],
)
def test_trees_and_halving_at_a_switch_by_hand(num_gpus, num_bytes, kind, time_s):
    found = all_reduce_time(switched(num_gpus), num_bytes, kind)

    assert found.time_s == pytest.approx(LAUNCH_S + time_s)


def test_two_servers_of_four_by_hand():
    """20 GB/s out of each; 14 steps of 10 us in lock step, or 6 and 2 of them, or 3 exchanges."""
    group = switched(4, num_servers=2)
    times_s = all_reduce_time(group, 120e6, "best").times_s

    assert times_s["ring"] == pytest.approx(LAUNCH_S + 140e-6 + 10.5e-3)
    assert times_s["tree"] == pytest.approx(LAUNCH_S + 26e-6 + 12e-3)
    assert times_s["hierarchical"] == pytest.approx(LAUNCH_S + 6e-6 + 1.2e-3 + 20e-6 + 6e-3)
    assert times_s["halving"] == pytest.approx(LAUNCH_S + 4e-6 + 1.2e-3 + 20e-6 + 6e-3)


def test_pairs_send_their_larger_halves_over_their_bridges_by_hand():
    """60 MB at 150 GB/s and 30 MB at 20, each way; a ring takes 6 steps of PCIe."""
    times_s = all_reduce_time(bridged(), 120e6, "best").times_s

    assert times_s["ring"] == pytest.approx(LAUNCH_S + 30e-6 + 9e-3)
    assert times_s["halving"] == pytest.approx(LAUNCH_S + 12e-6 + 0.8e-3 + 3e-3)


def test_other_collectives_and_messages_by_hand():
    group = switched(4)

    gather = collective_time(group, "all_gather", 60e6)
    scatter = collective_time(group, "reduce_scatter", 60e6)
    assert gather.time_s == scatter.time_s == pytest.approx(LAUNCH_S + 3e-6 + 0.3e-3)
    pair = switched(4, places=(0, 3))
    assert collective_time(pair, "point_to_point", 15e6).time_s == pytest.approx(
        LAUNCH_S + 1e-6 + 0.1e-3
    )
    apart = switched(1, num_servers=2)
    assert collective_time(apart, "point_to_point", 15e6).time_s == pytest.approx(
        LAUNCH_S + 10e-6 + 3e-3
    )


def test_nothing_is_faster_than_the_floor_and_one_gpu_has_nothing_to_do():
    assert all_reduce_time(switched(2), 1.0).time_s == 50e-6
    single = all_reduce_time(switched(8, places=(3,)), 1e9, "best")
    assert single.time_s == single.bus_bandwidth_bytes_per_s == 0.0


def test_the_bus_is_half_as_fast_as_it_can_be_at_a_message_as_long_as_launch_and_steps():
    group = switched(2)
    group = replace(group, figures=replace(ROUND, pooled=replace(ROUND.pooled, floor_s=0.0)))

    half_bytes = 150e9 * 22e-6
    assert all_reduce_time(group, half_bytes).bus_bandwidth_bytes_per_s == pytest.approx(75e9)
    assert all_reduce_time(group, 1e12).bus_bandwidth_bytes_per_s == pytest.approx(150e9, rel=1e-4)


def test_the_choice_is_the_least_time_and_says_of_the_others():
    found = all_reduce_time(switched(4, num_servers=2), 120e6, "best")

    assert found.algorithm == "halving"
    assert found.time_s == min(found.times_s.values())
    assert found.reason.startswith("least time; ring 10.66 ms, tree")
    fitted = all_reduce_time(switched(4, num_servers=2), 120e6)
    assert (fitted.algorithm, fitted.reason) == ("ring", "as the figures were fitted")


def test_below_the_fitted_sizes_the_quicker_of_ring_and_tree_is_taken():
    """Two servers of four take 14 steps of 10 us as a ring, 6 of 1 us and 2 of 10 as a tree."""
    small = all_reduce_time(switched(4, num_servers=2), 0.9e6)
    large = all_reduce_time(switched(4, num_servers=2), 1e6)

    assert (small.algorithm, large.algorithm) == ("tree", "ring")
    assert small.time_s == pytest.approx(LAUNCH_S + 26e-6 + 90e-6)
    assert "as NCCL chooses: least time; ring" in small.reason


@settings(max_examples=40)
@given(group=groups, payload_bytes=sizes)
def test_no_all_reduce_beats_the_bound_on_bytes_sent(group, payload_bytes):
    """Each GPU sends 2 (n - 1) / n of its buffer, no faster than over its fastest link."""
    count = group.num_ranks
    least_s = 2 * (count - 1) / count * payload_bytes / 150e9

    for time_s in all_reduce_time(group, payload_bytes, "best").times_s.values():
        assert time_s >= least_s


@settings(max_examples=40)
@given(group=groups, payloads=st.tuples(sizes, sizes))
def test_no_collective_is_faster_with_more_bytes(group, payloads):
    few, many = sorted(payloads)

    assert all_reduce_time(group, few).time_s <= all_reduce_time(group, many).time_s
    small, large = (all_reduce_time(group, each, "best").times_s for each in (few, many))
    assert all(small[name] <= large[name] for name in small)
    for name in ("all_gather", "reduce_scatter"):
        assert collective_time(group, name, few).time_s <= collective_time(group, name, many).time_s


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (3, 1, 2, 0), (2, 0, 3, 1)])
def test_numbers_of_gpus_make_no_difference(order):
    plain, renumbered = (
        all_reduce_time(group, 1e8, "best").times_s for group in (bridged(), bridged(order))
    )

    assert plain == renumbered


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_half_the_bandwidth_takes_as_long_as_twice_the_bytes(algorithm):
    group = switched(4, num_servers=2)
    slow = replace(ROUND.pooled, nvlink_fraction=0.25, pcie_fraction=10 / 31.5)
    network = replace(
        ROUND.of_network("cluster"),
        gpu_bandwidth_bytes_per_s=2.5e9,
        server_bandwidth_bytes_per_s=10e9,
    )
    halved = replace(group, figures=replace(ROUND, pooled=slow), network=network)

    assert all_reduce_time(halved, 1e8, algorithm).time_s == pytest.approx(
        all_reduce_time(group, 2e8, algorithm).time_s
    )


def test_halving_on_equal_hops_sends_what_a_ring_does():
    halving_s = halving_all_reduce_s(8e9, [(1e9, 0.0)] * 3)

    assert halving_s == pytest.approx(ring_all_reduce_s(8e9, 8, 1e9))


def test_pairs_that_exchange_over_the_link_of_processors_share_it():
    """Two pairs of four cross it in the second exchange; a ring crosses it once each way."""
    server = simulated("pcie-4")
    group = DeviceGroup.of_server(server, ROUND)
    times_s = all_reduce_time(group, 120e6, "best").times_s

    crossing = 20e9 * 10 / 24
    assert times_s["ring"] == pytest.approx(LAUNCH_S + 30e-6 + 180e6 / crossing)
    assert times_s["halving"] == pytest.approx(
        LAUNCH_S + 20e-6 + 120e6 / 20e9 + 60e6 / (crossing / 2)
    )


def test_the_cube_mesh_sends_round_six_rings_at_once():
    group = DeviceGroup.of_server(simulated("dgx-1-v100"), ROUND)

    assert group.rings[0] == (0, 3, 2, 1, 5, 6, 7, 4)
    assert group.ring_hop == (6 * 25e9 * 0.5, 1e-6)


def test_the_way_out_is_that_of_the_nearest_cards():
    """DGX A100: the two cards of 200 Gbit/s at a switch carry the two GPUs there."""
    server = simulated("dgx-a100")

    one, two, all_gpus = (
        network_of_cards(server, places, ROUND) for places in ((0,), (0, 1), range(8))
    )
    assert one.way_out_bytes_per_s(1) == 20e9  # PCIe
    assert two.way_out_bytes_per_s(2) == 40e9
    assert all_gpus.server_bandwidth_bytes_per_s == pytest.approx(8 * 25e9 * 0.96)


def test_bad_groups_are_refused():
    server = simulated("dgx-a100")
    with pytest.raises(ValueError, match=r"server dgx-a100: GPUs must be .* got \(0, 8\)"):
        DeviceGroup.of_server(server, ROUND, places=(0, 8))
    with pytest.raises(ValueError, match="network must be given for several servers"):
        DeviceGroup.of_server(server, ROUND, num_servers=2)
    with pytest.raises(ValueError, match="servers must be at least one"):
        DeviceGroup.of_server(server, ROUND, num_servers=0)
    with pytest.raises(ValueError, match="one of ring, tree, halving for these GPUs"):
        all_reduce_time(switched(), 1e6, "hierarchical")
    with pytest.raises(ValueError, match="all_gather: algorithm must be ring, got 'tree'"):
        collective_time(switched(), "all_gather", 1e6, "tree")
    with pytest.raises(ValueError, match="point_to_point: GPUs must be 2, got 8"):
        collective_time(switched(), "point_to_point", 1e6)
    for name in ("all_reduce", "all_gather"):
        with pytest.raises(ValueError, match="payload_bytes"):
            collective_time(switched(), name, -1.0)
    with pytest.raises(ValueError, match="network cards must be known for several servers"):
        network_of_cards(simulated("dgx-a100").part((0, 1)), (0, 1), ROUND)
    blind = replace(server, nics=tuple(replace(nic, bandwidth_bytes_per_s=None)
                                       for nic in server.nics))  # fmt: skip
    with pytest.raises(ValueError, match="NIC0: bandwidth must be known"):
        network_of_cards(blind, (0,), ROUND)
