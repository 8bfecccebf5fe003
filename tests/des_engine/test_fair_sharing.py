"""Links that all messages on them share equally: hand cases, a fluid oracle, and what FIFO says."""

import dataclasses
import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sending import Delivery, Sent, courses, deliver, moving, pair, sent

from des import Corrections, Movement, Topology, UniformLaw
from des.dynamics.link_course import StarvationError, Weather
from des.engine.fair_wire import equal_part

FORTH, BACK = (4.0, 8.0), (2.0, 1.0)


def fair(**rules: object) -> Topology:
    """4 B/s and 8 s forth, 2 B/s and 1 s back."""
    return pair(FORTH, BACK, sharing="fair", **rules)


def fluid_ends_s(topology: Topology, messages: Sequence[Sent]) -> list[float]:
    """When the last bytes leave, from the bytes that each message has left at every change."""
    transport = topology.transport
    weather = None if topology.movement is None else Weather(topology.movement, topology.links)
    windows = transport.window_bytes and transport.flows_per_pair * transport.window_bytes
    left = {index: message.num_bytes for index, message in enumerate(messages)}
    ends_s = [math.nan] * len(messages)
    now_s = 0.0
    while left:
        until_s, bandwidth, largest = math.inf, {}, {}
        here = [index for index in left if messages[index].ready_s <= now_s]
        for index in here:
            (link,) = messages[index].route
            factors = (1.0, 1.0, math.inf) if weather is None else weather.piece(link, now_s)
            bandwidth[index] = topology.links[link].bandwidth_bytes_per_s * factors[0]
            round_trip_s = topology.round_trips_s[link] * factors[1]
            limit = windows / round_trip_s if windows else math.inf
            largest[index] = min(1.0, limit / bandwidth[index]) if bandwidth[index] else 0.0
            until_s = min(until_s, factors[2])
        rates = {}
        for medium in [{0, 1}] if transport.half_duplex else [{0}, {1}]:
            inside = [index for index in here if set(messages[index].route) <= medium]
            part = level([largest[index] for index in inside])
            rates |= {index: min(part, largest[index]) * bandwidth[index] for index in inside}
        coming_s = [messages[index].ready_s for index in left if index not in rates]
        going_s = [now_s + left[index] / rate for index, rate in rates.items() if rate]
        until_s = min([until_s, *coming_s, *going_s])
        for index, rate in rates.items():
            left[index] -= rate * (until_s - now_s)
            if left[index] < 1e-9 and rate:
                del left[index]
                ends_s[index] = until_s
        now_s = until_s
    return ends_s


def level(largest: Sequence[float]) -> float:
    """Find by bisection where flows that fill up to one level fill a vessel of 1."""
    if sum(largest) <= 1.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(min(middle, x) for x in largest) > 1 else (middle, high)
    return low


def busy_periods(delivery: Delivery) -> list[tuple[float, float]]:
    """Spans in which at least one message is on the wire."""
    spans: list[tuple[float, float]] = []
    for start_s, end_s in sorted((hop.start_s, hop.end_s) for (hop,) in delivery.hops):
        if spans and start_s <= spans[-1][1] + 1e-9:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end_s))
        else:
            spans.append((start_s, end_s))
    return spans


# Hand-computed cases: every number is a binary fraction, so all comparisons are exact.


def test_two_messages_at_once_take_twice_as_long_by_hand():
    """Each gets 2 of 4 B/s; the latency of 8 s follows the last byte."""
    result = deliver(fair(), [Sent(1.0, 8.0), Sent(1.0, 8.0)])

    assert [hop[4:] for (hop,) in result.hops] == [(1.0, 5.0, 13.0)] * 2
    assert (result.links[0].num_messages, result.links[0].num_bytes) == (2, 16.0)
    assert [link.busy_s for link in result.links] == [4.0, 0.0]


def test_a_small_message_leaves_before_a_large_one_by_hand():
    """12 bytes from 0 s: 4 by 1 s, 2 by 2 s beside the small one, 6 by 3.5 s alone again."""
    result = deliver(fair(), [Sent(0.0, 12.0), Sent(1.0, 2.0), Sent(5.0, 4.0)])

    assert [hop[4:] for (hop,) in result.hops] == [(0, 3.5, 11.5), (1, 2, 10), (5, 6, 14)]
    assert result.links[0].busy_s == 4.5


def test_bytes_of_each_message_wait_for_the_end_of_an_outage_by_hand():
    """Two of 8 bytes: 2 each by 1 s, none until 6 s, then 1 B/s each while the link is at half."""
    topology = moving(fair(), (1.0, 0.0, 1.0), (6.0, 0.5, 0.25))

    result = deliver(topology, [Sent(0.0, 8.0), Sent(0.0, 8.0)])
    assert [hop[4:] for (hop,) in result.hops] == [(0, 12, 14)] * 2


