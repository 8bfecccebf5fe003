"""Conditions on a link as time passes, and bytes that leave under them."""

import dataclasses
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import link_state, movements
from strategies import plan, unit_workload, world

from des import Link, Movement, UniformLaw, simulate
from des.dynamics import LinkSeries, MarkovModulated, Replay
from des.dynamics.link_course import StarvationError, Weather, moving_serialisation_end_s

LINKS = [
    Link(source=source, target=target, bandwidth_bytes_per_s=4.0, latency_s=8.0)
    for source, target in ("AB", "BA", "BC")
]
MOVEMENT = Movement(
    law=UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=2.0), seed=1
)
DOWN_FOR_EVER = MarkovModulated(
    states=(link_state("up", 50.0, down=1.0), link_state("down", math.inf, 0.0)),
    starts_in="up",
)


def steps(*pieces):
    """Rates by time: pairs of (until, rate), the last of which holds for ever."""

    def rate_at(time_s):
        return next((rate, until_s) for until_s, rate in pieces if time_s < until_s)

    return rate_at


# Bytes under a rate that changes.


def test_a_constant_rate_by_hand():
    assert moving_serialisation_end_s(2.0, 5e8, steps((math.inf, 1e9))) == 2.5


def test_bytes_across_two_borders_by_hand():
    """From 1 s: 1 s at 4, all 2 s at 2, then 3 bytes at 6."""
    rate_at = steps((2.0, 4.0), (4.0, 2.0), (math.inf, 6.0))

    assert moving_serialisation_end_s(1.0, 4.0 + 4.0 + 3.0, rate_at) == 4.5


def test_an_outage_stalls_the_bytes_and_then_they_go_on():
    """4 bytes before the outage from 2 s to 7 s, the other 4 after it."""
    rate_at = steps((2.0, 4.0), (5.0, 0.0), (7.0, 0.0), (math.inf, 2.0))

    assert moving_serialisation_end_s(1.0, 8.0, rate_at) == 9.0
    assert moving_serialisation_end_s(1.0, 4.0, rate_at) == 2.0  # just before it
    assert moving_serialisation_end_s(2.0, 4.0, rate_at) == 9.0  # begun in it
    assert (
        moving_serialisation_end_s(6.0, 0.0, rate_at) == 7.0
    )  # not even an empty message gets through


@pytest.mark.parametrize("start_s", [1.0, 2.0, 6.0])
def test_an_outage_that_never_ends_starves_the_bytes(start_s):
    rate_at = steps((2.0, 4.0), (5.0, 0.0), (math.inf, 0.0))

    left = 6 if start_s == 1.0 else 10
    message = f"link A->B: is down for ever from {max(start_s, 2.0):g} s on, with {left} bytes"
    with pytest.raises(StarvationError, match=re.escape(message)):
        moving_serialisation_end_s(start_s, 10.0, rate_at, owner="link A->B")


def test_what_is_sent_before_an_endless_outage_is_sent():
    assert moving_serialisation_end_s(1.0, 4.0, steps((2.0, 4.0), (math.inf, 0.0))) == 2.0


def test_a_byte_that_only_rounding_keeps_does_not_wait_for_the_outage_to_end():
    """0.7 s + 19.88 / 2.8 s is a bit more than 7.8 s, though 2.8 times 7.1 s is all of 19.88."""
    rate_at = steps((7.8, 2.8), (99.0, 0.0), (math.inf, 1.0))

    assert 0.7 + 19.88 / 2.8 > 7.8
    assert moving_serialisation_end_s(0.7, 19.88, rate_at) == 7.8


@given(
    start_s=st.floats(0.0, 100.0), num_bytes=st.floats(0.0, 1e3), interval_s=st.floats(0.1, 10.0)
)
def test_borders_between_equal_rates_are_none_to_the_last_bit(start_s, num_bytes, interval_s):
    def rate_at(time_s):
        return 10.0, (math.floor(time_s / interval_s) + 2) * interval_s

    constant = moving_serialisation_end_s(start_s, num_bytes, steps((math.inf, 10.0)))
    assert moving_serialisation_end_s(start_s, num_bytes, rate_at) == constant


