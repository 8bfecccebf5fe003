"""A move against its cost: hand-computed cases, monotony, and smoothing of measured figures."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.replanning.figure_estimates import UNMEASURED_SPREAD, FigureEstimate
from agents.replanning.move_cost import MoveCost
from agents.replanning.stay_or_move import PayoffRule, Stakes, chance_of_paying, weigh_move

DAY = 86_400.0


def cost(total_s):
    return MoveCost(num_bytes=0.0, links_s=0.0, restart_s=total_s)


def test_a_gain_of_a_hundredth_pays_in_a_day_and_not_in_an_hour():
    """1 % of 24 h is 864 s, more than the 600 s of the move; 1 % of 1 h is 36 s."""
    stakes = Stakes(present_s=100.0, step_s=99.0, cost=cost(600.0))

    assert weigh_move(PayoffRule(horizon_s=DAY), stakes).moves
    found = weigh_move(PayoffRule(horizon_s=3600.0), stakes)
    assert (found.moves, found.why) == (
        False,
        "saves 1.0 %, 36.0 s in 60.0 min, which is less than the 10.0 min of the move",
    )


def test_a_spread_of_the_measurements_stops_a_move_that_is_not_sure():
    """Of drawn ratios 0.98 and 1.00 one pays for the move, the other saves nothing."""
    stakes = Stakes(present_s=100.0, step_s=99.0, cost=cost(60.0), ratios=(0.98, 1.0))

    assert not weigh_move(PayoffRule(confidence=0.6), stakes).moves
    assert weigh_move(PayoffRule(confidence=0.5), stakes).moves


def test_an_advantage_that_may_fade_before_it_has_paid_is_taken_once_it_has_lasted():
    """600 s that save a fifth pay after 3,000 s. One in 3,000 s fades: (6,000 / 9,000)^2 = 0.44.

    With 1,200 s lost it has lasted for 6,000 s: (12,000 / 15,000)^2 = 0.64.
    """
    moves = {
        lost_s: weigh_move(
            PayoffRule(confidence=0.6),
            Stakes(
                present_s=100.0,
                step_s=80.0,
                cost=cost(600.0),
                fades_per_s=1.0 / 3000.0,
                lost_s=lost_s,
            ),
        )
        for lost_s in (0.0, 1200.0)
    }

    assert not moves[0.0].moves
    assert "pays after 50.0 min, which it does with a chance of 0.44, below 0.6" in moves[0.0].why
    assert moves[1200.0].moves


def test_sites_that_go_must_last_for_the_move_there_and_back():
    """A move of 600 s that saves a quarter pays after 2,400 s, there and back after 4,800 s."""
    asked = []

    def lasts(length_s):
        asked.append(length_s)
        return 0.35

    stakes = Stakes(present_s=4.0, step_s=3.0, cost=cost(600.0), lasts=lasts)
    assert chance_of_paying(PayoffRule(), stakes, 600.0) == 0.35
    assert asked == [4800.0]
    fading = replace(stakes, fades_per_s=1.0 / 1200.0)  # (2400 / 4800)^2 of it
    assert chance_of_paying(PayoffRule(), fading, 600.0) == pytest.approx(0.25 * 0.35)
    assert not weigh_move(PayoffRule(), stakes).moves
    assert weigh_move(PayoffRule(confidence=0.3), stakes).moves


def test_a_move_over_links_that_are_not_there_is_none():
    assert not weigh_move(PayoffRule(), Stakes(present_s=2.0, step_s=1.0, cost=None)).moves


@given(
    ratio=st.floats(0.5, 1.5),
    cost_s=st.floats(0.0, 1e5),
    horizon_s=st.floats(1.0, 1e6),
    drawn=st.lists(st.floats(0.5, 1.5), max_size=4),
    fades=st.floats(0.0, 1.0),
)
def test_no_move_is_made_whose_gain_does_not_pay(ratio, cost_s, horizon_s, drawn, fades):
    rule = PayoffRule(horizon_s=horizon_s)
    stakes = Stakes(
        present_s=7.0,
        step_s=ratio * 7.0,
        cost=cost(cost_s),
        fades_per_s=fades,
        ratios=tuple(drawn),
    )
    if weigh_move(rule, stakes).moves:
        assert horizon_s * stakes.saved_share > cost_s * (1.0 - 1e-9)
        assert weigh_move(PayoffRule(horizon_s=2.0 * horizon_s), stakes).moves
        assert weigh_move(rule, replace(stakes, fades_per_s=fades / 2.0)).moves
        assert weigh_move(rule, replace(stakes, lost_s=1.0)).moves


@given(values=st.lists(st.floats(1e3, 1e9), min_size=1, max_size=20), factor=st.floats(0.1, 10.0))
def test_a_smoothed_figure_lies_among_its_measurements_and_scales_with_them(values, factor):
    one, other = FigureEstimate.first(0.0, values[0]), FigureEstimate.first(0.0, factor * values[0])
    for number, value in enumerate(values[1:], start=1):
        one = one.after(60.0 * number, value, 300.0)
        other = other.after(60.0 * number, factor * value, 300.0)

    assert min(values) * (1 - 1e-9) <= one.value <= max(values) * (1 + 1e-9)
    assert other.value == pytest.approx(factor * one.value)
    assert other.log_error == pytest.approx(one.log_error)


def test_equal_measurements_leave_an_error_that_falls_to_that_of_a_mean():
    """With share a of the newest, weights a (1 - a)^k have squares that add up to a / (2 - a)."""
    share = 1.0 - math.exp(-0.2)
    known = FigureEstimate.first(0.0, 5.0)
    for number in range(1, 200):
        known = known.after(60.0 * number, 5.0, 300.0)

    assert known.value == pytest.approx(5.0)
    assert known.sum_of_squares == pytest.approx(share / (2.0 - share))
    assert known.log_variance == pytest.approx(share * UNMEASURED_SPREAD**2)


def test_a_figure_jumps_with_two_measurements_far_off_on_one_side():
    known = FigureEstimate.first(0.0, 100.0)
    once = known.after(60.0, 30.0, 300.0)
    twice = once.after(120.0, 40.0, 300.0)

    assert (once.value, once.held_back) == (pytest.approx(100.0), math.log(30.0))
    assert twice.value == pytest.approx(math.sqrt(1200.0))
    assert once.after(120.0, 100.0, 300.0).value == pytest.approx(100.0)
    assert known.after(3600.0, 30.0, 300.0).value == pytest.approx(30.0, rel=1e-3)
