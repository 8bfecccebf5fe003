"""The congestion-aware network of the ASTRA-sim engine, of one dimension."""

import math
from itertools import groupby

import pytest
from astra_messages import (
    Sent,
    deliver,
    dimension,
    message_lists,
    network,
    one_dimensional_networks,
)
from hypothesis import given
from hypothesis import strategies as st

from astra_sim.core.events import EventQueue
from astra_sim.files.errors import AbortError, AstraSimUsageError
from astra_sim.files.network_config import Dimension
from astra_sim.network import make_network

MIB = 2**20
BYTES_PER_NS = 0.25 * 2**30 / 10**9


def links_of(only: Dimension, message: Sent) -> list[tuple[int, int]]:
    """Links that a message crosses, written down again from the definition of the patterns."""
    source, target, size = message.source, message.target, only.num_npus
    if only.topology == "Switch":
        return [(source, size), (size, target)]
    if only.topology == "FullyConnected":
        return [(source, target)]
    up = (target - source) % size
    if up <= size - up:
        return [((source + hop) % size, (source + hop + 1) % size) for hop in range(up)]
    return [((source - hop) % size, (source - hop - 1) % size) for hop in range(size - up)]


@pytest.mark.parametrize(
    ("topology", "times_ns"),
    [
        ("FullyConnected", (33_906_250, 33_906_250, 33_906_250)),
        ("Ring", (33_906_250, 67_812_500, 33_906_250)),
        ("Switch", (67_812_500, 71_718_749, 75_624_998)),
    ],
)
def test_three_senders_meet_where_their_links_do(topology, times_ns):
    """A hop of 1 MiB takes 30 ms + 3906250 ns.

    On the ring of 4 only the message from 2 has two hops, 2 -> 3 -> 0; the one from 3 has left the
    last link when it comes. The switch sends the second when the first has released the link down,
    which rounding makes 1 ns early: 3906249.99... is truncated.
    """
    messages = [Sent(0, source, 0, MIB) for source in (1, 2, 3)]

    assert deliver(network(dimension(topology)), messages, backend="aware").times_ns == times_ns


def test_a_busy_link_is_left_in_the_order_of_coming():
    """The link is free again after the bytes alone; latency is not waited for."""
    messages = [Sent(0, 0, 1, MIB), Sent(10, 0, 1, 1), Sent(5, 0, 1, MIB)]
    wire_ns = math.floor(MIB / BYTES_PER_NS)

    arrivals = deliver(network(dimension()), messages, backend="aware")

    assert arrivals.times_ns == (33_906_250, 30_000_003 + 2 * wire_ns, 33_906_250 + wire_ns)
    assert arrivals.order == (0, 2, 1)


def test_the_two_directions_of_a_link_do_not_meet():
    messages = [Sent(0, 0, 1, MIB), Sent(0, 1, 0, MIB)]

    for topology in ("FullyConnected", "Ring"):
        arrivals = deliver(network(dimension(topology)), messages, backend="aware")
        assert arrivals.times_ns == (33_906_250, 33_906_250)


def test_the_opposite_side_of_a_ring_is_reached_upwards():
    """0 -> 2 of a ring of 4 goes by 1, so it holds up what 1 sends later and 3 shares no link."""
    messages = [Sent(0, 0, 2, MIB), Sent(33_000_000, 1, 2, 100 * MIB), Sent(10**9, 0, 3, MIB)]

    arrivals = deliver(network(dimension("Ring")), messages, backend="aware")

    busy_until_ns = 33_000_000 + math.floor(100 * MIB / BYTES_PER_NS)
    assert arrivals.times_ns[0] == busy_until_ns + 33_906_250
    assert arrivals.times_ns[2] == 10**9 + 33_906_250


def test_every_hop_is_truncated_for_itself():
    """Each of two hops takes floor(0.5 + 1000 / 1.073741824) = 931 ns."""
    config = network(dimension("Switch", 4, bandwidth_gb_per_s=1.0, latency_ns=0.5))

    assert deliver(config, [Sent(7, 0, 1, 1000)], backend="aware").times_ns == (7 + 2 * 931,)


def test_an_arrival_comes_before_the_release_of_its_link():
    """With no latency both are due at one time; what the receiver sends on starts first.

    So it also arrives before the message that waited for the link, although both arrive at once.
    """
    queue = EventQueue()
    config = network(dimension(bandwidth_gb_per_s=1.0, latency_ns=0.0))
    carrier = make_network(config, queue, backend="aware")
    came: list[tuple[str, int]] = []

    def note(name: str) -> None:
        came.append((name, queue.now))
        if name == "first":
            carrier.send(1, 2, 1000, (note, "answer"))

    carrier.send(0, 1, 1000, (note, "first"))
    carrier.send(0, 1, 1000, (note, "waiting"))
    queue.run()

    assert came == [("first", 931), ("answer", 1862), ("waiting", 1862)]


