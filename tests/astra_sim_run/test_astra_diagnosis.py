"""Diagnosis of stuck runs: states made by hand, and a few that the engine makes."""

import random
from dataclasses import replace

import networkx as nx
import pytest
from astra_runs import run
from astra_traces import ALL_REDUCE, Case, collective, compute, network_file, receive, send

from astra_sim.core.result import IncompleteRunError
from astra_sim.files.cycles import dependency_cycles
from astra_sim.files.execution_trace import CollectiveType, NodeType, Trace, TraceNode
from astra_sim.files.network_config import Dimension, NetworkConfig
from astra_sim.files.system_config import Algorithm, SystemConfig
from astra_sim.run.diagnosis import MAX_RANKS, diagnose
from astra_sim.run.simulate import RunOptions
from astra_sim.run.waiting import RankState, RunState

CHUNKS = 500_000_000
SEND, RECEIVE, COMPUTE = NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.COMP


def node(number, kind=COMPUTE, after=(), *, is_cpu=False, **attributes):
    return TraceNode(
        id=number,
        name=f"n{number}",
        type=kind,
        dependencies=tuple(after),
        duration_ns=0,
        is_cpu=is_cpu,
        attributes=attributes,
    )


def sending(number, target, num_bytes, tag, after=()):
    return node(number, SEND, after, comm_dst=target, comm_size=num_bytes, comm_tag=tag)


def receiving(number, source, num_bytes, tag, after=()):
    return node(number, RECEIVE, after, comm_src=source, comm_size=num_bytes, comm_tag=tag)


def joining(number, num_bytes, after=(), kind=CollectiveType.ALL_REDUCE, **attributes):
    return node(
        number,
        NodeType.COMM_COLL,
        after,
        comm_type=int(kind),
        comm_size=num_bytes,
        **attributes,
    )


def state(*nodes, rank=0, in_flight=(), done=(), ready=(), finished=False, errors=None):
    return RankState(
        rank=rank,
        finished=finished,
        trace=Trace(source="by hand", nodes=nodes),
        in_flight={each.id: each for each in nodes if each.id in in_flight},
        done=frozenset(done),
        ready=ready,
        errors=errors or {},
    )


def done(rank):
    """A rank that has finished its only node."""
    return state(node(0), rank=rank, done=[0], finished=True)


def lines(*ranks, sends=(), receives=(), groups=None, dimensions=None):
    counts = dimensions or (max(len(ranks), 2),)
    pattern = Dimension(topology="Ring", num_npus=2, bandwidth_gb_per_s=1.0, latency_ns=1.0)
    rings = (Algorithm(name="ring"),) * len(counts)
    said = diagnose(
        RunState(
            ranks=ranks,
            sends={key: [object()] * number for key, number in dict(sends).items()},
            receives={key: [object()] for key in receives},
            network=NetworkConfig(
                dimensions=tuple(replace(pattern, num_npus=count) for count in counts)
            ),
            system=SystemConfig(all_reduce=rings, all_gather=rings),
            groups=groups or {},
        )
    )
    return list(said)


def causes(*ranks, **more):
    """Lines without the heading."""
    return lines(*ranks, **more)[1:]


def test_complete_run_has_no_diagnosis():
    assert lines(done(0), done(1)) == []


def test_message_that_nobody_received_is_named_although_all_ranks_finish():
    assert lines(done(0), done(1), sends={(7, 0, 1, 100): 2}) == [
        "rank 0: 2 messages of 100 bytes with tag 7 to rank 1 were never received"
    ]


def test_heading_counts_ranks_and_nodes():
    stuck = state(receiving(0, 1, 8, 0), node(1, after=[0]), in_flight=[0])

    assert lines(stuck, done(1))[0] == "1 of 2 ranks did not finish, 2 nodes did not complete"


def test_receive_from_a_rank_that_sends_nothing_more():
    stuck = state(receiving(4, 1, 4096, 7), in_flight=[4])

    assert causes(stuck, done(1)) == [
        "rank 0: node 4 COMM_RECV 'n4' waits for 4096 bytes with tag 7 from rank 1: "
        "rank 1 sends it nothing more"
    ]


def test_receive_from_a_rank_that_does_not_exist():
    stuck = state(receiving(4, 9, 4096, 7), in_flight=[4])

    assert causes(stuck, done(1))[0].endswith("from rank 9: there is no such rank")


