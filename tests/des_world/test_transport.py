"""Rules by which messages share links and endpoints: hand cases and laws."""

import dataclasses
import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_strategies import movements
from sending import SHARINGS, Sent, courses, deliver, moving, pair, sent, transports, with_transport
from strategies import cases, corrections, plan, unit_workload, world

from des import Movement, UniformLaw, simulate
from des.dynamics.link_course import StarvationError
from des.world.transport import Transport, goodput_bytes_per_s

FORTH, BACK = (4.0, 8.0), (2.0, 1.0)

# Half duplex.


def test_directions_take_turns_on_one_medium_by_hand():
    """Forth 8 bytes in 2 s, back 8 bytes in 4 s, in the order in which they become ready."""
    messages = [Sent(0.0, 8.0), Sent(1.0, 8.0, route=(1,)), Sent(0.5, 4.0)]

    half = deliver(pair(FORTH, BACK, half_duplex=True), messages)
    assert [hop[4:] for (hop,) in half.hops] == [(0, 2, 10), (3, 7, 8), (2, 3, 11)]
    assert [link.busy_s for link in half.links] == [3.0, 4.0]
    full = deliver(pair(FORTH, BACK), messages)
    assert [hop[4:] for (hop,) in full.hops] == [(0, 2, 10), (1, 5, 6), (2, 3, 11)]


def test_only_the_two_directions_of_a_pair_share_a_medium():
    """Three links out of A, one back into it: 2 s each."""
    topology = with_transport(
        world("ABC", dict.fromkeys(("AB", "AC", "BA", "BC"), (4.0, 0.0))), half_duplex=True
    )

    result = deliver(topology, [Sent(0.0, 8.0, route=(link,)) for link in range(4)])
    assert result.arrivals_s == [2.0, 2.0, 4.0, 2.0]


@given(messages=sent((0,), (1,)), course=courses())
def test_no_message_leaves_earlier_where_directions_share_a_medium(messages, course):
    half = moving(pair(FORTH, BACK, half_duplex=True), *course)
    full = moving(pair(FORTH, BACK), *course)

    in_turn = deliver(half, messages)
    for end_s, alone_s in zip(in_turn.ends_s(), deliver(full, messages).ends_s(), strict=True):
        assert end_s >= alone_s * (1 - 1e-12)
    spans = sorted((hop.start_s, hop.end_s) for (hop,) in in_turn.hops)
    for (_, end_s), (start_s, _) in pairwise(spans):
        assert start_s >= end_s


# The TCP limit, and messages that are split.


def test_goodput_by_hand():
    """5 Gbit/s and a round trip of 80 ms hold 50 MB."""
    assert goodput_bytes_per_s(625e6, 0.08, None) == 625e6
    assert goodput_bytes_per_s(625e6, 0.08, 25e6) == 312.5e6
    assert goodput_bytes_per_s(625e6, 0.08, 50e6) == 625e6
    assert goodput_bytes_per_s(625e6, 0.08, 1e9) == 625e6
    assert goodput_bytes_per_s(625e6, 0.0, 1.0) == 625e6
    assert goodput_bytes_per_s(0.0, 0.08, 25e6) == 0.0


@pytest.mark.parametrize(
    ("figures", "field"),
    [
        ((-1.0, 1.0, 1.0), "capacity_bytes_per_s"),
        ((1.0, math.nan, 1.0), "round_trip_s"),
        ((1.0, 1.0, 0.0), "window_bytes"),
    ],
)
def test_goodput_refuses_wrong_figures(figures, field):
    with pytest.raises(ValueError, match=f"goodput: {field} must be"):
        goodput_bytes_per_s(*figures)


@given(
    capacity=st.floats(0.0, 1e10),
    round_trip_s=st.floats(0.0, 1.0),
    window_bytes=st.floats(1.0, 1e9),
    num_flows=st.integers(1, 64),
)
def test_goodput_is_the_lesser_of_link_and_windows(capacity, round_trip_s, window_bytes, num_flows):
    goodput = goodput_bytes_per_s(capacity, round_trip_s, num_flows * window_bytes)

    limit = num_flows * (window_bytes / round_trip_s) if round_trip_s else math.inf
    assert goodput == pytest.approx(min(capacity, limit))
    assert goodput <= capacity


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@given(num_parts=st.integers(1, 8), num_bytes=st.floats(0.0, 1e3))
def test_the_last_part_of_a_split_message_arrives_when_the_whole_would(
    sharing, num_parts, num_bytes
):
    """The parts share the link, so without a limit of its own each pair only takes its share."""
    topology = pair(FORTH, BACK, sharing=sharing)
    parts = [Sent(1.0, num_bytes / num_parts, sender=pair) for pair in range(num_parts)]

    whole_s = deliver(topology, [Sent(1.0, num_bytes)]).arrivals_s[-1]
    assert max(deliver(topology, parts).arrivals_s) == pytest.approx(whole_s)


