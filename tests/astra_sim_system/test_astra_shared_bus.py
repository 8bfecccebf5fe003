"""The shared bus: hand-computed sequences, the closed form of a lone move, laws of many."""

import struct
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from astra_sim.core.events import EventQueue, Timers
from astra_sim.files.errors import AbortError
from astra_sim.files.system_config import SharedBusConfig
from astra_sim.system.shared_bus import SharedBus

LOG_GP = SharedBusConfig(
    latency_ns=50, overhead_ns=3, gap_ns=100, gap_ns_per_byte=0.0, local_reduction_delay=2
)
"""One crossing of a byte lasts 3 + 50 + 3 = 56 ns."""


def ended_ns(config, moves):
    """When each move ends; a move is (start_ns, from_a, num_bytes, reduces, back)."""
    queue = EventQueue()
    bus = SharedBus(Timers(queue, 0, lambda *line: None), config)
    ended = [[] for _ in moves]

    def begin(number):
        _, from_a, num_bytes, reduces, back = moves[number]
        bus.move(
            from_a=from_a,
            num_bytes=num_bytes,
            reduces=reduces,
            back=back,
            done=lambda argument: ended[argument].append(queue.now),
            argument=number,
        )

    for number, (start_ns, *_) in enumerate(moves):
        if start_ns:
            queue.at(start_ns, begin, number)
        else:
            begin(number)
    queue.run()
    for number, times in enumerate(ended):
        assert len(times) == 1, f"move {number} ended {len(times)} times"
    return [times[0] for times in ended]


def test_what_does_not_fit_32_signed_bits_is_refused():
    assert ended_ns(LOG_GP, [(0, True, 2**31 - 1, False, False)]) > [0]
    with pytest.raises(AbortError, match=r"model-shared-bus: .* 32 signed bits, got 2147483648"):
        ended_ns(LOG_GP, [(0, True, 2**31, False, False)])


@pytest.mark.parametrize(
    ("move", "expected_ns"),
    [
        # A to B crosses the inner bus and then the bus.
        ((0, True, 1, False, False), 56 + 56),
        # B to A crosses the bus and then the inner one.
        ((0, False, 1, False, False), 56 + 56),
        # A reduction at A lies between a crossing of the inner bus there and back, 0 * 2 + 50 ns
        # after which the inner bus is crossed once more,
        ((0, False, 1, True, False), 56 + 2 * 56 + 50 + 56),
        # or there and back, and the bus on top, if the move goes back to B.
        ((0, False, 1, True, True), 56 + 2 * 56 + 50 + 2 * 56 + 56),
        # Back without a reduction: the bus, the inner bus there and back, the bus.
        ((0, False, 1, False, True), 56 + 2 * 56 + 56),
        # B reduces without an inner bus.
        ((0, True, 1, True, False), 56 + 56 + 50),
        ((0, True, 1, True, True), 56 + 56 + 50 + 56 + 56),
        # 999 * 0.0038 = 3.7962 is cut at the end of each crossing of the inner bus; 999 bytes more
        # on the bus cost nothing here, and 1000 bytes reduce in 10 * 2 + 50.
        ((0, False, 1000, True, False), 56 + 2 * 59 + 70 + 59),
    ],
)
def test_a_lone_move_by_hand(move, expected_ns):
    assert ended_ns(LOG_GP, [move]) == [expected_ns]


def test_truncation_comes_after_the_whole_sum():
    """0.5 + 3 + 50 + 3 on the bus, 56.0038 on the inner one; the sender is free at 3, not 3.5."""
    config = SharedBusConfig(latency_ns=50, overhead_ns=3, gap_ns_per_byte=0.5)
    first, second = ended_ns(config, [(0, False, 2, False, False)] * 2)

    assert first == 56 + 56
    assert second == 3 + 56 + 56


def test_only_the_outer_cost_of_a_byte_is_of_single_precision():
    """5 003 421 * 0.0038 is 19012.9998 in double precision, 19013.0001 with 0.0038 rounded."""
    (single,) = struct.unpack("f", struct.pack("f", 0.0038))
    config = SharedBusConfig(latency_ns=50, overhead_ns=3, gap_ns_per_byte=single)

    assert ended_ns(config, [(0, False, 5_003_422, False, False)]) == [56 + 19013 + 56 + 19012]