def test_receive_names_messages_of_other_tag_or_size():
    """One has arrived with another size; one with another tag is still to be sent."""
    stuck = state(receiving(4, 1, 4096, 7), in_flight=[4])
    sender = state(node(0), sending(3, 0, 4096, 8, [0]), rank=1, ready=[3], done=[0])

    first = causes(stuck, sender, sends={(7, 1, 0, 1024): 1, (CHUNKS, 1, 0, 9): 1})[0]

    assert first.endswith(
        "rank 1 never sends that, but 1024 bytes with tag 7 (sent, never received), "
        "4096 bytes with tag 8 (node 3)"
    )


@pytest.mark.parametrize(
    ("sender", "why"),
    [
        (
            {"ready": [3], "in_flight": [2]},
            "has not been issued, as its slot is taken",
        ),
        ({"in_flight": [2]}, "has not been issued, as it depends on node 2"),
        ({"in_flight": [3], "done": [2]}, "is not complete either"),
    ],
)
def test_receive_says_where_its_counterpart_is(sender, why):
    stuck = state(receiving(4, 1, 64, 7), in_flight=[4])
    peer = state(receiving(2, 0, 9, 9), sending(3, 0, 64, 7, [2]), rank=1, **sender)

    counterpart = "its counterpart, node 3 COMM_SEND 'n3' of rank 1,"
    assert causes(stuck, peer)[0].endswith(f"{counterpart} {why}")


def test_tags_match_modulo_half_a_billion():
    """Tag 500000007 is tag 7 to the matcher, and to the diagnosis."""
    stuck = state(receiving(4, 1, 64, 7), in_flight=[4])
    peer = state(node(2), sending(3, 0, 64, CHUNKS + 7, [2]), rank=1, ready=[3], done=[2])

    assert "its counterpart, node 3" in causes(stuck, peer)[0]


def test_send_in_flight_waits_for_the_receive_to_be_posted():
    stuck = state(sending(4, 1, 64, 7), in_flight=[4])
    idle = done(1)
    other = state(receiving(2, 0, 64, 8), rank=1, in_flight=[2])
    late = state(node(1), receiving(2, 0, 64, 7, [1]), rank=1, in_flight=[1])

    waits = "rank 0: node 4 COMM_SEND 'n4' waits for rank 1 to post a receive with tag 7: "
    assert causes(stuck, idle) == [waits + "rank 1 never does"]
    assert causes(stuck, other)[0] == waits + "rank 1 never does, but receives tag 8 (node 2)"
    assert causes(stuck, late)[0] == waits + (
        "its counterpart, node 2 COMM_RECV 'n2' of rank 1, has not been issued, "
        "as it depends on node 1"
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


PAIR = network_file(npus=2)


def test_run_with_a_size_that_does_not_match_raises_its_diagnosis():
    case = Case(network=PAIR, ranks=[[send(0, 1, 1000, 5)], [receive(0, 0, 1001, 5)]])

    with pytest.raises(IncompleteRunError, match="waits for 1001 bytes with tag 5 from rank 0"):
        run(case)
    assert (
        run(case, strict=False)
        .diagnosis[1]
        .endswith("rank 0 never sends that, but 1000 bytes with tag 5 (sent, never received)")
    )


def test_two_ranks_that_receive_before_they_send_name_each_other():
    ranks = [
        [receive(0, peer, 10, 1), send(1, peer, 10, 1, [0]), compute(2, 1, [1])] for peer in (1, 0)
    ]

    said = run(Case(network=PAIR, ranks=ranks), strict=False).diagnosis

    assert said[0] == "2 of 2 ranks did not finish, 6 nodes did not complete"
    assert "node 1 COMM_SEND 'node 1' of rank 1, has not been issued, as it depends" in said[1]


def test_rendezvous_send_without_a_receive_is_named():
    case = Case(network=PAIR, ranks=[[send(0, 1, 1000, 5)], [compute(0, 1)]])

    said = run(case, strict=False, options=RunOptions(rendezvous=True)).diagnosis

    assert said[1].endswith("rank 1 to post a receive with tag 5: rank 1 never does")


def test_collective_that_one_rank_leaves_out_is_named():
    part = [collective(0, ALL_REDUCE, 2**20)]
    said = run(Case(ranks=[part, part, part, [compute(0, 1)]]), strict=False).diagnosis

    assert "waits for 1 of 3 others: rank 3 has no such collective left" in said[1]
