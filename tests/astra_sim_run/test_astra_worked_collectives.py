"""Collectives of the engine against figures worked out by hand from its rules."""

import math

import pytest
from astra_hand_figures import MIB, RATE, world_collective
from astra_runs import finishes, run
from astra_traces import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE_SCATTER,
    Case,
    collective,
    network_file,
    system_file,
)

from astra_sim import RunOptions
from astra_sim.files.errors import AbortError


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
