"""Senders that have one message in flight at a time, latency included."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sending import SHARINGS, Sent, courses, deliver, moving, pair, sent, transports
from strategies import plan, unit_workload

from des import Corrections, Topology, simulate

FORTH, BACK = (4.0, 8.0), (2.0, 1.0)


def strict(*, sharing: str = "fifo") -> Topology:
    """4 B/s and 8 s forth, 2 B/s and 1 s back; a sender has one message in flight."""
    return pair(FORTH, BACK, sharing=sharing, endpoints="one_in_flight")


# Hand-computed cases: every number is a binary fraction, so all are exact.


@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_sender_waits_for_the_arrival_of_its_message_before_by_hand(sharing):
    """1 s on the wire and 8 s of latency each, all ready at 1 s."""
    result = deliver(strict(sharing=sharing), [Sent(1.0, 4.0)] * 3)

    assert [hop[4:] for (hop,) in result.hops] == [(1, 2, 10), (10, 11, 19), (19, 20, 28)]
    assert deliver(pair(FORTH, BACK), [Sent(1.0, 4.0)] * 3).arrivals_s == [10, 11, 12]


ONE_AND_TWO = [Sent(0.0, 4.0, sender=1), Sent(0.0, 4.0, sender=1), Sent(0.0, 8.0, sender=2)]


@pytest.mark.parametrize(
    ("sharing", "messages", "passed_s"),
    [
        # The second sender's message takes its turn on the wire while the first one's flies.
        ("fifo", ONE_AND_TWO, [(0, 1, 9), (9, 10, 18), (1, 3, 11)]),
        # Both send at 2 B/s; 4 of 8 bytes are left when the small one has left at 2 s.
        ("fair", ONE_AND_TWO, [(0, 2, 10), (10, 11, 19), (0, 3, 11)]),
        # The second sender's message is on the wire beside the first one's.
        ("none", ONE_AND_TWO, [(0, 1, 9), (9, 10, 18), (0, 2, 10)]),
        # One in flight whatever its link: forth at 0-1 s, there at 9 s; then back, 2 s and 1 s.
        ("fifo", [Sent(0.0, 4.0), Sent(0.0, 4.0, route=(1,))], [(0, 1, 9), (9, 11, 12)]),
    ],
)
def test_senders_wait_for_themselves_by_hand(sharing, messages, passed_s):
    result = deliver(strict(sharing=sharing), messages)

    assert [hop[4:] for (hop,) in result.hops] == passed_s


def test_a_sender_waits_until_its_message_has_passed_all_hops_by_hand():
    """8 bytes: 2 s + 8 s, 4 s + 1 s, so one message each 15 s."""
    result = deliver(strict(), [Sent(0.0, 8.0, route=(0, 1))] * 2)

    assert [[hop[4:] for hop in hops] for hops in result.hops] == [
        [(0, 2, 10), (10, 14, 15)],
        [(15, 17, 25), (25, 29, 30)],
    ]


def test_waiting_messages_leave_in_the_order_in_which_they_became_ready():
    """Not in the order of their size, nor of their target."""
    messages = [Sent(0.0, 4.0), Sent(3.0, 8.0), Sent(2.0, 4.0, route=(1,)), Sent(1.0, 0.0)]

    result = deliver(strict(), messages)
    assert [hop.start_s for (hop,) in result.hops] == [0.0, 20.0, 17.0, 9.0]


@given(
    num_messages=st.integers(1, 10), num_bytes=st.floats(0.0, 1e3), overhead_s=st.floats(0.0, 1.0)
)
def test_a_stream_has_one_message_per_trip(num_messages, num_bytes, overhead_s):
    """Where latencies overlap the same stream has one message per time on the wire."""
    messages, found = (
        [Sent(0.0, num_bytes)] * num_messages,
        Corrections(message_overhead_s=overhead_s),
    )
    wire_s = overhead_s + num_bytes / 4.0

    in_turn = deliver(strict(), messages, found).arrivals_s
    overlapped = deliver(pair(FORTH, BACK), messages, found).arrivals_s
    assert in_turn[-1] == pytest.approx(num_messages * (wire_s + 8.0))
    assert overlapped[-1] == pytest.approx(num_messages * wire_s + 8.0)


def test_a_pipeline_with_one_message_in_flight_by_hand():
    """Forward 1 s, backward 2 s, 1f1b, two microbatches; 1 s + 4 s for each message.

    A: F0 0-1, F1 1-2. A->B: F0 1-2, there at 6; F1 6-7, there at 11. B: F0 6-7, B0 7-9, F1 11-12,
    B1 12-14. B->A: B0 9-10, there at 14, while F1 is still in flight; B1 14-15, there at 19.
    A: B0 14-16, B1 19-21. Where flights overlap, F1 is at B at 7 and B1 at A at 17.
    """
    workload = unit_workload([(8, 16), (8, 16)], num_microbatches=2, message_bytes=4.0)
    links = ((4.0, 4.0), (4.0, 4.0))

    result = simulate(pair(*links, endpoints="one_in_flight"), workload, plan(0, 1))
    flights = {(move.kind, move.microbatch): move[4:] for move in result.transfers}
    assert flights == {
        ("F", 0): (1, 2, 6),
        ("F", 1): (6, 7, 11),
        ("B", 0): (9, 10, 14),
        ("B", 1): (14, 15, 19),
    }
    assert result.makespan_s == 21.0
    assert simulate(pair(*links), workload, plan(0, 1)).makespan_s == 19.0


def test_parts_that_different_gpus_send_do_not_wait_for_each_other():
    """With one in flight: from one GPU four parts take four trips, from four GPUs one."""
    one = [Sent(0.0, 4.0)] * 4
    four = [Sent(0.0, 4.0, sender=gpu) for gpu in range(4)]

    assert max(deliver(strict(), one).arrivals_s) == 4 * 9.0
    assert max(deliver(strict(), four).arrivals_s) == 4 * 1.0 + 8.0


@given(
    messages=sent((0,), (1,), (0, 1), (1, 0)),
    transport=transports(window_bytes=st.none()),
    course=courses(),
)
def test_a_sender_never_has_two_messages_in_flight(messages, transport, course):
    rules = replace(transport, endpoints="one_in_flight")
    topology = replace(pair(FORTH, BACK), transport=rules)

    result = deliver(moving(topology, *course), messages)
    for sender in range(3):
        flights = [
            (hops[0].start_s, arrival_s)
            for message, hops, arrival_s in zip(
                messages, result.hops, result.arrivals_s, strict=True
            )
            if message.sender == sender
        ]
        for (_, arrival_s), (start_s, _) in pairwise(sorted(flights)):
            assert start_s >= arrival_s
