"""The engine against figures worked out by hand from the description of the original's rules."""

import math

import pytest
from astra_runs import finishes, run
from astra_traces import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    BROADCAST,
    REDUCE_SCATTER,
    Case,
    collective,
    compute,
    memory,
    network_file,
    receive,
    send,
    system_file,
)

from astra_sim import AstraSimError, IncompleteRunError, RunOptions
from astra_sim.files.errors import AbortError, NodeError

MIB = 2**20
RATE = 50.0 * 2**30 / 10**9
"""Bytes per ns of the links of `network_file`."""
ONE_BYTE_PER_NS = 10**9 / 2**30
"""A bandwidth in GB/s; exact, as both are small multiples of powers of two."""
WAN = {"bandwidth": 0.25, "latency": 30e6}
WAN_NS = 33906250
"""1 MiB over a link of `WAN`: 30 ms, then 2**20 / (2**28 / 10**9) ns."""


def world_collective(kind, num_bytes=MIB, *, num_npus=4, **parts):
    """One collective of all NPUs at time 0."""
    return Case(ranks=[[collective(0, kind, num_bytes)]] * num_npus, **parts)


def message(source, target, num_bytes, *, num_npus=4, before_us=(0, 0), **parts):
    """One message, its ends preceded by computations."""
    ranks = [[] for _ in range(num_npus)]
    ends = (
        (source, send(1, target, num_bytes, 0), before_us[0]),
        (target, receive(2, source, num_bytes, 0), before_us[1]),
    )
    for rank, end, duration_us in ends:
        if duration_us:
            ranks[rank].append(compute(end.id + 10, duration_us))
            end.data_deps.append(end.id + 10)
        ranks[rank].append(end)
    return Case(ranks=[nodes or [compute(0, 1)] for nodes in ranks], **parts)


# The table of the description.


@pytest.mark.parametrize(
    ("kind", "algorithm", "splits", "expected"),
    [
        (ALL_REDUCE, "ring", 4, 43000),
        (ALL_REDUCE, "ring", 1, 33829),
        (ALL_REDUCE, "direct", 1, 12283),
        (ALL_REDUCE, "halvingDoubling", 1, 32833),
        (ALL_REDUCE, "doubleBinaryTree", 1, [87069, 67028, 87069, 44522]),
        (ALL_GATHER, "ring", 1, 60133),
        (REDUCE_SCATTER, "ring", 1, 17653),
        (ALL_TO_ALL, "ring", 1, 32362),
    ],
)
def test_collectives_of_the_table(kind, algorithm, splits, expected):
    case = world_collective(kind, system=system_file(algorithm, preferred_dataset_splits=splits))

    assert finishes(run(case)) == (expected if isinstance(expected, list) else [expected] * 4)


@pytest.mark.parametrize(
    ("optimization", "expected"), [("baseline", 123928802), ("localBWAware", 121975194)]
)
def test_two_dimensions_of_the_table(optimization, expected):
    case = world_collective(
        ALL_REDUCE,
        network=network_file(["Ring", "Switch"], [2, 2], [50.0, 0.25], [500.0, 30e6]),
        system=system_file(["ring", "ring"], collective_optimization=optimization),
    )

    assert finishes(run(case)) == [expected] * 4


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


def test_a_delay_of_nothing_aborts_at_time_0_only():
    ops = {"num_ops": 1, "tensor_size": 1}
    system = system_file(roofline_enabled=1)
    network = network_file("Ring", 2)
    late = [
        compute(0, 0, attributes={"num_ops": 9 * 10**9, "tensor_size": 10**6}),
        compute(1, 0, [0], attributes=ops),
    ]

    # 9000 operations a byte are bound by the peak of 900,000 a ns, one a byte by the memory.
    assert finishes(run(Case(ranks=[late] * 2, network=network, system=system))) == [10_000] * 2
    with pytest.raises(AbortError, match="event list: the first event must be due after time 0"):
        run(Case(ranks=[[compute(0, 0, attributes=ops)]] * 2, network=network, system=system))


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


# Section 9: chunks and queues.


@pytest.mark.parametrize(("active", "turns"), [(1, 4), (2, 2), (3, 2), (4, 1), (9, 1)])
def test_chunks_that_do_not_meet_take_the_time_of_one(active, turns):
    system = system_file(preferred_dataset_splits=4, active_chunks_per_dimension=active)

    assert finishes(run(world_collective(ALL_REDUCE, system=system))) == [turns * 10750] * 4


@pytest.mark.parametrize(
    ("kind", "optimization", "turns", "turn_ns"),
    [
        (ALL_REDUCE, "localBWAware", 4, 10750),  # only the lower half of the two queues
        (ALL_REDUCE, "baseline", 2, 10750),
        (REDUCE_SCATTER, "localBWAware", 2, 3 * 1720 + 4 * 10 + 3 * 120),
    ],
)
def test_queues_of_a_dimension_run_side_by_side(kind, optimization, turns, turn_ns):
    system = system_file(preferred_dataset_splits=4, collective_optimization=optimization)
    options = RunOptions(num_queues_per_dimension=2)

    result = run(world_collective(kind, system=system), options=options)
    assert finishes(result) == [turns * turn_ns] * 4


