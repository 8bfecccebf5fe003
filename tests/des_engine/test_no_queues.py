"""Transport without queues: every message has the links to itself, by hand and by laws."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sending import Sent, courses, deliver, moving, pair, sent, transports, with_transport
from strategies import corrections, plan, unit_workload, world

from des import NO_CORRECTIONS, simulate
from des.costs.message_times import quickest_message_s

FORTH, BACK = (4.0, 8.0), (2.0, 1.0)


def test_every_message_has_the_link_to_itself_by_hand():
    """8 bytes are on the wire from 0 to 2 s and arrive at 10; 4 bytes from 0.5 overtake them.

    The link is busy for 2 + 1 + 2 s, in 2.5 s.
    """
    messages = [Sent(0.0, 8.0), Sent(0.5, 4.0), Sent(0.5, 8.0), Sent(0.0, 8.0, route=(1,))]

    result = deliver(pair(FORTH, BACK, sharing="none"), messages)
    assert [hop[4:] for (hop,) in result.hops] == [
        (0, 2, 10),
        (0.5, 1.5, 9.5),
        (0.5, 2.5, 10.5),
        (0, 4, 5),
    ]
    assert [link.busy_s for link in result.links] == [5.0, 4.0]
    assert [link.num_bytes for link in result.links] == [20.0, 8.0]


def test_without_queues_links_still_move_by_hand():
    """4 B/s, half of it from 1 s to 3 s; 8 s of latency, none from 3 s on.

    From 0 s: 4 bytes by 1 s, 4 by 3 s, 4 by 4 s, there at once. From 0.5 s: 2 by 1 s, 2 by 2 s,
    then 8 s of latency: sent later, gone before, there after the first.
    """
    topology = moving(pair(FORTH, BACK, sharing="none"), (1.0, 0.5, 1.0), (3.0, 1.0, 0.0), link=0)

    result = deliver(topology, [Sent(0.0, 12.0), Sent(0.5, 4.0)])
    assert [hop[4:] for (hop,) in result.hops] == [(0, 4, 4), (0.5, 2, 10)]


@given(
    messages=sent((0,), (1,), (0, 1)),
    transport=transports(sharings=("none",), window_bytes=st.none() | st.floats(1.0, 50.0)),
    course=courses(),
    found=corrections(),
)
def test_without_queues_every_message_is_as_if_alone(messages, transport, course, found):
    """To the last bit, whatever the conditions are and in any order of the calls."""
    topology = moving(dataclasses.replace(pair(FORTH, BACK), transport=transport), *course)
    plain = dataclasses.replace(transport, sharing="fifo", endpoints="overlapped")
    in_turn = dataclasses.replace(topology, transport=plain)

    together = deliver(topology, messages, found)
    for position, message in enumerate(messages):
        first = together.hops[position][0]
        start_s = message.ready_s
        if transport.endpoints == "one_in_flight":
            start_s = first.start_s  # its sender may have had another one in flight
        alone = deliver(in_turn, [message._replace(ready_s=start_s)], found)
        assert together.arrivals_s[position] == alone.arrivals_s[0]
        hops = [hop[4:] for hop in together.hops[position]]
        assert hops == [hop[4:] for hop in alone.hops[0]]
    for index, link in enumerate(together.links):
        spans_s = [
            hop.end_s - hop.start_s for hops in together.hops for hop in hops if hop.link == index
        ]
        assert link.busy_s == pytest.approx(sum(spans_s))


@given(messages=sent((0,), (1,), (0, 1)), course=courses())
def test_queues_make_no_message_leave_earlier(messages, course):
    """On its first link, where it is ready at the same time either way."""
    alone = deliver(moving(pair(FORTH, BACK, sharing="none"), *course), messages)
    in_turn = deliver(moving(pair(FORTH, BACK), *course), messages)

    for own, queued in zip(alone.hops, in_turn.hops, strict=True):
        assert own[0].end_s <= queued[0].end_s * (1 + 1e-12)


def test_a_pipeline_without_queues_by_hand():
    """Forward 1 s, backward 2 s, gpipe, two microbatches; 8 bytes take 2 s + 1 s, both ways.

    A: F0 0-1, F1 1-2. B: F0 4-5, F1 5-6, as both messages are on the wire from 2 s to 3 s; B0 6-8,
    B1 8-10. A: B0 11-13, B1 13-15. In turn F1 is at B at 6: B ends at 11 and A at 16.
    """
    workload = unit_workload([(8, 16), (8, 16)], num_microbatches=2, message_bytes=8.0)
    links = ((4.0, 1.0), (4.0, 1.0))

    result = simulate(pair(*links, sharing="none"), workload, plan(0, 1, schedule="gpipe"))
    flights = {(move.kind, move.microbatch): move[4:] for move in result.transfers}
    assert flights == {
        ("F", 0): (1, 3, 4),
        ("F", 1): (2, 4, 5),
        ("B", 0): (8, 10, 11),
        ("B", 1): (10, 12, 13),
    }
    assert result.makespan_s == 15.0
    in_turn = simulate(pair(*links), workload, plan(0, 1, schedule="gpipe"))
    assert in_turn.makespan_s == 16.0


def test_a_link_may_be_busy_for_longer_than_the_iteration_takes():
    """Eight messages of 4 s each, all on the wire at once: 32 s, in an iteration of less."""
    workload = unit_workload([(0.008, 0.008)] * 2, num_microbatches=8, message_bytes=16.0)

    result = simulate(
        pair((4.0, 0.0), (4.0, 0.0), sharing="none"), workload, plan(0, 1, schedule="gpipe")
    )
    assert [link.busy_s for link in result.links] == [pytest.approx(32.0)] * 2
    assert result.makespan_s < 10.0


@pytest.mark.parametrize(("sharing", "slowest_s"), [("fifo", 4.0), ("fair", 4.0), ("none", 0.0)])
def test_messages_without_queues_keep_no_wire_from_others(sharing, slowest_s):
    """8 bytes: 2 s + 8 s and 4 s + 1 s; the second wire is the slower one."""
    ends = {"AB": FORTH, "BC": BACK}
    topology = with_transport(world("ABC", ends), sharing=sharing)

    assert quickest_message_s(topology, 0, 2, 8.0, NO_CORRECTIONS) == (15.0, slowest_s)
