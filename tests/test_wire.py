"""One direction of a link: first come, first served, in order, over a bandwidth that may move."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import corrections, links, movements

from des import NO_CORRECTIONS, Corrections, Dynamics, Link, Movement
from des.costs import Weather, serialisation_end_s
from des.wire import Wire

LINK = Link(source="A", target="B", bandwidth_bytes_per_s=4.0, latency_s=8.0)
MOVEMENT = Movement(
    law=Dynamics(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=2.0), seed=1
)
LINK_INDEX = 2  # not the first of the three links that move in these tests


def moving_wire(link: Link, movement: Movement = MOVEMENT) -> Wire:
    """The last wire of a moving network of three links."""
    return Wire(LINK_INDEX, link, NO_CORRECTIONS, Weather(movement, 3))


def bandwidth_factor(segment: int) -> float:
    """What that wire's bandwidth is multiplied by in a segment."""
    return float(MOVEMENT.factors(segment, 3)[0][LINK_INDEX])


def latency_factor(segment: int) -> float:
    """What that wire's latency is multiplied by in a segment."""
    return float(MOVEMENT.factors(segment, 3)[1][LINK_INDEX])


def test_bytes_queue_and_latencies_overlap_by_hand():
    """8 bytes take 2 s at 4 B/s, then fly for 8 s; the wire already serves the next."""
    wire = Wire(0, LINK, NO_CORRECTIONS, None)

    assert wire.carry(1.0, 8.0) == (1.0, 3.0, 11.0)
    assert wire.carry(2.0, 8.0) == (3.0, 5.0, 13.0)  # waits for the wire, not for the arrival
    assert wire.carry(6.0, 4.0) == (6.0, 7.0, 15.0)
    assert (wire.num_messages, wire.num_bytes, wire.busy_s) == (3, 20.0, 5.0)


def test_an_empty_message_takes_the_latency_alone():
    assert Wire(0, LINK, NO_CORRECTIONS, None).carry(1.0, 0.0) == (1.0, 1.0, 9.0)


def test_corrections_by_hand():
    """8 bytes at 4 x 0.5 B/s = 4 s after 1 s of overhead; 8 x 0.25 = 2 s of latency."""
    found = Corrections(
        wan_bandwidth_factor=0.5,
        wan_latency_factor=0.25,
        message_overhead_s=1.0,
        compute_time_factor=9.0,
    )
    wire = Wire(0, LINK, found, None)

    assert wire.carry(1.0, 8.0) == (1.0, 6.0, 8.0)
    assert wire.carry(1.0, 8.0) == (6.0, 11.0, 13.0)  # the overhead holds the wire as well
    assert wire.busy_s == 10.0


def test_a_transfer_within_a_segment_has_its_bandwidth():
    """Segment 1 rules from 2 s to 4 s; the latency is that of the last byte."""
    start_s, end_s, arrival_s = moving_wire(LINK).carry(2.0, 1.0)

    assert start_s == 2.0
    assert end_s == 2.0 + 1.0 / (4.0 * bandwidth_factor(1))
    assert end_s < 4.0
    assert arrival_s == end_s + 8.0 * latency_factor(1)


def test_a_transfer_across_two_borders_by_hand():
    """From 1 s: 1 s in segment 0, all 2 s of segment 1, then 3 bytes in segment 2."""
    rates = [4.0 * bandwidth_factor(segment) for segment in range(3)]
    num_bytes = 1.0 * rates[0] + 2.0 * rates[1] + 3.0

    start_s, end_s, arrival_s = moving_wire(LINK).carry(1.0, num_bytes)
    assert start_s == 1.0
    assert end_s == pytest.approx(4.0 + 3.0 / rates[2], rel=1e-12)
    assert 4.0 < end_s < 6.0
    assert arrival_s == pytest.approx(end_s + 8.0 * latency_factor(2), rel=1e-12)


