"""Messages and memory of the engine against figures worked out by hand from its rules."""

import math

import pytest
from astra_hand_figures import MIB, ONE_BYTE_PER_NS, RATE, message
from astra_runs import finishes, run
from astra_traces import Case, compute, memory, network_file, receive, send, system_file

from astra_sim import RunOptions
from astra_sim.files.errors import AbortError

WAN = {"bandwidth": 0.25, "latency": 30e6}
WAN_NS = 33906250
"""1 MiB over a link of `WAN`: 30 ms, then 2**20 / (2**28 / 10**9) ns."""


@pytest.mark.parametrize("slots", [None, 1, 2, 3, "unlimited"])
def test_sends_of_one_npu_take_turns_in_its_communication_slots(slots):
    sends = [send(target, target, MIB, 0) for target in (1, 2, 3)]
    case = Case(
        ranks=[sends, *([receive(0, 0, MIB, 0)] for _ in range(3))],
        network=network_file("FullyConnected", **WAN),
        system=system_file(communication_slots=slots),
    )
    num_slots = {None: 1, "unlimited": 3}.get(slots, slots)
    turns = [place // num_slots + 1 for place in range(3)]

    assert finishes(run(case)) == [WAN_NS * turn for turn in (turns[-1], *turns)]


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        ("FullyConnected", [33906250, 33906250, 33906250]),
        ("Ring", [33906250, 67812500, 33906250]),
        ("Switch", [67812500, 71718749, 75624998]),
    ],
)
def test_three_messages_to_one_npu_in_the_aware_network(topology, expected):
    receives = [receive(source, source, MIB, 0) for source in (1, 2, 3)]
    case = Case(
        ranks=[receives, *([send(0, 0, MIB, 0)] for _ in range(3))],
        network=network_file(topology, **WAN),
    )

    assert finishes(run(case, "aware")) == [max(expected), *expected]


# Section 5: order of events.


def test_who_set_its_timer_first_finishes_first_within_a_tick():
    case = Case(
        ranks=[[compute(0, 1), compute(1, 1, [0])], [compute(0, 2)]],
        network=network_file("Ring", 2),
    )

    result = run(case)

    assert [each.rank for each in result.ranks] == [1, 0]
    assert finishes(result) == [2000, 2000]


# Section 6: slots, and what is exposed.


def test_a_late_receive_completes_at_once():
    case = message(0, 1, 1000, before_us=(0, 50), num_npus=2, network=network_file("Ring", 2))
    result = run(case)

    assert finishes(result) == [math.floor(500 + 1000 / RATE), 50_000]
    assert {each.rank: each.exposed_communication_cycles for each in result.ranks} == {
        0: math.floor(500 + 1000 / RATE),
        1: 0,
    }


def test_a_replay_counts_all_nodes_as_computation_modulo_2_to_the_64():
    case = Case(
        ranks=[[compute(0, 3), receive(1, 1, 1, 0), receive(2, 1, 1, 0)]] * 2,
        network=network_file("Ring", 2),
        system=system_file(replay_only=1),
    )

    (first, _) = run(case).ranks

    assert first.finish_cycles == 3000
    assert first.exposed_communication_cycles == 3000 - 3000 - 1 - 1 + 2**64


def test_computation_and_messages_go_on_side_by_side():
    network = network_file("Ring", 2, ONE_BYTE_PER_NS, 0.0)
    ranks = [
        [compute(0, 4), send(1, 1, 3000, 0), send(2, 1, 3000, 0)],
        [receive(0, 0, 3000, 0), receive(1, 0, 3000, 0), compute(2, 1, [1])],
    ]
    result = run(Case(ranks=ranks, network=network))

    assert finishes(result) == [6000, 7000]
    assert sorted(each.exposed_communication_cycles for each in result.ranks) == [2000, 6000]


def test_children_of_what_retires_at_once_wait_for_another_completion():
    nothing = {"num_ops": 1, "tensor_size": 0}
    some = {"num_ops": 9 * 10**9, "tensor_size": 10**6}  # 10 us, as above
    system, network = system_file(roofline_enabled=1), network_file("Ring", 2)
    alone = [compute(0, 0, attributes=nothing), compute(1, 0, [0], attributes=some)]
    accompanied = [*alone, compute(2, 0, attributes=some)]

    result = run(Case(ranks=[alone, accompanied], system=system, network=network), strict=False)

    assert result.unfinished == (0,)
    assert finishes(result) == [20_000]


# Section 7: the two networks.


@pytest.mark.parametrize(("target", "num_hops"), [(1, 1), (2, 2), (3, 2), (4, 1)])
def test_latency_of_every_hop_is_truncated_once_unaware_and_each_aware(target, num_hops):
    case = message(
        0, target, 1000, num_npus=5, network=network_file("Ring", 5, ONE_BYTE_PER_NS, 0.75)
    )

    assert finishes(run(case))[target] == 1000 + math.floor(num_hops * 0.75)
    assert finishes(run(case, "aware"))[target] == num_hops * 1000


def test_ties_go_upwards_and_links_serve_first_come_first_served():
    """NPU 0 reaches 2 through 1, whose own message keeps the second link for 3000 ns."""
    ranks = [
        [send(0, 2, 1000, 0)],
        [send(0, 2, 3000, 0)],
        [receive(0, 0, 1000, 0), receive(1, 1, 3000, 0)],
        [compute(0, 1)],
    ]
    network = network_file("Ring", 4, ONE_BYTE_PER_NS, 50.0)

    assert finishes(run(Case(ranks=ranks, network=network), "aware"))[:3] == [4050, 3050, 4050]