@settings(deadline=None)
@given(
    start_s=st.floats(0.0, 100.0),
    num_bytes=st.floats(1.0, 1e3),
    share=st.floats(0.0, 1.0),
    movement=movements(outages=False),
)
def test_bytes_in_two_parts_take_as_long_as_in_one(start_s, num_bytes, share, movement):
    """The sum over pieces is exact wherever it is cut."""
    weather = Weather(movement, LINKS)

    def rate_at(time_s):
        factor, _, until_s = weather.piece(1, time_s)
        return 10.0 * factor, until_s

    middle_s = moving_serialisation_end_s(start_s, share * num_bytes, rate_at)
    in_two = moving_serialisation_end_s(middle_s, (1 - share) * num_bytes, rate_at)
    assert in_two == pytest.approx(
        moving_serialisation_end_s(start_s, num_bytes, rate_at), rel=1e-9
    )


@settings(deadline=None)
@given(start_s=st.floats(0.0, 100.0), num_bytes=st.floats(0.0, 1e3), movement=movements())
def test_as_many_bytes_leave_as_the_rates_allow(start_s, num_bytes, movement):
    """Adding up rate times length piece by piece gives the bytes again; outages give none."""
    weather = Weather(movement, LINKS)

    def rate_at(time_s):
        factor, _, until_s = weather.piece(2, time_s)
        return 10.0 * factor, until_s

    end_s = moving_serialisation_end_s(start_s, num_bytes, rate_at)
    carried, time_s = 0.0, start_s
    while time_s < end_s:
        rate, until_s = rate_at(time_s)
        carried += rate * (min(until_s, end_s) - time_s)
        time_s = until_s
    assert carried == pytest.approx(num_bytes, rel=1e-9, abs=1e-9)


# What rules when.


@settings(deadline=None)
@given(movement=movements(), time_s=st.floats(0.0, 1e4), link=st.integers(0, 2))
def test_pieces_follow_each_other_without_gap_or_end(movement, time_s, link):
    """Each rules until a later time, at which the next begins."""
    weather = Weather(movement, LINKS)
    for _ in range(20):
        *factors, until_s = weather.piece(link, time_s)
        assert until_s > time_s
        if until_s == math.inf:
            break
        last_s = math.nextafter(until_s, 0.0)
        assert Weather(movement, LINKS).piece(link, last_s) == (*factors, until_s)
        time_s = until_s


@settings(deadline=None)
@given(
    movement=movements(),
    questions=st.lists(st.tuples(st.integers(0, 2), st.floats(0.0, 500.0)), min_size=2),
)
def test_answers_do_not_depend_on_what_was_asked_before(movement, questions):
    weather = Weather(movement, LINKS)

    in_turn = [weather.piece(*question) for question in questions]
    assert in_turn == [Weather(movement, LINKS).piece(*question) for question in questions]
    assert in_turn[::-1] == [weather.piece(*question) for question in questions[::-1]]


@settings(deadline=None)
@given(movement=movements(), link=st.integers(0, 2), draw=st.data())
def test_a_later_start_meets_the_same_path_later(movement, link, draw):
    """In whole seconds, which are added without rounding."""
    later_s, time_s = draw.draw(st.integers(0, 2000)), draw.draw(st.integers(0, 200))
    from_0, from_later = (
        Weather(Movement(law=movement.law, seed=movement.seed, start_s=start_s), LINKS)
        for start_s in (0.0, later_s)
    )

    *factors, until_s = from_0.piece(link, float(later_s + time_s))
    *factors_later, until_later_s = from_later.piece(link, float(time_s))
    assert factors_later == factors
    assert until_later_s == pytest.approx(until_s - later_s, abs=1e-9)


def test_a_border_belongs_to_the_piece_it_opens():
    """0.1 is no binary fraction, so borders are rounded."""
    law = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=0.1)
    weather = Weather(Movement(law=law, seed=0), LINKS)

    for segment in range(10_000):
        assert weather.piece(0, segment * 0.1)[2] == (segment + 1) * 0.1


