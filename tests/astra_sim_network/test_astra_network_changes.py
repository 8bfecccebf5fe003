"""Bandwidths of the ASTRA-sim engine's networks that change."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from astra_messages import (
    Sent,
    change,
    deliver,
    message_lists,
    nearby,
    network,
    one_dimensional_networks,
)
from hypothesis import given
from hypothesis import strategies as st

from astra_sim.network.bandwidth import rate_profile, slowest

BACKENDS = pytest.mark.parametrize("backend", ["unaware", "aware"])

changes_of_rate = st.lists(
    st.tuples(st.integers(0, 10**5), st.floats(0.01, 1000)).map(tuple), max_size=6
)


@BACKENDS
@pytest.mark.parametrize(
    ("changes", "arrival_ns"),
    [
        ([change(400, 0.5)], 1700),  # 400 bytes, then 600 at half the rate
        ([change(400, 2.0)], 800),
        ([change(400, 0.5), change(600, 4.0)], 825),  # 400 + 100, then 500 at 4 bytes/ns
        ([change(0, 0.5)], 2100),
        ([change(1000, 0.001)], 1100),  # the last byte is out as the change comes
        ([change(999, 0.001)], 2099),
        ([change(400, 0.1), change(400, 0.5)], 1700),  # the last of one time counts
        ([change(400, 0.5, (0, 1)), change(400, 2.0)], 800),
        ([change(400, 2.0), change(400, 0.5, (0, 1))], 1700),
        ([change(400, 0.5, (1, 0)), change(0, 9.0, dimension=1)], 1100),
    ],
)
def test_a_message_under_way_takes_the_new_rate(backend, changes, arrival_ns):
    """1000 bytes at 1 byte/ns and 100 ns of latency."""
    line = replace(nearby(2), latency_ns=100.0)
    config = network(line, nearby(2), changes=sorted(changes, key=lambda each: each.time_ns))

    arrivals = deliver(config, [Sent(0, 0, 1, 1000)], backend=backend, multi_dimensional=True)

    assert arrivals.times_ns == (arrival_ns,)


def test_what_waits_for_a_link_meets_the_rate_of_its_own_start():
    """The first is out at 400 + 600 / 0.5 = 1600; the second has sent 700 bytes until 3000."""
    config = network(nearby(2), changes=[change(400, 0.5), change(3000, 3.0)])

    arrivals = deliver(config, [Sent(0, 0, 1, 1000)] * 2, backend="aware")

    assert arrivals.times_ns == (1600, 3100)


@pytest.mark.parametrize(("backend", "arrival_ns"), [("unaware", 2000), ("aware", 3000)])
@pytest.mark.parametrize(
    ("topology", "link"), [("Ring", (1, 2)), ("Switch", (0, 5)), ("Switch", (5, 2))]
)
def test_one_slow_link_on_the_way(backend, arrival_ns, topology, link):
    """Two hops, one of half the rate: unaware the slowest counts once, aware each for itself."""
    config = network(nearby(5, topology), changes=[change(0, 0.5, link)])

    assert deliver(config, [Sent(0, 0, 2, 1000)], backend=backend).times_ns == (arrival_ns,)


@BACKENDS
def test_a_change_inside_holds_in_every_domain(backend):
    config = network(nearby(2), nearby(2), changes=[change(0, 0.5, (0, 1))])
    messages = [Sent(0, 0, 1, 1000), Sent(0, 2, 3, 1000), Sent(0, 3, 2, 1000), Sent(0, 0, 2, 1000)]

    arrivals = deliver(config, messages, backend=backend, multi_dimensional=True)

    assert arrivals.times_ns == (2000, 2000, 1000, 1000)


@BACKENDS
@given(config=one_dimensional_networks(), chosen=st.data())
def test_changes_that_change_nothing_leave_every_bit(backend, config, chosen):
    """The same bandwidth again, or any other after all has arrived."""
    (only,) = config.dimensions
    messages = chosen.draw(message_lists(config.num_npus))
    plain = deliver(config, messages, backend=backend)
    same = [
        replace(change(time_ns, 1.0), bandwidth_gb_per_s=only.bandwidth_gb_per_s)
        for time_ns in sorted(chosen.draw(st.lists(st.integers(0, 10**5), max_size=4)))
    ]
    over_ns = max([*plain.times_ns, *(each.time_ns for each in same)]) + 1
    later = change(over_ns, chosen.draw(st.floats(0.01, 1000)))

    changed = network(only, changes=[*same, later])

    assert deliver(changed, messages, backend=backend) == plain


@given(
    first=st.floats(0.01, 1000),
    times=st.lists(st.integers(0, 10**5)),
    later=st.floats(0.01, 1000),
    start_ns=st.integers(0, 10**5),
    num_bytes=st.integers(1, 10**9),
)
def test_without_a_change_within_the_time_is_bytes_over_rate(
    first, times, later, start_ns, num_bytes
):
    """The very float, if the same rate is given again, and the last byte is out by a change."""
    over_ns = max([start_ns + math.ceil(num_bytes / first), *times])
    changes = [*((time_ns, first) for time_ns in times if time_ns < over_ns), (over_ns, later)]

    assert rate_profile(first, changes).transmission_ns(start_ns, num_bytes) == num_bytes / first


@given(
    first=st.floats(0.01, 1000),
    changes=changes_of_rate,
    start_ns=st.integers(0, 10**5),
    num_bytes=st.integers(1, 10**8),
)
def test_the_integral_of_the_rate_is_the_bytes(first, changes, start_ns, num_bytes):
    """Against exact arithmetic over all changes, one nanosecond-exact piece after another."""
    steps = [(0, first), *sorted(dict(changes).items())]
    remaining, spent_ns = Fraction(num_bytes), None
    for (begin_ns, rate), (end_ns, _) in zip(steps, [*steps[1:], (10**30, 0)], strict=True):
        room_ns = end_ns - max(begin_ns, start_ns)
        if spent_ns is None and room_ns > 0:
            if remaining <= Fraction(rate) * room_ns:
                spent_ns = max(begin_ns, start_ns) - start_ns + remaining / Fraction(rate)
            else:
                remaining -= Fraction(rate) * room_ns
    assert spent_ns is not None

    taken_ns = rate_profile(first, changes).transmission_ns(start_ns, num_bytes)

    assert taken_ns == pytest.approx(float(spent_ns), rel=1e-9, abs=1e-6)


@given(
    profiles=st.lists(st.builds(rate_profile, st.floats(0.01, 9), changes_of_rate), min_size=1),
    times=st.lists(st.integers(0, 2 * 10**5), min_size=1),
)
def test_the_slowest_is_the_least_at_every_time(profiles, times):
    least = slowest(profiles)

    for time_ns in times:
        assert least.at(time_ns) == min(profile.at(time_ns) for profile in profiles)


def carried_bytes(changes: Sequence[tuple[int, float]], start_ns: int, end_ns: int) -> float:
    """Integral of a rate of 1 byte/ns that changes."""
    steps = [(0, 1.0), *sorted(dict(changes).items()), (max(end_ns, 10**6), 1.0)]
    return sum(
        rate * max(0, min(end_ns, following[0]) - max(start_ns, begin_ns))
        for (begin_ns, rate), following in pairwise(steps)
    )


@given(changes=changes_of_rate, chosen=st.data())
def test_a_changing_link_carries_no_more_than_its_integral(changes, chosen):
    """Truncation lets each message end less than 1 ns early, at the highest rate at most."""
    config = network(
        nearby(2), changes=[change(*each) for each in sorted(changes, key=lambda step: step[0])]
    )
    one_way = [message for message in chosen.draw(message_lists(2)) if message.source == 0]
    arrivals = deliver(config, one_way, backend="aware").times_ns

    for last in arrivals:
        ended = [message for message, end in zip(one_way, arrivals, strict=True) if end <= last]
        room = carried_bytes(changes, min(message.start_ns for message in ended), last)
        slack = len(ended) * max([1.0, *(rate for _, rate in changes)])
        assert sum(message.num_bytes for message in ended) <= (room + slack) * (1 + 1e-9)


@given(changes=changes_of_rate, starts=st.lists(st.integers(0, 10**5), min_size=2, max_size=9))
def test_equal_unaware_messages_keep_their_order_but_for_rounding(changes, starts):
    config = network(
        nearby(2), changes=[change(*each) for each in sorted(changes, key=lambda step: step[0])]
    )
    messages = [Sent(start_ns, 0, 1, 10**5) for start_ns in sorted(starts)]

    times_ns = deliver(config, messages, backend="unaware").times_ns

    assert all(later >= earlier - 1 for earlier, later in pairwise(times_ns))