def test_a_message_to_itself_goes_up_to_the_switch_and_down():
    ranks = [[send(0, 0, 1000, 0), receive(1, 0, 1000, 0)], [compute(0, 1)]]
    case = Case(ranks=ranks, network=network_file("Switch", 2, ONE_BYTE_PER_NS, 5.0))

    assert finishes(run(case, "aware"))[0] == 2 * 1005
    with pytest.raises(AbortError):
        run(case)
    with pytest.raises(AbortError):
        run(case.changed(network=network_file("FullyConnected", 2)), "aware")


# Section 8: the k-th send of a key meets its k-th receive; rendezvous.


def test_equal_messages_are_received_in_the_order_in_which_they_were_posted():
    ranks = [
        [send(0, 1, 1000, 7), compute(1, 9), send(2, 1, 1000, 7, [0, 1])],
        [receive(1, 0, 1000, 7), receive(2, 0, 1000, 7), compute(3, 20, [2]), compute(4, 1, [1])],
    ]
    network = network_file("Ring", 2, ONE_BYTE_PER_NS, 0.0)
    result = run(Case(ranks=ranks, network=network))

    # 1000: first message; 10000: second one, then 20 us; the short computation came before.
    assert finishes(result) == [10_000, 30_000]


@pytest.mark.parametrize(
    ("before_us", "expected"),
    [
        ((0, 0), 8192 + 5 + 1000 + 5),
        ((50, 0), 50_000 + 1000 + 5),
        ((0, 50), 50_000 + 8192 + 5 + 1000 + 5),
        ((50, 50), 50_000 + 8192 + 5 + 1000 + 5),
    ],
)
@pytest.mark.parametrize("backend", ["unaware", "aware"])
def test_rendezvous_starts_when_both_ends_are_there(backend, before_us, expected):
    network = network_file("FullyConnected", 2, ONE_BYTE_PER_NS, 5.0)
    case = message(0, 1, 1000, before_us=before_us, num_npus=2, network=network)

    assert finishes(run(case, backend, options=RunOptions(rendezvous=True))) == [expected] * 2


# Section 11: memory.


@pytest.mark.parametrize(
    ("kind", "turns"),
    [
        ("PER_NPU_MEMORY_EXPANSION", [1, 1, 1, 1]),
        ("PER_NODE_MEMORY_EXPANSION", [1, 2, 1, 2]),
        ("MEMORY_POOL", [1, 2, 3, 4]),
    ],
)
def test_memory_serves_one_request_at_a_time(kind, turns):
    content = {
        "memory-type": kind,
        "remote-mem-latency": 70,
        "remote-mem-bw": 3,
        "num-nodes": 2,
        "num-npus-per-node": 2,
    }
    case = Case(ranks=[[memory(0, 1000)]] * 4, memory=content)

    assert finishes(run(case)) == [turn * (70 + 333) for turn in turns]


# Extensions.


def test_links_of_every_pair_have_their_own_figures():
    latencies = [[0, 10, 20], [30, 0, 40], [50, 60, 0]]
    bandwidths = [[ONE_BYTE_PER_NS * (1 + row + column) for column in range(3)] for row in range(3)]
    network = {
        "topology": ["Pairwise"],
        "npus_count": [3],
        "bandwidth_matrix": bandwidths,
        "latency_matrix": latencies,
    }
    for source, target in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)):
        case = message(source, target, 12_000, num_npus=3, network=network)
        expected = latencies[source][target] + 12_000 // (1 + source + target)
        for backend in ("unaware", "aware"):
            assert finishes(run(case, backend))[target] == expected


def test_pairs_may_be_one_dimension_of_several():
    """Two domains of two; the way there has 1 byte per ns, the way back 2."""
    network = {
        "topology": ["FullyConnected", "Pairwise"],
        "npus_count": [2, 2],
        "bandwidth": [50.0, None],
        "latency": [5.0, None],
        "bandwidth_matrix": [[0, ONE_BYTE_PER_NS], [2 * ONE_BYTE_PER_NS, 0]],
        "latency_matrix": [[0, 100], [200, 0]],
    }
    there, back = message(0, 2, 1000, network=network), message(3, 1, 1000, network=network)

    for backend in ("unaware", "aware"):
        assert finishes(run(there, backend))[2] == 100 + 1000
        assert finishes(run(back, backend))[1] == 200 + 500


@pytest.mark.parametrize("backend", ["unaware", "aware"])
def test_bytes_under_way_go_on_at_the_new_rate(backend):
    change = {"time_ns": 400, "bandwidth": 2 * ONE_BYTE_PER_NS}
    network = network_file("FullyConnected", 2, ONE_BYTE_PER_NS, 5.0, bandwidth_changes=[change])
    case = message(0, 1, 1000, num_npus=2, network=network)

    assert finishes(run(case, backend)) == [400 + 300 + 5] * 2


def test_a_link_between_domains_is_shared_by_all_pairs_across_it():
    """Two domains of two: both NPUs of domain 0 send to their counterparts at once."""
    ranks = [
        [send(0, 2, 1000, 0)],
        [send(0, 3, 1000, 0)],
        [receive(0, 0, 1000, 0)],
        [receive(0, 1, 1000, 0)],
    ]
    network = network_file(
        ["FullyConnected", "FullyConnected"], [2, 2], [50.0, ONE_BYTE_PER_NS], [5.0, 7.0]
    )
    case = Case(ranks=ranks, network=network)

    assert finishes(run(case)) == [1007] * 4
    shared = run(case, "aware", options=RunOptions(multi_dimensional=True))
    assert finishes(shared) == [1007, 2007, 1007, 2007]