def test_sends_of_one_end_keep_the_gap_only_from_each_other():
    """The second leaves 100 ns after the first ended at 3 and so arrives at 3 + 100 + 50 + 3."""
    first, second = ended_ns(LOG_GP, [(0, False, 1, False, False)] * 2)

    assert first == 56 + 56
    # The inner bus has rested since 59: 156 - 59 = 97, and 97 + 3 is not yet more than the gap.
    assert second == 156 + 56


def test_an_end_that_waited_longer_than_the_gap_pays_the_overhead_only():
    late_ns = 500
    moves = [(0, False, 1, False, False), (late_ns, False, 1, False, False)]

    assert ended_ns(LOG_GP, moves) == [112, late_ns + 112]


def test_an_end_that_waited_less_than_the_gap_pays_the_rest_of_it():
    """At 40 the sender has rested for 37 of 100 ns: 63 are left, then 50 + 3."""
    moves = [(0, False, 1, False, False), (40, False, 1, False, False)]
    arrival_ns = 40 + 63 + 53

    assert ended_ns(LOG_GP, moves) == [112, arrival_ns + 56]


def test_a_long_burst_gives_way_to_the_partner():
    """Twelve moves leave B before A has one to send at 12; then A's turn comes, once it is free.

    A crossing is 1 + 10 + 1, a send 1 ns. B has sent 12 > 8 in a row at 12, A has received them
    all at 23 and sends; that arrives at 35 and ends B's burst. The other eight follow.
    """
    config = SharedBusConfig(latency_ns=10, overhead_ns=1)
    moves = [(0, False, 1, False, False)] * 20 + [(0, True, 1, False, False)]

    *from_b, from_a = ended_ns(config, moves)

    assert from_a == 35
    assert from_b == [*range(24, 36), *range(35 + 24, 35 + 32)]


def test_a_burst_ends_when_the_partner_sends():
    """As above with twelve moves at A: it sends nine from 23 on, then B's burst is long over.

    The inner bus brings A's moves out until 23, and only then B's in. B, having received the last
    of the nine at 43, sends its other eight; A has them at 62 and sends its last three.
    """
    config = SharedBusConfig(latency_ns=10, overhead_ns=1)
    moves = [(0, False, 1, False, False)] * 20 + [(0, True, 1, False, False)] * 12

    times_ns = ended_ns(config, moves)

    assert times_ns[20:] == [*range(23 + 12, 32 + 12), *range(62 + 12, 65 + 12)]
    assert times_ns[:20] == [*range(23 + 12, 35 + 12), *range(43 + 24, 51 + 24)]


def test_a_burst_goes_on_while_the_partner_has_nothing_to_send():
    config = SharedBusConfig(latency_ns=10, overhead_ns=1)

    assert ended_ns(config, [(0, False, 1, False, False)] * 20) == [*range(24, 44)]


def test_reductions_wait_for_each_other():
    """Each lasts 10 * 100 + 50; the first is held up because the inner bus is still in use.

    A crossing of the inner bus is 59 ns, of which its sender is busy for 6. The moves arrive at A
    at 56 and 59 and set out on the inner bus at 56 and, its end being busy, 62; the other end can
    send back only after the second has come, at 62 + 59.
    """
    config = SharedBusConfig(latency_ns=50, overhead_ns=3, local_reduction_delay=100)
    first, second = ended_ns(config, [(0, False, 1000, True, False)] * 2)

    assert first == 62 + 59 + 59 + 1050 + 59
    assert second == first + 1050


def test_a_transfer_is_rounded_towards_no_time():
    """0 bytes cost a sender -0.5 and -0.0038 ns, so 0; they come in after 4.5 and 4.9962, so 4."""
    config = SharedBusConfig(latency_ns=5, gap_ns_per_byte=0.5)

    assert ended_ns(config, [(1, False, 0, False, False)]) == [9]


def test_a_transfer_of_less_than_no_time_is_refused():
    config = SharedBusConfig(overhead_ns=1, latency_ns=5, gap_ns_per_byte=2.0)

    with pytest.raises(AbortError, match=r"sys\[0\], shared bus: .* got -1.0 for 0 bytes"):
        ended_ns(config, [(0, False, 0, False, False)])