@given(num_pairs=st.integers(1, 8), num_bytes=st.floats(0.0, 1e3))
def test_a_message_over_endpoint_pairs_is_like_parts_with_a_window_each(num_pairs, num_bytes):
    """Side by side, as the parts are; 9 bytes each 9 s are 1 B/s for a pair."""
    split = pair(FORTH, BACK, sharing="fair", window_bytes=9.0)
    parts = [Sent(0.0, num_bytes / num_pairs)] * num_pairs
    last_s = max(deliver(split, parts).arrivals_s)

    for sharing in SHARINGS:
        rules = {"window_bytes": 9.0, "num_endpoint_pairs": num_pairs, "sharing": sharing}
        whole = pair(FORTH, BACK, **rules)
        assert deliver(whole, [Sent(0.0, num_bytes)]).arrivals_s == [pytest.approx(last_s)]
    assert last_s == pytest.approx(8.0 + num_bytes / min(4.0, num_pairs))


# Laws of all rules together.


@given(
    case=cases(),
    schedule=st.sampled_from(["gpipe", "1f1b"]),
    transport=transports(),
    movement=st.none() | movements(),
    found=corrections(),
)
def test_the_same_inputs_give_the_same_result_and_every_byte_arrives(
    case, schedule, transport, movement, found
):
    """Whatever the rules, each link carries the same messages."""
    topology, workload, chosen = case
    chosen = dataclasses.replace(chosen, schedule=schedule)
    plain = dataclasses.replace(topology, movement=movement)
    ruled = dataclasses.replace(plain, transport=transport)

    result = simulate(ruled, workload, chosen, found)
    assert simulate(ruled, workload, chosen, found) == result
    carried = [
        Counter(move[:4] for move in one.transfers)
        for one in (result, simulate(plain, workload, chosen, found))
    ]
    assert carried[0] == carried[1]
    for index, link in enumerate(result.links):
        moves = [move for move in result.transfers if move.link == index]
        assert link.num_messages == len(moves)
        assert link.num_bytes == pytest.approx(workload.message_bytes * len(moves))
        if transport.sharing == "none":
            assert link.busy_s == pytest.approx(sum(move.end_s - move.start_s for move in moves))
        else:
            assert link.busy_s <= result.makespan_s * (1 + 1e-12)


@given(messages=sent((0,), (1,), (0, 1)), transport=transports(), interval_s=st.floats(0.5, 10.0))
def test_links_that_move_by_nothing_are_steady_to_the_last_bit(messages, transport, interval_s):
    law = UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.0, update_interval_s=interval_s)
    steady = dataclasses.replace(pair(FORTH, BACK), transport=transport)
    still = dataclasses.replace(steady, movement=Movement(law=law, seed=0))

    assert deliver(still, messages) == deliver(steady, messages)


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("endpoints", ["overlapped", "one_in_flight"])
def test_an_outage_that_never_ends_is_reported(sharing, endpoints):
    """From 5 s on no gradient comes back; the run says so, and does not wait for ever."""
    topology = pair((4.0, 1.0), (4.0, 1.0), sharing=sharing, endpoints=endpoints)
    workload = unit_workload([(8, 8), (8, 8)], num_microbatches=3, message_bytes=4.0)

    with pytest.raises(StarvationError, match="link B->A: is down for ever from"):
        simulate(moving(topology, (5.0, 0.0, 1.0), link=1), workload, plan(0, 1))


def test_the_round_trip_is_there_and_back_by_hand():
    """0 s there and 1 s back: both ways a window of 1 byte makes 1 byte/s; 2 s without a way back.

    Where nothing leads back, the way back is as long as the way there.
    """
    rules = Transport(window_bytes=1.0)
    both = dataclasses.replace(
        world("AB", {"AB": (100.0, 0.0), "BA": (100.0, 1.0)}), transport=rules
    )
    one_way = dataclasses.replace(world("AB", {"AB": (100.0, 1.0)}), transport=rules)

    assert [both.round_trips_s[link] for link in (0, 1)] == [1.0, 1.0]
    assert one_way.round_trips_s[0] == 2.0
    forth, back = deliver(both, [Sent(0.0, 3.0, route=(0,)), Sent(0.0, 3.0, route=(1,))]).arrivals_s
    assert (forth, back) == (3.0, 4.0)
