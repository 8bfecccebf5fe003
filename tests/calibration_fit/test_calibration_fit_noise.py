"""Fitting of correction factors: noise is not fitted, and what is not told apart stays at 1."""

import dataclasses
import re

import pytest
from planted_factors import (
    PLANTED,
    PLANTED_OUTSIDE,
    WAN_FACTORS,
    drawn_cases,
    observed,
    one_after_another,
)

from calibration.fit.fit import fit
from calibration.fit.prediction import predict
from des import NO_CORRECTIONS, Corrections


def test_factors_inside_domains_stay_at_1_where_nothing_is_sent_inside():
    cases = drawn_cases(12)
    found = fit(cases, observed(cases, PLANTED), predict=predict)

    assert dict(found.not_identified) == dict.fromkeys(
        ("intra_bandwidth_factor", "intra_latency_factor"), "moves no prediction"
    )
    assert found.kept
    assert found.corrections.intra_bandwidth_factor == 1.0
    assert found.corrections.intra_latency_factor == 1.0


def test_the_compute_factor_stays_at_1_where_hardly_anything_is_computed():
    cases = drawn_cases(12, work_factor=1e-9)
    found = fit(cases, observed(cases, PLANTED_OUTSIDE), predict=predict)

    assert dict(found.not_identified)["compute_time_factor"] == "moves no prediction"
    assert found.corrections.compute_time_factor == 1.0
    assert found.corrections.wan_bandwidth_factor == pytest.approx(0.9, rel=1e-4)


def test_factors_that_cannot_be_told_apart_are_named():
    """Where all latencies are equal, so much for each message is what an overhead is as well."""
    cases = drawn_cases(12, latency_s=0.125)
    planted = Corrections(wan_latency_factor=1.5)
    reference = observed(cases, planted, predictor=one_after_another)

    found = fit(cases, reference, predict=one_after_another)

    assert dict(found.not_identified)["message_overhead_s"] == (
        "moves the predictions as wan_latency_factor does"
    )
    assert found.corrections.message_overhead_s == 0.0
    assert found.corrections.wan_latency_factor == pytest.approx(1.5, rel=1e-4)


def test_a_factor_that_noise_hides_stays_at_1():
    """Latencies of a millisecond move predictions by less than the noise."""
    cases = drawn_cases(16, latency_s=0.001)
    planted = Corrections(compute_time_factor=1.3, wan_latency_factor=1.5)
    reference = observed(cases, planted, noise=0.01, predictor=one_after_another)

    found = fit(cases, reference, predict=one_after_another)

    reason = dict(found.not_identified)["wan_latency_factor"]
    assert reason == "cannot be known as well as to a factor of 1.28"
    assert found.corrections.wan_latency_factor == 1.0
    assert found.kept


def test_a_factor_that_would_have_to_be_enormous_stays_at_1():
    cases = drawn_cases(12)
    planted = Corrections(compute_time_factor=50.0)
    reference = observed(cases, planted, predictor=one_after_another)

    found = fit(cases, reference, predict=one_after_another)

    reason = dict(found.not_identified)["compute_time_factor"]
    assert reason == "has no best value between 0.25 and 4"
    assert found.corrections.compute_time_factor == 1.0


def test_noise_corrects_nothing():
    """Of 20 references that are right but for noise, one at most looks as if it were not."""
    num_kept = 0
    for seed in range(20):
        cases = drawn_cases(16, seed=seed)
        reference = observed(
            cases, NO_CORRECTIONS, noise=0.01, predictor=one_after_another, seed=seed
        )
        found = fit(cases, reference, predict=one_after_another)
        num_kept += found.kept
        if not found.kept:
            assert found.corrections == NO_CORRECTIONS
            assert found.error_before - found.error_after <= found.gain_standard_error
            assert re.match("the held-out error (falls|rises) by [0-9.]+% ", found.reason)
    assert num_kept <= 1


def test_what_agrees_needs_no_correction():
    cases = drawn_cases(12)
    found = fit(cases, observed(cases, NO_CORRECTIONS), predict=predict)

    assert (found.kept, found.error_before, found.error_after) == (False, 0.0, 0.0)
    assert found.reason == "an error of 0 needs no correction"
    assert found.corrections == NO_CORRECTIONS


def test_held_out_predictions_are_those_of_factors_fitted_without_the_case():
    """A case that is off alone gains nothing by the fit of the others."""
    cases = drawn_cases(12)
    reference = observed(cases, NO_CORRECTIONS, predictor=one_after_another)
    reference[3] = observed(cases, PLANTED, predictor=one_after_another)[3]

    found = fit(cases, reference, predict=one_after_another)

    for figure in ("makespan_s", "communication_bytes"):
        held_out, before = (getattr(each[3], figure) for each in (found.held_out, found.before))
        assert held_out == pytest.approx(before, rel=1e-4)
    assert not found.kept


def test_one_wild_measurement_moves_the_factors_little():
    cases = drawn_cases(24)
    reference = observed(cases, PLANTED_OUTSIDE, noise=1e-3)
    wild = dataclasses.replace(reference[5], makespan_s=3.0 * reference[5].makespan_s)
    spoilt = [*reference[:5], wild, *reference[6:]]

    clean, found = (fit(cases, each, predict=predict) for each in (reference, spoilt))

    for factor in WAN_FACTORS:
        expected = getattr(clean.fitted, factor)
        assert getattr(found.fitted, factor) == pytest.approx(expected, rel=0.01)