def test_a_border_that_rounding_moves_still_opens_the_next_piece():
    """Segment 38 begins at 38 x 0.1 s, which is a bit later than the start plus the difference."""
    law = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=0.1)
    start_s = 1.7520339801861209
    border_s = 38 * 0.1 - start_s
    assert start_s + border_s < 38 * 0.1

    weather = Weather(Movement(law=law, seed=0, start_s=start_s), LINKS)
    assert weather.piece(0, border_s) == (
        *law.path(LINKS, 0).piece_at(0, 38 * 0.1)[2:],
        39 * 0.1 - start_s,
    )


def test_links_have_factors_of_their_own():
    weather = Weather(MOVEMENT, LINKS)

    assert len({weather.piece(link, 3.0)[:2] for link in range(3)}) == 3


# In a simulation. A computes 1 s, 8 bytes go to B, which computes 1 s + 1 s, and back again.

BOTH_WAYS = world("AB", {"AB": (4.0, 8.0), "BA": (8.0, 1.0)})
JOB = unit_workload([(1.0, 1.0), (1.0, 1.0)], num_microbatches=1, message_bytes=8.0)


def under(law, *, start_s=0.0, seed=0):
    """Simulate the job on links that follow a law."""
    moving = Movement(law=law, seed=seed, start_s=start_s)
    return simulate(dataclasses.replace(BOTH_WAYS, movement=moving), JOB, plan(0, 1))


def replay(*rows, holds_last=True):
    """A trace of A->B: (time, bandwidth, latency); B->A stays as it is."""
    times_s, bandwidths, latencies_s = zip(*rows, strict=True)
    back = [(8.0,) * len(rows), (1.0,) * len(rows)]
    return Replay(
        name="trace.csv",
        series=tuple(
            LinkSeries(
                source=ends[0],
                target=ends[1],
                times_s=times_s,
                bandwidths_bytes_per_s=bandwidth,
                latencies_s=latency,
            )
            for ends, (bandwidth, latency) in {"AB": (bandwidths, latencies_s), "BA": back}.items()
        ),
        holds_last=holds_last,
    )


def test_an_outage_in_a_run_by_hand():
    """4 bytes leave 1-2, nothing until 10, 4 bytes 10-11; the latency is that of the last byte.

    B: F 13-14, B 14-15; its message takes 1 s and flies 1 s; A: B 17-18.
    """
    law = replay((0.0, 4.0, 8.0), (2.0, 0.0, 8.0), (10.0, 4.0, 2.0))

    result = under(law)
    assert result.transfers[0][-3:] == (1.0, 11.0, 13.0)
    assert result.makespan_s == 18.0


def test_a_run_that_starts_later_meets_the_outage_earlier():
    """From 1 s of the trace on, all bytes wait from 1 s to 9 s and leave 9-11."""
    law = replay((0.0, 4.0, 8.0), (2.0, 0.0, 8.0), (10.0, 4.0, 2.0))

    assert under(law, start_s=1.0).transfers[0][-3:] == (1.0, 11.0, 13.0)
    assert under(law, start_s=10.0).transfers[0][-3:] == (1.0, 3.0, 5.0)


def test_a_run_over_an_endless_outage_reports_starvation():
    law = replay((0.0, 4.0, 8.0), (2.0, 0.0, 8.0))

    message = "link A->B: is down for ever from 2 s on, with 4 bytes to send"
    with pytest.raises(StarvationError, match=message):
        under(law)
    with pytest.raises(StarvationError, match="is down for ever from"):
        under(DOWN_FOR_EVER, start_s=1e6)


def test_a_run_that_outlasts_its_trace_says_so():
    rows = ((0.0, 4.0, 8.0), (5.0, 4.0, 8.0))

    message = r"trace.csv: link B->A: trace must cover the run, got figures until 5 s where 13 s"
    with pytest.raises(ValueError, match=message):
        under(replay(*rows, holds_last=False))
    assert under(replay(*rows)).makespan_s == simulate(BOTH_WAYS, JOB, plan(0, 1)).makespan_s
