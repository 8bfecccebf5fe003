"""Diagnosis of stuck runs: who waits for which message."""

import pytest
from astra_runs import run
from astra_traces import ALL_REDUCE, Case, collective, compute, network_file, receive, send
from stuck_runs import CHUNKS, SEND, causes, done, lines, node, receiving, state

from astra_sim.core.result import IncompleteRunError
from astra_sim.run.simulate import RunOptions


def sending(number, target, num_bytes, tag, after=()):
    return node(number, SEND, after, comm_dst=target, comm_size=num_bytes, comm_tag=tag)


def test_complete_run_has_no_diagnosis():
    assert lines(done(0), done(1)) == []


def test_message_that_is_not_received_is_named_although_all_ranks_finish():
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
