"""Means and intervals against closed forms and published quantiles."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.base.names import counted
from scenarios.frame.plots import seed_curves
from scenarios.frame.statistics import MeanInterval, mean_and_interval, paired_difference, summarise


@pytest.mark.parametrize(
    ("num_values", "quantile"),
    [(4, 3.182), (5, 2.776), (6, 2.571), (10, 2.262), (11, 2.228), (30, 2.045), (31, 2.042)],
)
def test_the_half_width_is_the_published_quantile_of_standard_errors(num_values, quantile):
    """NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2, column 0.975."""
    values = np.arange(num_values, dtype=float)
    standard_error = values.std(ddof=1) / math.sqrt(num_values)

    half_width = mean_and_interval(values).half_width

    assert round(half_width / standard_error, 3) == quantile


def test_the_interval_of_two_values_has_its_closed_form():
    """For a and b the standard error is |a - b| / 2."""
    interval = mean_and_interval([3.0, 7.0])

    assert interval.mean == 5.0
    assert interval.half_width == pytest.approx(2.0 * math.tan(0.475 * math.pi))
    assert (interval.low, interval.high) == (5.0 - interval.half_width, 5.0 + interval.half_width)


def test_a_single_value_has_no_interval():
    """Its half width is NaN, not zero."""
    interval = mean_and_interval([4.0])

    assert interval.mean == 4.0
    assert math.isnan(interval.half_width)
    assert math.isnan(interval.low)


def test_equal_values_have_an_interval_without_width():
    """No spread, no uncertainty about the mean."""
    assert mean_and_interval([2.5] * 4) == MeanInterval(mean=2.5, half_width=0.0)


def test_the_interval_covers_the_true_mean_of_normal_values_in_95_percent_of_cases():
    """4000 samples of 5: the coverage is within 4 standard errors of 0.95."""
    samples = np.random.default_rng(0).normal(10.0, 3.0, size=(4000, 5))
    intervals = [mean_and_interval(sample) for sample in samples]
    coverage = np.mean([interval.low <= 10.0 <= interval.high for interval in intervals])

    assert abs(coverage - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 4000)


@given(
    values=st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=10),
    shift=st.floats(-1e3, 1e3),
    factor=st.floats(0.1, 10.0),
)
def test_the_interval_moves_and_stretches_with_the_values(values, shift, factor):
    """The unit of the values and their origin do not matter."""
    interval = mean_and_interval(values)
    moved = mean_and_interval([factor * value + shift for value in values])

    assert moved.mean == pytest.approx(factor * interval.mean + shift, abs=1e-8)
    assert moved.half_width == pytest.approx(factor * interval.half_width, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf], [[1.0], [2.0]]])
def test_values_that_have_no_mean_are_refused(values):
    """Nothing is dropped silently."""
    with pytest.raises(ValueError, match="values must be a non-empty row of finite numbers"):
        mean_and_interval(values)


def test_a_constant_relative_difference_has_no_spread():
    """Each value is a quarter above its reference, however different the draws."""
    difference = paired_difference([1.25, 12.5, 125.0], [1.0, 10.0, 100.0])

    assert difference == MeanInterval(mean=0.25, half_width=0.0)


def test_the_paired_difference_of_two_draws_is_computed_by_hand():
    """Differences 0.1 and 0.3 of the reference: mean 0.2, standard error 0.1."""
    difference = paired_difference([11.0, 26.0], [10.0, 20.0])

    assert difference.mean == pytest.approx(0.2)
    assert difference.half_width == pytest.approx(0.1 * math.tan(0.475 * math.pi))


def test_endless_times_make_the_mean_endless_and_all_else_is_a_whole_below_them():
    endless = paired_difference([2.0, math.inf], [1.0, 1.0])
    assert (endless.mean, math.isnan(endless.half_width)) == (math.inf, True)

    below = paired_difference([2.0, math.inf, 3.0], [math.inf, math.inf, 3.0])
    assert below.mean == pytest.approx(-1.0 / 3.0)


@pytest.mark.parametrize(
    ("values", "references", "message"),
    [
        ([1.0], [1.0, 2.0], "must be paired, got 1 and 2"),
        ([1.0, 2.0], [1.0, 0.0], "references must be positive"),
        ([1.0], [math.nan], "references must be positive"),
        ([], [], "non-empty"),
    ],
)
def test_draws_that_cannot_be_compared_are_refused(values, references, message):
    """A relative difference needs a pair and a positive reference."""
    with pytest.raises(ValueError, match=message):
        paired_difference(values, references)


def evaluation() -> pd.DataFrame:
    """Two draws; exact takes 1 s and 3 s, uniform 10 s and 14 s and fits memory once."""
    return pd.DataFrame(
        {
            "draw": [0, 0, 1, 1],
            "planner": ["uniform", "exact", "uniform", "exact"],
            "iteration_time_s": [10.0, 1.0, 14.0, 3.0],
            "fits_memory": [True, True, False, True],
        }
    )


def test_the_summary_is_computed_by_hand():
    """Fastest planner first; half widths are t(1) times half the range."""
    summary = summarise(evaluation())

    assert list(summary.index) == ["exact", "uniform"]
    assert list(summary.columns) == [
        "num_draws",
        *("iteration_time_s", "iteration_time_s_half_width"),
        *("fits_memory", "fits_memory_half_width"),
    ]
    assert list(summary["num_draws"]) == [2, 2]
    assert list(summary["iteration_time_s"]) == [2.0, 12.0]
    assert list(summary["iteration_time_s_half_width"]) == pytest.approx(
        [math.tan(0.475 * math.pi), 2 * math.tan(0.475 * math.pi)]
    )
    assert list(summary["fits_memory"]) == [1.0, 0.5]


@given(order=st.permutations(range(4)))
def test_the_summary_does_not_depend_on_the_order_of_rows(order):
    """Planners are compared, not their places in the file."""
    pd.testing.assert_frame_equal(
        summarise(evaluation().iloc[list(order)]), summarise(evaluation())
    )


def test_a_summary_names_what_is_wrong():
    """A missing column, no rows, a time that is not finite."""
    with pytest.raises(ValueError, match="must have the column planner"):
        summarise(evaluation().drop(columns=["planner"]))
    with pytest.raises(ValueError, match="must have rows"):
        summarise(evaluation().iloc[:0])
    with pytest.raises(ValueError, match="iteration_time_s of planner exact: values must be"):
        summarise(evaluation().replace({"iteration_time_s": {3.0: math.inf}}))


def test_one_seed_is_one_seed_and_has_no_spread_in_texts():
    one, two = mean_and_interval([2.0]), mean_and_interval([2.0, 3.0])

    assert (counted(1, "seed"), counted(2, "seed")) == ("1 seed", "2 seeds")
    assert (one.spread_text, two.spread_text) == ("", " ± 6.4")


def test_the_curves_of_one_seed_say_no_interval():
    log = pd.DataFrame({"step": [1, 2], "mean_reward": [0.0, 1.0], "mean_iteration_time_s": [4, 3]})
    seen = seed_curves({"seed 0": log}, title="one").seen

    assert seen == (
        "1 seed over 2 environment steps; at the end mean reward 1 and mean iteration time [s] 3."
    )
