"""Diagnosis of stuck collectives, of nodes that no pass comes for, and of cycles."""

import random

import networkx as nx
import pytest
from stuck_runs import CHUNKS, causes, done, lines, node, receiving, state

from astra_sim.files.cycles import dependency_cycles
from astra_sim.files.execution_trace import CollectiveType, NodeType
from astra_sim.run.diagnosis import MAX_RANKS


def joining(number, num_bytes, after=(), kind=CollectiveType.ALL_REDUCE, **attributes):
    return node(
        number,
        NodeType.COMM_COLL,
        after,
        comm_type=int(kind),
        comm_size=num_bytes,
        **attributes,
    )


def test_collective_names_ranks_that_have_not_joined():
    """Rank 0 is in; rank 1 has its part still to come; rank 2 has none; rank 3 is in."""
    ranks = [
        state(joining(1, 512), in_flight=[1]),
        state(receiving(0, 2, 8, 0), joining(5, 512, [0]), rank=1, in_flight=[0]),
        done(2),
        state(joining(1, 512), rank=3, in_flight=[1]),
    ]

    assert causes(*ranks)[0] == (
        "rank 0: node 1 COMM_COLL 'n1', ALL_REDUCE of 512 bytes, waits for 2 of 3 others: "
        "rank 1 has not issued its node 5 COMM_COLL 'n5', rank 2 has no such collective left"
    )


def test_collective_of_a_group_waits_for_its_members_only():
    ranks = [
        state(joining(1, 512, pg_name="3"), in_flight=[1]),
        done(1),
        state(joining(1, 512), rank=2, in_flight=[1]),
    ]

    said = causes(*ranks, groups={3: (2, 0)})[0]
    assert said.endswith(
        "512 bytes in group 3, waits for 1 of 1 others: rank 2 has no such collective left"
    )


def test_collective_of_one_dimension_waits_for_its_neighbours_only():
    """In 2 x 2 NPUs with only dimension 0 involved, rank 2's neighbour is rank 3."""
    part = joining(1, 512, involved_dim=(True, False))
    ranks = [done(0), done(1), state(part, rank=2, in_flight=[1]), done(3)]

    said = causes(*ranks, dimensions=(2, 2))
    assert said == [
        "rank 2: node 1 COMM_COLL 'n1', ALL_REDUCE of 512 bytes, waits for 1 of 1 others: "
        "rank 3 has no such collective left"
    ]


def test_collectives_that_differ_are_shown():
    gather = joining(2, 64, kind=CollectiveType.ALL_GATHER)
    ranks = [state(joining(1, 512), in_flight=[1]), state(gather, rank=1, in_flight=[2])]

    assert causes(*ranks)[0].endswith(
        "is not the same everywhere: rank 1 has node 2 COMM_COLL 'n2', ALL_GATHER of 64 bytes"
    )


def test_ranks_at_different_chunks_are_shown():
    ranks = [state(joining(1, 512), rank=rank, in_flight=[1]) for rank in (0, 1)]
    receives = [(CHUNKS + 4, 1, 0, 8), (CHUNKS, 0, 1, 8), (10**9 + CHUNKS, 0, 1, 8192)]

    said = causes(*ranks, receives=receives)
    assert "rank 1 is at chunk 0, not 4" in said[0]
    assert "rank 0 is at chunk 4, not 0" in said[1]


def test_collective_that_all_have_joined_or_that_is_alone():
    ranks = [state(joining(1, 512), rank=rank, in_flight=[1]) for rank in (0, 1)]
    alone = state(joining(1, 512, pg_name="1"), in_flight=[1])

    assert "joined by all 2 ranks, but cannot complete" in causes(*ranks)[0]
    assert "has no other rank" in causes(alone, done(1), groups={1: (0,)})[0]


def test_node_that_raised_says_why():
    stuck = state(node(1), node(2), in_flight=[1], ready=[2], errors={1: "num_ops is missing"})

    assert causes(stuck, done(1)) == [
        "rank 0: node 1 COMP 'n1' cannot run and keeps its slot: num_ops is missing",
        "rank 0: node 2 ready, but waiting for the compute slot, held by node 1",
    ]


def test_ready_nodes_that_no_pass_comes_for():
    stuck = state(node(0, NodeType.INVALID), node(1, after=[0]), done=[0], ready=[1])

    assert causes(stuck, done(1)) == [
        "rank 0: node 1 ready, but nothing completes any more and has them issued"
    ]


def test_ready_node_of_unknown_type_does_no_harm():
    stuck = state(receiving(0, 1, 8, 0), node(1, 77), in_flight=[0], ready=[1])

    assert len(causes(stuck, done(1))) == 1


def test_blocked_nodes_are_counted_and_the_first_named():
    behind = [node(number, after=[0]) for number in range(1, 9)]
    stuck = state(receiving(0, 1, 8, 0), *behind, in_flight=[0])

    assert causes(stuck, done(1))[1] == (
        "rank 0: nodes 1, 2, 3, 4, 5 and 3 more never ran, waiting for nodes above"
    )


def test_cycle_of_a_rank_that_finished():
    ring = [node(0), node(4, after=[0, 6]), node(5, after=[4]), node(6, after=[5])]
    finished = state(*ring, node(7, after=[6]), done=[0], finished=True)

    assert lines(finished, done(1)) == [
        "0 of 2 ranks did not finish, 4 nodes did not complete",
        "rank 0: nodes 4 -> 6 -> 5 -> 4 depend on each other in a cycle and never run",
        "rank 0: node 7 never ran, waiting for nodes above",
    ]


def test_many_ranks_are_counted():
    ranks = [
        state(receiving(0, rank, 8, 0), rank=rank, in_flight=[0]) for rank in range(MAX_RANKS + 3)
    ]

    said = causes(*ranks)
    assert len(said) == MAX_RANKS + 1
    assert said[-1] == "3 more ranks have nodes that never completed: 20, 21, 22"


def test_many_nodes_of_a_rank_are_counted():
    receives = [receiving(number, 1, 8, number) for number in range(12)]
    stuck = state(*receives, in_flight=range(12))

    assert causes(stuck, done(1))[-1] == "rank 0: 7 more in flight: nodes 5, 6, 7, 8, 9 and 2 more"


@pytest.mark.parametrize("seed", range(60))
def test_cycles_are_those_of_the_strongly_connected_components(seed):
    """One cycle for each component of several nodes, or of one that waits for itself."""
    rng = random.Random(seed)
    count = rng.randint(1, 9)
    graph = {
        number: [other for other in range(count) if rng.random() < 0.2] for number in range(count)
    }
    components = [
        component
        for component in nx.strongly_connected_components(nx.DiGraph(graph))
        if len(component) > 1 or graph[min(component)].count(min(component))
    ]

    cycles = dependency_cycles(graph)

    assert sorted(cycle[0] for cycle in cycles) == sorted(min(each) for each in components)
    for cycle in cycles:
        assert len(set(cycle)) == len(cycle)
        follows = zip(cycle, (*cycle[1:], cycle[0]), strict=True)
        assert all(target in graph[waiting] for waiting, target in follows)


def test_long_chains_do_not_exhaust_the_stack():
    chain = {number: [number + 1] for number in range(20_000)}

    assert dependency_cycles(chain) == []
    assert len(dependency_cycles({**chain, 20_000: [0]})[0]) == 20_001