configs = st.builds(
    SharedBusConfig,
    latency_ns=st.integers(0, 60),
    overhead_ns=st.integers(0, 5),
    gap_ns=st.sampled_from([0, 3, 100]),
    gap_ns_per_byte=st.sampled_from([0.0, 0.0038, 0.5]),
    local_reduction_delay=st.integers(0, 3),
)


@st.composite
def programs(draw):
    """Moves that begin within a short while, so that they meet."""
    moves = st.tuples(
        st.integers(1, 300), st.booleans(), st.integers(1, 5000), st.booleans(), st.booleans()
    )
    return draw(st.lists(moves, min_size=1, max_size=40))


def lone_ns(config, from_a, num_bytes, reduces, back):
    """Duration of a move that meets no other."""

    def crossing_ns(ns_per_byte):
        offset_ns = config.overhead_ns + (num_bytes - 1) * ns_per_byte
        return int(offset_ns + config.latency_ns + config.overhead_ns)

    outer_ns, inner_ns = crossing_ns(config.gap_ns_per_byte), crossing_ns(0.0038)
    reduction_ns = num_bytes // 100 * config.local_reduction_delay + 50 if reduces else 0
    stays_ns = {
        (True, False): inner_ns + outer_ns,
        (True, True): inner_ns + 2 * outer_ns + inner_ns,
        (False, False): outer_ns + inner_ns * (3 if reduces else 1),
        (False, True): outer_ns + inner_ns * (4 if reduces else 2) + outer_ns,
    }
    return stays_ns[from_a, back] + reduction_ns


@given(config=configs, move=programs().map(lambda moves: moves[0]))
def test_a_lone_move_follows_the_closed_form(config, move):
    start_ns, *rest = move

    assert ended_ns(config, [move]) == [start_ns + lone_ns(config, *rest)]


FREE_ENDS = SharedBusConfig(gap_ns_per_byte=0.5, local_reduction_delay=0)
"""Without latency and overhead a transfer of one byte takes no time."""

OVERTAKING = [(1, True, 1, False, True), (1, False, 1, False, False), (1, False, 3, False, False)]


@settings(max_examples=examples(200))
@given(config=configs.filter(lambda one: one.latency_ns + one.overhead_ns > 0), moves=programs())
@example(config=replace(FREE_ENDS, latency_ns=1), moves=OVERTAKING)
@example(config=replace(FREE_ENDS, overhead_ns=1), moves=OVERTAKING)
def test_every_move_ends_once_and_never_earlier_than_alone(config, moves):
    """An end receives for longer than the other one sends, so only one of them sends at a time.

    What an end sends later then arrives later, and a transfer is ended by its own timer.
    """
    for (start_ns, *rest), end_ns in zip(moves, ended_ns(config, moves), strict=True):
        assert end_ns >= start_ns + lone_ns(config, *rest)


@settings(max_examples=examples(100))
@given(config=configs | st.just(FREE_ENDS), moves=programs())
@example(config=FREE_ENDS, moves=OVERTAKING)
def test_no_move_ends_earlier_than_the_least_of_them_would_alone(config, moves):
    """Whatever overtakes: the end of a transfer is its own, or that of one that began later."""
    fewest = min(num_bytes for _, _, num_bytes, _, _ in moves)
    for move, end_ns in zip(moves, ended_ns(config, moves), strict=True):
        start_ns, from_a, _, *flags = move
        assert end_ns >= start_ns + lone_ns(config, from_a, fewest, *flags)


def test_a_transfer_is_ended_by_one_that_overtakes_it_by_hand():
    """Three bytes take 1 ns from B to A, and alone they would be there at 2.

    At 1 the byte of the second move arrives at A before B is done sending it, so A sends the first
    move, and B, which sends and receives at once, begins to send the three bytes and then the
    first move's way back. That takes no time, and an arrival is always that of the oldest: the
    three bytes end at 1, the first move with their timer at 2.
    """
    assert ended_ns(FREE_ENDS, OVERTAKING[-1:]) == [2]
    assert ended_ns(FREE_ENDS, OVERTAKING) == [2, 1, 1]


@given(config=configs, moves=programs(), shift_ns=st.integers(1, 10**6))
def test_a_later_start_delays_everything_by_as_much(config, moves, shift_ns):
    later = [(start_ns + shift_ns, *rest) for start_ns, *rest in moves]

    assert ended_ns(config, later) == [time + shift_ns for time in ended_ns(config, moves)]