def test_a_message_to_itself_goes_up_and_down_a_switch():
    messages = [Sent(0, 2, 2, MIB), Sent(0, 2, 1, MIB)]

    arrivals = deliver(network(dimension("Switch")), messages, backend="aware")

    assert arrivals.times_ns == (67_812_500, 67_812_500 + 3_906_249)


@pytest.mark.parametrize(
    ("topologies", "ends", "message"),
    [
        (("Ring", "FullyConnected"), (2, 2), "source and target must differ, got NPU 2 twice"),
        (("Ring", "FullyConnected", "Switch"), (1, 4), r"NPU must be within \[0, 4\), got 4"),
    ],
)
def test_messages_that_lead_nowhere_abort(topologies, ends, message):
    for topology in topologies:
        with pytest.raises(AbortError, match=message):
            deliver(network(dimension(topology)), [Sent(0, *ends, MIB)], backend="aware")


@pytest.mark.parametrize(
    ("dimensions", "backend", "error", "message"),
    [
        (
            [dimension("Ring", 2)],
            "aware",
            AbortError,
            "dimension 0: an aware Ring must have at least 3",
        ),
        (
            [dimension(), dimension()],
            "aware",
            AstraSimUsageError,
            r"one dimension unless --multi-dimensional .* got 2",
        ),
        (
            [dimension()],
            "detailed",
            AstraSimUsageError,
            "backend: must be one of unaware, aware; got 'detailed'",
        ),
    ],
)
def test_networks_that_there_are_not_are_refused_before_any_message(
    dimensions, backend, error, message
):
    with pytest.raises(error, match=message):
        make_network(network(*dimensions), EventQueue(), backend=backend)


@given(config=one_dimensional_networks(), chosen=st.data())
def test_a_lone_message_takes_its_hops_one_after_another(config, chosen):
    (only,) = config.dimensions
    message = chosen.draw(message_lists(config.num_npus))[0]
    hop_ns = math.floor(only.latency_ns + message.num_bytes / only.bytes_per_ns)

    (arrival_ns,) = deliver(config, [message], backend="aware").times_ns

    assert arrival_ns == message.start_ns + len(links_of(only, message)) * hop_ns


@given(chosen=st.data(), latency_ns=st.floats(0, 1e6), bandwidth_gb_per_s=st.floats(0.01, 1000))
def test_direct_links_follow_the_recursion_of_a_queue(chosen, latency_ns, bandwidth_gb_per_s):
    """On each ordered pair a message starts at ``max(posted, end of the one before)``."""
    only = dimension("FullyConnected", 3, bandwidth_gb_per_s, latency_ns)
    messages = sorted(chosen.draw(message_lists(3)))
    expected = {}
    by_link = sorted(range(len(messages)), key=lambda index: messages[index][1:3])
    for _, queued in groupby(by_link, key=lambda index: messages[index][1:3]):
        free_ns = 0
        for index in queued:
            wire_ns = messages[index].num_bytes / only.bytes_per_ns
            start_ns = max(messages[index].start_ns, free_ns)
            expected[index] = start_ns + math.floor(latency_ns + wire_ns)
            free_ns = start_ns + math.floor(wire_ns)

    arrivals = deliver(network(only), messages, backend="aware")

    assert dict(enumerate(arrivals.times_ns)) == expected


@given(config=one_dimensional_networks(), chosen=st.data())
def test_no_link_carries_more_than_its_rate(config, chosen):
    """All that crosses a link fits between the first posting and the last arrival.

    Truncation lets a message end less than 1 ns early.
    """
    (only,) = config.dimensions
    messages = chosen.draw(message_lists(config.num_npus))
    arrivals = deliver(config, messages, backend="aware").times_ns
    crossed: dict[tuple[int, int], list[int]] = {}
    for index, message in enumerate(messages):
        for link in links_of(only, message):
            crossed.setdefault(link, []).append(index)

    for users in crossed.values():
        span_ns = max(arrivals[i] for i in users) - min(messages[i].start_ns for i in users)
        num_bytes = sum(messages[i].num_bytes for i in users)
        room_ns = span_ns - only.latency_ns + len(users)
        assert num_bytes <= room_ns * only.bytes_per_ns * (1 + 1e-12)


@given(config=one_dimensional_networks(), chosen=st.data())
def test_queues_never_make_a_message_come_sooner(config, chosen):
    """Never before the unaware network's time, if latencies are whole and bytes take 1 ns.

    Without that, truncation at each of several hops may save more than the bytes of a hop cost:
    two hops of 0.5 ns and 0.4 ns of bytes are 0 ns here and 1 ns there.
    """
    messages = chosen.draw(message_lists(config.num_npus))

    aware = deliver(config, messages, backend="aware").times_ns
    unaware = deliver(config, messages, backend="unaware").times_ns

    assert all(slow >= fast for slow, fast in zip(aware, unaware, strict=True))