def test_a_message_may_overtake_one_before_it_when_the_latency_falls():
    """Unlike on a wire that keeps the order: 1 + 8 s against 2 + 2 s."""
    result = deliver(moving(fair(), (1.5, 1.0, 0.25)), [Sent(0.0, 4.0), Sent(1.0, 4.0)])

    assert result.arrivals_s == [9.0, 4.0]


def test_an_overhead_goes_before_the_bytes_and_does_not_hold_others_up_by_hand():
    """The first sends alone from 1 s to 2 s, then they share; each gets 2 B/s."""
    found = Corrections(message_overhead_s=1.0)

    result = deliver(fair(), [Sent(0.0, 8.0), Sent(1.0, 4.0)], found)
    assert [hop[4:] for (hop,) in result.hops] == [(0, 4, 12), (1, 4, 12)]
    assert result.links[0].busy_s == 4.0


def test_two_directions_share_one_medium_by_hand():
    """Half of the time each: 2 B/s forth and 1 B/s back; then back alone at 2 B/s."""
    messages = [Sent(0.0, 8.0), Sent(0.0, 8.0, route=(1,))]

    half = deliver(fair(half_duplex=True), messages)
    assert [hop[4:] for (hop,) in half.hops] == [(0, 4, 12), (0, 6, 7)]
    full = deliver(fair(), messages)
    assert [hop[4:] for (hop,) in full.hops] == [(0, 2, 10), (0, 4, 5)]


def test_a_direction_that_is_down_leaves_the_medium_to_the_other_by_hand():
    """Back is down until 3 s, so forth has all of it and is done at 2 s."""
    topology = moving(fair(half_duplex=True), (0.0, 0.0, 1.0), (3.0, 1.0, 1.0), link=1)

    result = deliver(topology, [Sent(0.0, 8.0), Sent(0.0, 8.0, route=(1,))])
    assert [hop[4:] for (hop,) in result.hops] == [(0, 2, 10), (0, 7, 8)]


def test_a_window_limits_each_message_by_hand():
    """9 bytes each 8 + 1 s: one message gets 1 of the 4 B/s, eight of them get half a B/s each."""
    topology = fair(window_bytes=9.0)

    assert deliver(topology, [Sent(0.0, 4.0)]).ends_s() == [4.0]
    assert deliver(topology, [Sent(0.0, 4.0)] * 4).ends_s() == [4.0] * 4
    assert deliver(topology, [Sent(0.0, 4.0)] * 8).ends_s() == [8.0] * 8


def test_what_a_window_leaves_goes_to_the_other_direction_by_hand():
    """The round trip keeps forth to 1 of 4 B/s, a quarter of the time, and back to 1 of 2, half."""
    messages = [Sent(0.0, 8.0), Sent(0.0, 6.0, route=(1,))]

    result = deliver(fair(half_duplex=True, window_bytes=9.0), messages)
    assert result.ends_s() == [8.0, 6.0]


def test_two_hops_store_and_forward_by_hand():
    """8 bytes: 2 s + 8 s forth, then 4 s + 1 s back; two at once share both."""
    route = (0, 1)

    result = deliver(fair(), [Sent(0.0, 8.0, route), Sent(0.0, 8.0, route)])
    for hops in result.hops:
        assert [hop[4:] for hop in hops] == [(0, 4, 12), (12, 20, 21)]


def test_a_link_that_is_down_for_ever_is_an_error():
    topology = moving(fair(), (1.0, 0.0, 1.0))

    with pytest.raises(StarvationError, match="link A->B: is down for ever from 1 s on, with 2"):
        deliver(topology, [Sent(0.0, 8.0), Sent(0.5, 8.0)])


def test_an_empty_message_passes_a_busy_link_at_once_but_not_one_that_is_down():
    messages = [Sent(0.0, 12.0), Sent(1.0, 0.0)]

    assert deliver(fair(), messages).ends_s() == [3.0, 1.0]
    down = moving(fair(), (1.0, 0.0, 1.0), (2.0, 1.0, 1.0))
    assert deliver(down, messages).ends_s() == [4.0, 2.0]


# Closed forms and laws.