@pytest.mark.parametrize("num_npus", [3, 5, 8])
@pytest.mark.parametrize(
    ("kind", "share", "num_sends", "num_reductions"),
    [
        (ALL_REDUCE, True, lambda n: 2 * (n - 1), lambda n: n - 1),
        (REDUCE_SCATTER, True, lambda n: n - 1, lambda n: n - 1),
        (ALL_GATHER, False, lambda n: n - 1, lambda n: 0),
        (ALL_TO_ALL, True, lambda n: n * (n - 1) // 2, lambda n: 0),
    ],
)
@pytest.mark.parametrize(
    ("topology", "backend", "hops", "links"),
    [
        ("Ring", "unaware", 1, 1),
        ("Ring", "aware", 1, 1),
        ("FullyConnected", "unaware", 1, 1),
        ("FullyConnected", "aware", 1, 1),
        ("Switch", "unaware", 2, 1),
        ("Switch", "aware", 1, 2),
    ],
)
def test_ring_collectives_have_a_closed_form(
    *, topology, backend, hops, links, kind, share, num_sends, num_reductions, num_npus
):
    """Sends in turn, a local move around each, reductions after the moves of the first round."""
    message_bytes = 10**6 // num_npus if share else 10**6
    step_ns = links * math.floor(hops * 500.0 + message_bytes / RATE)
    reduction_ns = 3 * math.floor(message_bytes / 1600e9 * 1e9)
    sends = num_sends(num_npus)

    case = world_collective(
        kind, 10**6, num_npus=num_npus, network=network_file(topology, num_npus)
    )
    expected = sends * step_ns + (sends + 1) * 10 + num_reductions(num_npus) * reduction_ns
    assert finishes(run(case, backend)) == [expected] * num_npus


def ring_step_ns(bandwidth, latency_ns, num_bytes):
    """Time of one message to the neighbour on an unaware network."""
    return math.floor(latency_ns + num_bytes / (bandwidth * 2**30 / 10**9))


TWO_BY_TWO = network_file(["Ring", "Ring"], [2, 2], [50.0, 10.0], [500.0, 700.0])
REDUCED_NS = 3 * math.floor(MIB / 2 / 1600e9 * 1e9)
HALF_NS, HALF_FAR_NS = ring_step_ns(50.0, 500.0, MIB // 2), ring_step_ns(10.0, 700.0, MIB // 2)
QUARTER_FAR_NS = ring_step_ns(10.0, 700.0, MIB // 4)
QUARTER_REDUCED_NS = 3 * math.floor(MIB / 4 / 1600e9 * 1e9)
REDUCE_BOTH_NS = (HALF_NS + 20 + REDUCED_NS) + (QUARTER_FAR_NS + 20 + QUARTER_REDUCED_NS)


@pytest.mark.parametrize(
    ("kind", "algorithms", "involved", "expected"),
    [
        (REDUCE_SCATTER, ["ring", "ring"], (True, True), REDUCE_BOTH_NS),
        (REDUCE_SCATTER, ["ring", "ring"], (True, False), HALF_NS + 20 + REDUCED_NS),
        (REDUCE_SCATTER, ["ring", "ring"], (False, True), HALF_FAR_NS + 20 + REDUCED_NS),
        (REDUCE_SCATTER, ["ring"], (True, True), HALF_NS + 20 + REDUCED_NS),
        # All four in a ring, whose neighbours always differ in dimension 0.
        (REDUCE_SCATTER, ["oneRing", "ring"], (True, True), 17653),
        # The far dimension first, then twice the data in the near one.
        (
            ALL_GATHER,
            ["ring", "ring"],
            (True, True),
            ring_step_ns(10.0, 700.0, MIB) + ring_step_ns(50.0, 500.0, 2 * MIB) + 40,
        ),
    ],
)
def test_phases_follow_the_dimensions_that_take_part(kind, algorithms, involved, expected):
    case = Case(
        ranks=[[collective(0, kind, MIB, involved=involved)]] * 4,
        network=TWO_BY_TWO,
        system=system_file(algorithms),
    )

    assert finishes(run(case)) == [expected] * 4


@pytest.mark.parametrize(("given", "moves_ns"), [(None, 10), (10, 25), (10.9, 25)])
def test_only_a_given_endpoint_delay_is_scaled(given, moves_ns):
    case = world_collective(ALL_REDUCE, system=system_file(endpoint_delay=given))

    result = run(case, options=RunOptions(injection_scale=2.5))
    assert finishes(result) == [33829 + 7 * (moves_ns - 10)] * 4


def test_a_broadcast_lasts_as_long_as_it_says_and_is_communication():
    nodes = [collective(0, BROADCAST, MIB, duration_us=3), collective(1, BROADCAST, MIB, [0])]

    for each in run(Case(ranks=[nodes] * 4)).ranks:
        assert each.finish_cycles == each.exposed_communication_cycles == 3000 + 1


# Section 10: groups.


def test_a_group_with_a_rank_that_there_is_not_is_refused_where_it_is_used():
    case = Case(ranks=[[collective(0, ALL_REDUCE, MIB, group=1)]] * 4, groups={1: (0, 1, 9)})

    with pytest.raises(AbortError, match=r"group 1: ranks must be within \[0, 4\), got \[0, 1, 9"):
        run(case)
    unused = Case(ranks=[[collective(0, ALL_REDUCE, MIB)]] * 4, groups={1: (0, 1, 9)})
    assert finishes(run(unused)) == [33829] * 4


@pytest.mark.parametrize("endpoint_delay", [10, 77])
def test_groups_move_for_10_ns_and_cross_the_network_between_them(endpoint_delay):
    """Two messages of half the data, three moves and a reduction; two hops on the ring of four."""
    groups = {1: (0, 2), 2: (1, 3)}
    ranks = [[collective(0, ALL_REDUCE, MIB, group=1 + rank % 2)] for rank in range(4)]
    case = Case(ranks=ranks, groups=groups, system=system_file(endpoint_delay=endpoint_delay))

    step_ns = math.floor(1000 + MIB / 2 / RATE)
    assert finishes(run(case)) == [2 * step_ns + 3 * 10 + 3 * 327] * 4


@pytest.mark.parametrize("endpoint_delay", [10, 77])
def test_a_group_of_all_npus_moves_as_the_world_does(endpoint_delay):
    ranks = [[collective(0, ALL_REDUCE, MIB, group=5)]] * 4
    system = system_file(endpoint_delay=endpoint_delay)
    case = Case(ranks=ranks, groups={5: (2, 0, 3, 1)}, system=system)

    assert finishes(run(case)) == [33829 + 7 * (endpoint_delay - 10)] * 4


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


# Section 14: failures.


@pytest.mark.parametrize(
    ("exit_code", "node", "parts"),
    [
        (134, send(0, 1, 100, -1), {}),
        (134, receive(0, 1, 0, 0), {}),
        (134, receive(0, 1, 100, 0, attributes={"comm_dst": 1}), {}),
        (134, send(0, 1, 100, 0, attributes={"comm_size": 100.0}), {}),
        (134, send(0, 1, 100, 0, attributes={"is_cpu_op": True}), {}),
        (134, collective(0, BARRIER, 100), {}),
        (134, collective(0, ALL_REDUCE, 100, group=1), {"groups": {1: (1, 2)}}),
        (134, collective(0, ALL_REDUCE, 100, attributes={"pg_name": 0}), {}),
        (1, collective(0, ALL_REDUCE, 100, group=7), {"groups": {1: (1, 2)}}),
        (1, collective(0, ALL_REDUCE, 100, attributes={"involved_dim": 1}), {}),
        (1, collective(0, ALL_TO_ALL, 100), {"system": system_file("halvingDoubling")}),
        (
            139,
            collective(0, ALL_REDUCE, 100),
            {"system": system_file("doubleBinaryTree"), "network": network_file("Ring", 3)},
        ),
        (
            139,
            collective(0, ALL_REDUCE, 100, group=1),
            {"system": system_file("doubleBinaryTree"), "groups": {1: (0, 1)}},
        ),
        (136, collective(0, ALL_REDUCE, 100), {"system": system_file(preferred_dataset_splits=0)}),
    ],
)
def test_what_cannot_be_run_at_time_0_ends_as_the_original_does(exit_code, node, parts):
    case = Case(**parts, ranks=[])
    (num_npus,) = case.network["npus_count"]
    ranks = [[node], *([compute(0, 1)] for _ in range(num_npus - 1))]

    with pytest.raises(AstraSimError) as caught:
        run(case.changed(ranks=ranks))
    assert caught.value.exit_code == exit_code


def test_a_node_that_cannot_be_run_later_ends_the_run_in_a_delivery_only():
    network = network_file("Ring", 2)
    after_computation = [compute(0, 1), collective(1, BARRIER, 100, [0])]
    after_message = [receive(0, 1, 100, 0), collective(1, BARRIER, 100, [0])]
    sender = [send(0, 0, 100, 0)]

    kept = run(Case(ranks=[after_computation, [compute(0, 9)]], network=network), strict=False)
    assert kept.unfinished == (0,)
    assert finishes(kept) == [9000]
    with pytest.raises(NodeError):
        run(Case(ranks=[after_message, sender], network=network), strict=False)


@pytest.mark.parametrize(
    ("num_npus", "system"),
    [
        (3, system_file("halvingDoubling")),
        (4, system_file(active_chunks_per_dimension=0)),
    ],
)
def test_collectives_that_stall_leave_their_ranks_unfinished(num_npus, system):
    network = network_file("Ring", num_npus)
    case = world_collective(ALL_REDUCE, num_npus=num_npus, network=network, system=system)

    result = run(case, strict=False)
    assert result.unfinished
    assert result.diagnosis
    with pytest.raises(IncompleteRunError):
        run(case)


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