def test_an_overhead_shifts_the_bytes_into_the_segment_that_then_rules():
    wire = Wire(LINK_INDEX, LINK, Corrections(message_overhead_s=2.0), Weather(MOVEMENT, 3))

    start_s, end_s, _ = wire.carry(0.5, 1.0)
    assert start_s == 0.5
    assert end_s == 2.5 + 1.0 / (4.0 * bandwidth_factor(1))


def test_no_message_overtakes_one_before_it():
    """Where latency falls at a border, the later message waits for the earlier one's arrival."""
    segments = range(40)
    falls = [s for s in segments if latency_factor(s) > latency_factor(s + 1) + 0.3]
    assert falls
    for segment in falls:
        wire = moving_wire(LINK)
        border_s = 2.0 * (segment + 1)
        first = wire.carry(border_s - 0.1, 0.0)
        second = wire.carry(border_s, 0.0)
        assert first[2] == pytest.approx(border_s - 0.1 + 8.0 * latency_factor(segment))
        assert second[2] == first[2] > border_s + 8.0 * latency_factor(segment + 1)


def test_a_border_belongs_to_the_segment_it_opens():
    law = Dynamics(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=0.1)
    weather = Weather(Movement(law=law, seed=0), 1)

    for segment in range(10_000):  # 0.1 is no binary fraction, so borders are rounded
        border_s = segment * 0.1
        assert weather.segment_at(border_s) == segment


@given(time_s=st.floats(0.0, 1e6), interval_s=st.floats(0.001, 100.0))
def test_every_time_lies_in_its_segment(time_s, interval_s):
    law = Dynamics(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=interval_s)

    segment = Weather(Movement(law=law, seed=0), 1).segment_at(time_s)
    assert segment * interval_s <= time_s < (segment + 1) * interval_s


@given(
    start_s=st.floats(0.0, 100.0),
    num_bytes=st.floats(0.0, 1e3),
    share=st.floats(0.0, 1.0),
    movement=movements(),
)
def test_a_transfer_in_two_parts_takes_as_long_as_in_one(start_s, num_bytes, share, movement):
    """The sum over segments is exact wherever it is cut."""
    weather = Weather(movement, 1)
    middle_s = serialisation_end_s(start_s, share * num_bytes, 10.0, weather=weather)

    in_two = serialisation_end_s(middle_s, (1 - share) * num_bytes, 10.0, weather=weather)
    in_one = serialisation_end_s(start_s, num_bytes, 10.0, weather=weather)
    assert in_two == pytest.approx(in_one, rel=1e-9)


@given(
    start_s=st.floats(0.0, 100.0), num_bytes=st.floats(0.0, 1e3), interval_s=st.floats(0.1, 10.0)
)
def test_a_bandwidth_that_moves_by_nothing_is_steady_to_the_last_bit(
    start_s, num_bytes, interval_s
):
    law = Dynamics(bandwidth_fluctuation=0.0, latency_jitter=0.0, update_interval_s=interval_s)
    weather = Weather(Movement(law=law, seed=0), 1)

    moving = serialisation_end_s(start_s, num_bytes, 10.0, weather=weather)
    assert moving == serialisation_end_s(start_s, num_bytes, 10.0)


@given(
    link=links("A", "B"),
    found=corrections(),
    movement=st.none() | movements(),
    gaps_s=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=15),
    num_bytes=st.floats(0.0, 1e8),
)
def test_messages_are_served_in_order_and_the_wire_never_twice(
    link, found, movement, gaps_s, num_bytes
):
    wire = Wire(0, link, found, None if movement is None else Weather(movement, 1))
    ready_s = free_s = last_arrival_s = 0.0
    for gap_s in gaps_s:
        ready_s += gap_s
        start_s, end_s, arrival_s = wire.carry(ready_s, num_bytes)
        assert start_s == max(ready_s, free_s)
        assert end_s >= start_s + found.message_overhead_s
        assert arrival_s >= max(end_s, last_arrival_s)
        free_s, last_arrival_s = end_s, arrival_s
    assert wire.num_messages == len(gaps_s)
    assert wire.num_bytes == pytest.approx(num_bytes * len(gaps_s))
    assert wire.busy_s <= free_s * (1 + 1e-12)
