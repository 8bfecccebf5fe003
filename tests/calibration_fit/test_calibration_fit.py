"""Fitting of correction factors: planted ones are found, and what is refused."""

from functools import cache

import numpy as np
import pytest
from planted_factors import (
    PLANTED,
    PLANTED_OUTSIDE,
    WAN_FACTORS,
    drawn_cases,
    observed,
    one_after_another,
)
from scipy.stats import t as student_t

from calibration.fit.fit import fit
from calibration.fit.identification import half_widths
from calibration.fit.prediction import predict
from calibration.reference.pool import worker_processes
from des.plan.corrections import FACTORS


def within(found, planted):
    """For each fitted factor, whether its interval holds the planted value."""
    return {
        each.factor: each.low <= getattr(planted, each.factor) <= each.high
        for each in found.intervals
    }


@pytest.mark.parametrize(
    ("is_parallel", "planted", "identified"),
    [(False, PLANTED_OUTSIDE, {*WAN_FACTORS, "message_overhead_s"}), (True, PLANTED, {*FACTORS})],
)
def test_planted_factors_are_found_within_their_intervals(is_parallel, planted, identified):
    """Observations are those of the simulator under these factors, with 0.1 % of noise."""
    cases = drawn_cases(32, is_parallel=is_parallel)
    reference = observed(cases, planted, noise=1e-3)

    found = fit(cases, reference, predict=predict)

    assert within(found, planted) == dict.fromkeys(sorted(identified, key=FACTORS.index), True)
    for each in found.intervals:
        assert each.value == getattr(found.corrections, each.factor)
        if each.factor != "message_overhead_s":
            assert each.high - each.low < 0.1 * each.value
    assert found.kept
    assert found.error_before > 0.05
    assert found.error_after < 0.002


def test_intervals_hold_the_planted_values_as_often_as_they_say():
    """95 % of those of 3 or 4 factors in 40 draws."""
    held = []
    for seed in range(40):
        cases = drawn_cases(20, seed=seed)
        reference = observed(
            cases, PLANTED_OUTSIDE, noise=5e-3, predictor=one_after_another, seed=seed
        )
        found = fit(cases, reference, predict=one_after_another)
        held += within(found, PLANTED_OUTSIDE).values()
    assert len(held) >= 120
    assert 0.9 <= np.mean(held) <= 0.99


def test_a_factor_of_an_observation_without_noise_is_found_exactly():
    cases = drawn_cases(12)
    found = fit(cases, observed(cases, PLANTED_OUTSIDE), predict=predict)

    for factor in (*WAN_FACTORS, "message_overhead_s"):
        expected = getattr(PLANTED_OUTSIDE, factor)
        assert getattr(found.corrections, factor) == pytest.approx(expected, rel=1e-4)


@cache
def fitted_alone(seed):
    cases = drawn_cases(12)
    return fit(cases, observed(cases, PLANTED, noise=1e-3), predict=predict, seed=seed)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_any_number_of_workers_finds_the_same_to_the_last_bit(num_workers):
    cases = drawn_cases(12)
    reference = observed(cases, PLANTED, noise=1e-3)
    with worker_processes(num_workers) as at_work:
        found = fit(cases, reference, predict=predict, at_work=at_work)

    assert found == fitted_alone(0)


def test_the_seed_decides_about_folds_alone():
    first, other = fitted_alone(0), fitted_alone(1)

    assert first.fitted == other.fitted
    assert first.held_out != other.held_out


def test_intervals_of_a_mean_by_hand():
    """One factor that moves all makespans alike: Student's interval of the mean of the errors."""
    makespans = np.array([1e-6, -2e-6, 3e-6, -2e-6])
    errors = np.concatenate([makespans, np.zeros(4)])
    jacobian = np.concatenate([np.ones(4), np.zeros(4)])[:, np.newaxis]
    expected = student_t.ppf(0.975, 3) * np.std(makespans, ddof=1) / 2.0

    assert half_widths(jacobian, errors) == pytest.approx([expected], rel=1e-6)


def test_two_errors_of_a_case_that_are_the_same_count_once():
    errors = np.array([1e-6, -2e-6, 3e-6, -2e-6])
    ones = np.ones((4, 1))
    alone = half_widths(np.concatenate([ones, 0 * ones]), np.concatenate([errors, 0 * errors]))

    twice = half_widths(np.concatenate([ones, ones]), np.concatenate([errors, errors]))

    assert twice == pytest.approx(alone)


@pytest.mark.parametrize("count", [1, 6, 8])
def test_fewer_cases_than_factors_are_refused(count):
    cases = drawn_cases(count)
    message = rf"cases must leave more than the 6 factors .* got {count} cases, which leave"
    with pytest.raises(ValueError, match=message):
        fit(cases, observed(cases, PLANTED), predict=predict)


def test_cases_without_a_measurement_are_refused():
    cases = drawn_cases(12)
    with pytest.raises(ValueError, match="one measurement for each of 12 cases, got 11"):
        fit(cases, observed(cases[1:], PLANTED), predict=predict)


def test_a_seed_that_is_none_is_refused():
    cases = drawn_cases(12)
    with pytest.raises(ValueError, match=r"fit: seed must be a whole number within"):
        fit(cases, observed(cases, PLANTED), predict=predict, seed=-1)