@given(sizes=st.lists(st.floats(0.0, 100.0), min_size=1, max_size=10))
def test_messages_that_start_together_leave_as_the_closed_form_says(sizes):
    """The k-th smallest leaves when all k have their bytes and the larger ones as many each."""
    result = deliver(fair(), [Sent(1.0, size) for size in sizes])

    ranked = sorted(sizes)
    steps = [larger - smaller for smaller, larger in pairwise([0.0, *ranked])]
    shares = [(len(ranked) - rank) * step / 4.0 for rank, step in enumerate(steps)]
    ends_s = [1.0 + total for total in accumulate(shares)]
    assert sorted(result.ends_s()) == pytest.approx(ends_s, rel=1e-12)
    by_size = sorted(zip(sizes, result.ends_s(), strict=True))
    assert [end_s for _, end_s in by_size] == sorted(result.ends_s())


@given(num_messages=st.integers(1, 12), num_bytes=st.floats(0.0, 1e9))
def test_equal_messages_at_the_same_time_leave_at_the_same_time(num_messages, num_bytes):
    """Exactly, so what follows does not hang on rounding."""
    ends_s = deliver(fair(), [Sent(0.3, num_bytes)] * num_messages).ends_s()

    assert len(set(ends_s)) == 1


@given(
    course=st.none() | courses(),
    messages=sent((0,), (1,)),
    half_duplex=st.booleans(),
    window_bytes=st.none() | st.floats(0.5, 100.0),
)
def test_bytes_flow_as_in_a_fluid(course, messages, half_duplex, window_bytes):
    topology = fair(half_duplex=half_duplex, window_bytes=window_bytes)
    if course is not None:
        topology = moving(topology, *course)

    ends_s = deliver(topology, messages).ends_s()
    assert ends_s == pytest.approx(fluid_ends_s(topology, messages), rel=1e-6, abs=1e-6)


@given(course=st.none() | courses(), messages=sent())
def test_the_link_is_busy_exactly_when_fifo_keeps_it_busy(course, messages):
    """Work is conserved: neither idles while there is a byte to send."""
    shared, queued = fair(), pair(FORTH, BACK)
    if course is not None:
        shared, queued = moving(shared, *course), moving(queued, *course)

    side_by_side, in_turn = deliver(shared, messages), deliver(queued, messages)
    spans = zip(busy_periods(side_by_side), busy_periods(in_turn), strict=True)
    for fair_span, fifo_span in spans:
        assert fair_span == pytest.approx(fifo_span, rel=1e-9, abs=1e-9)
    assert side_by_side.links[0].num_bytes == in_turn.links[0].num_bytes
    assert side_by_side.links[0].busy_s == pytest.approx(in_turn.links[0].busy_s, abs=1e-8)


@given(course=courses(), messages=sent(), overhead_s=st.just(0.0) | st.floats(0.0, 1.0))
def test_a_message_alone_is_treated_as_by_fifo(course, messages, overhead_s):
    """Sharing counts where several messages share a link."""
    found = Corrections(message_overhead_s=overhead_s)
    topology = pair(FORTH, BACK, window_bytes=20.0)
    shared = pair(FORTH, BACK, window_bytes=20.0, sharing="fair")
    for message in messages:
        assert deliver(shared, [message], found) == deliver(topology, [message], found)
        alone, queued = (deliver(moving(one, *course), [message]) for one in (shared, topology))
        assert alone.ends_s() == pytest.approx(queued.ends_s(), rel=1e-12)


@given(messages=sent((0,), (1,)), interval_s=st.floats(0.5, 10.0), half_duplex=st.booleans())
def test_links_that_move_by_nothing_are_steady_to_the_last_bit(messages, interval_s, half_duplex):
    steady = fair(half_duplex=half_duplex, window_bytes=20.0)
    law = UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.0, update_interval_s=interval_s)
    still = dataclasses.replace(steady, movement=Movement(law=law, seed=1))

    assert deliver(still, messages) == deliver(steady, messages)


@given(ready_s=st.floats(0.0, 10.0), num_bytes=st.floats(0.1, 100.0), window_bytes=st.floats(1, 99))
def test_a_message_that_joins_as_another_leaves_does_not_delay_it(ready_s, num_bytes, window_bytes):
    """Not even by rounding: both happen at the very same time."""
    topology, first = fair(window_bytes=window_bytes), Sent(ready_s, num_bytes)
    (end_s,) = deliver(topology, [first]).ends_s()

    assert deliver(topology, [first, Sent(end_s, num_bytes)]).ends_s()[0] == end_s


@given(groups=st.lists(st.tuples(st.integers(1, 5), st.floats(0.0, 1.0)), min_size=1, max_size=5))
def test_equal_parts_fill_the_medium_or_satisfy_everybody(groups):
    part = equal_part(groups)

    used = sum(num * min(part, largest) for num, largest in groups)
    satisfied = all(largest <= part for _, largest in groups)
    assert used <= 1.0 + 1e-12
    assert satisfied or used == pytest.approx(1.0)
