"""One direction of a link: first come, first served, in order, over a bandwidth that may move."""

import pytest
from drawn_figures import links
from hypothesis import given
from hypothesis import strategies as st
from law_strategies import movements
from sending import Steps
from strategies import corrections

from des import NO_CORRECTIONS, Corrections, Link, Movement, UniformLaw
from des.dynamics.link_course import StarvationError, Weather
from des.engine.conditions import Conditions
from des.engine.wire import Turn, Wire
from des.world.transport import PLAIN, Transport

LINK = Link(source="A", target="B", bandwidth_bytes_per_s=4.0, latency_s=8.0)
MOVEMENT = Movement(
    law=UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=2.0), seed=1
)
LINK_INDEX = 2  # not the first of the three links that move in these tests
PATH = MOVEMENT.law.path([LINK] * 3, MOVEMENT.seed)


def wire_of(
    link: Link = LINK,
    movement: Movement | None = None,
    *,
    found: Corrections = NO_CORRECTIONS,
    transport: Transport = PLAIN,
) -> Wire:
    """The last wire of a network of three links, moving or not."""
    weather = None if movement is None else Weather(movement, [link] * 3)
    conditions = Conditions(
        LINK_INDEX, link, transport, found, weather, round_trip_s=2 * link.latency_s
    )
    return Wire(conditions, Turn())


def bandwidth_factor(segment: int) -> float:
    """What that wire's bandwidth is multiplied by in a segment."""
    return PATH.piece_at(LINK_INDEX, 2.0 * segment).bandwidth_factor


def latency_factor(segment: int) -> float:
    """What that wire's latency is multiplied by in a segment."""
    return PATH.piece_at(LINK_INDEX, 2.0 * segment).latency_factor


def test_bytes_queue_and_latencies_overlap_by_hand():
    """8 bytes take 2 s at 4 B/s, then fly for 8 s; the wire already serves the next."""
    wire = wire_of()

    assert wire.carry(1.0, 8.0) == (1.0, 3.0, 11.0)
    assert wire.carry(2.0, 8.0) == (3.0, 5.0, 13.0)  # waits for the wire, not for the arrival
    assert wire.carry(6.0, 4.0) == (6.0, 7.0, 15.0)
    assert (wire.num_messages, wire.num_bytes, wire.busy_s) == (3, 20.0, 5.0)


def test_an_empty_message_takes_the_latency_alone():
    assert wire_of().carry(1.0, 0.0) == (1.0, 1.0, 9.0)


def test_corrections_by_hand():
    """8 bytes at 4 x 0.5 B/s = 4 s after 1 s of overhead; 8 x 0.25 = 2 s of latency."""
    found = Corrections(
        wan_bandwidth_factor=0.5,
        wan_latency_factor=0.25,
        message_overhead_s=1.0,
        compute_time_factor=9.0,
    )
    wire = wire_of(found=found)

    assert wire.carry(1.0, 8.0) == (1.0, 6.0, 8.0)
    assert wire.carry(1.0, 8.0) == (6.0, 11.0, 13.0)  # the overhead holds the wire as well
    assert wire.busy_s == 10.0


def test_two_directions_with_one_turn_wait_for_each_other_by_hand():
    """8 bytes take 2 s forth at 4 B/s and 4 s back at 2 B/s; each direction has its own order."""
    turn = Turn()
    slow = Link(source="B", target="A", bandwidth_bytes_per_s=2.0, latency_s=1.0)
    forth, back = (
        Wire(Conditions(index, link, PLAIN, NO_CORRECTIONS, None, round_trip_s=9.0), turn)
        for index, link in enumerate((LINK, slow))
    )

    assert forth.carry(1.0, 8.0) == (1.0, 3.0, 11.0)
    assert back.carry(1.0, 8.0) == (3.0, 7.0, 8.0)
    assert forth.carry(2.0, 4.0) == (7.0, 8.0, 16.0)
    assert (forth.busy_s, back.busy_s) == (3.0, 4.0)


def test_without_a_turn_no_message_waits_by_hand():
    """8 bytes take 2 s and 8 s of latency whatever went before; calls come in any order."""
    wire = Wire(Conditions(0, LINK, PLAIN, NO_CORRECTIONS, None, round_trip_s=9.0), None)

    assert wire.carry(1.0, 8.0) == (1.0, 3.0, 11.0)
    assert wire.carry(2.0, 4.0) == (2.0, 3.0, 11.0)
    assert wire.carry(0.0, 8.0) == (0.0, 2.0, 10.0)
    assert (wire.num_messages, wire.num_bytes, wire.busy_s) == (3, 20.0, 5.0)


@given(times_s=st.lists(st.floats(0.0, 100.0), min_size=1, max_size=20), movement=movements())
def test_conditions_are_the_same_in_whatever_order_they_are_asked_for(times_s, movement):
    def asked(order):
        weather = Weather(movement, [LINK] * 3)
        found = Conditions(LINK_INDEX, LINK, PLAIN, NO_CORRECTIONS, weather, round_trip_s=9.0)
        return {time_s: found.at(time_s) for time_s in order}

    assert asked(times_s) == asked(sorted(times_s)) == asked(sorted(times_s, reverse=True))


def test_a_window_limits_the_rate_by_hand():
    """A window of 16 bytes at a round trip of 16 s: 1 B/s on a link of 4 B/s; 5 of them fill it."""
    assert wire_of(transport=Transport(window_bytes=16.0)).carry(1.0, 8.0) == (1.0, 9.0, 17.0)
    full = Transport(window_bytes=16.0, flows_per_pair=5)
    assert wire_of(transport=full).carry(1.0, 8.0) == (1.0, 3.0, 11.0)


def test_a_window_follows_the_latency_by_hand():
    """1 B/s while the round trip takes 16 s; from 3 s on it takes 8 s, so 2 B/s.

    From 1 s: 2 bytes by 3 s, the other 6 by 6 s, then 4 s of latency.
    """
    movement = Movement(law=Steps(steps=((0.0, 1.0, 1.0), (3.0, 1.0, 0.5))), seed=0)
    wire = wire_of(LINK, movement, transport=Transport(window_bytes=16.0))

    assert wire.carry(1.0, 8.0) == (1.0, 6.0, 10.0)


def test_bytes_wait_for_the_end_of_an_outage_by_hand():
    """4 B/s: 4 of 8 bytes leave before the outage from 2 s to 7 s, the others after it."""
    steps = ((0.0, 1.0, 1.0), (2.0, 0.0, 1.0), (7.0, 1.0, 1.0))
    wire = wire_of(LINK, Movement(law=Steps(steps=steps), seed=0))

    assert wire.carry(1.0, 8.0) == (1.0, 8.0, 16.0)
    assert wire.busy_s == 7.0


def test_a_wire_that_is_down_for_ever_is_an_error():
    movement = Movement(law=Steps(steps=((0.0, 1.0, 1.0), (2.0, 0.0, 1.0))), seed=0)

    with pytest.raises(StarvationError, match="link A->B: is down for ever from 2 s on, with 4"):
        wire_of(LINK, movement).carry(1.0, 8.0)


def test_a_transfer_within_a_segment_has_its_bandwidth():
    """Segment 1 rules from 2 s to 4 s; the latency is that of the last byte."""
    start_s, end_s, arrival_s = wire_of(LINK, MOVEMENT).carry(2.0, 1.0)

    assert start_s == 2.0
    assert end_s == 2.0 + 1.0 / (4.0 * bandwidth_factor(1))
    assert end_s < 4.0
    assert arrival_s == end_s + 8.0 * latency_factor(1)


def test_a_transfer_across_two_borders_by_hand():
    """From 1 s: 1 s in segment 0, all 2 s of segment 1, then 3 bytes in segment 2."""
    rates = [4.0 * bandwidth_factor(segment) for segment in range(3)]
    num_bytes = 1.0 * rates[0] + 2.0 * rates[1] + 3.0

    start_s, end_s, arrival_s = wire_of(LINK, MOVEMENT).carry(1.0, num_bytes)
    assert start_s == 1.0
    assert end_s == pytest.approx(4.0 + 3.0 / rates[2], rel=1e-12)
    assert 4.0 < end_s < 6.0
    assert arrival_s == pytest.approx(end_s + 8.0 * latency_factor(2), rel=1e-12)


def test_an_overhead_shifts_the_bytes_into_the_segment_that_then_rules():
    wire = wire_of(LINK, MOVEMENT, found=Corrections(message_overhead_s=2.0))

    start_s, end_s, _ = wire.carry(0.5, 1.0)
    assert start_s == 0.5
    assert end_s == 2.5 + 1.0 / (4.0 * bandwidth_factor(1))


def test_no_message_overtakes_one_before_it():
    """Where latency falls at a border, the later message waits for the earlier one's arrival."""
    segments = range(40)
    falls = [s for s in segments if latency_factor(s) > latency_factor(s + 1) + 0.3]
    assert falls
    for segment in falls:
        wire = wire_of(LINK, MOVEMENT)
        border_s = 2.0 * (segment + 1)
        first = wire.carry(border_s - 0.1, 0.0)
        second = wire.carry(border_s, 0.0)
        assert first[2] == pytest.approx(border_s - 0.1 + 8.0 * latency_factor(segment))
        assert second[2] == first[2] > border_s + 8.0 * latency_factor(segment + 1)


@given(
    ready_s=st.floats(0.0, 100.0),
    num_bytes=st.floats(0.0, 200.0),
    interval_s=st.floats(0.1, 10.0),
    window_bytes=st.none() | st.floats(32.0, 1e3),
)
def test_a_link_that_moves_by_nothing_is_steady_to_the_last_bit(
    ready_s, num_bytes, interval_s, window_bytes
):
    law = UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.0, update_interval_s=interval_s)
    transport = Transport(window_bytes=window_bytes)

    moving = wire_of(LINK, Movement(law=law, seed=0), transport=transport)
    assert moving.carry(ready_s, num_bytes) == wire_of(transport=transport).carry(
        ready_s, num_bytes
    )


@given(
    link=links("A", "B"),
    found=corrections(),
    movement=st.none() | movements(),
    window_bytes=st.none() | st.floats(1e7, 1e9),
    messages=st.lists(st.tuples(st.floats(0.0, 2.0), st.floats(0.0, 1e8)), min_size=1, max_size=15),
)
def test_messages_are_served_in_order_and_the_wire_never_twice(
    link, found, movement, window_bytes, messages
):
    wire = wire_of(link, movement, found=found, transport=Transport(window_bytes=window_bytes))
    ready_s = free_s = last_arrival_s = 0.0
    for gap_s, num_bytes in messages:
        ready_s += gap_s
        start_s, end_s, arrival_s = wire.carry(ready_s, num_bytes)
        assert start_s == max(ready_s, free_s)
        assert end_s >= start_s + found.message_overhead_s
        assert arrival_s >= max(end_s, last_arrival_s)
        free_s, last_arrival_s = end_s, arrival_s
    assert wire.num_messages == len(messages)
    assert wire.num_bytes == pytest.approx(sum(num_bytes for _, num_bytes in messages))
    assert wire.busy_s <= free_s * (1 + 1e-12)
