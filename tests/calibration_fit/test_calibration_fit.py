"""Fitting of correction factors: planted ones are found, noise is not, the rest stays at 1."""

import dataclasses
import re
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.stats import t as student_t
from strategies import unit_workload

from calibration.cases.case import Measurement, PlacementCase
from calibration.fit.coordinates import FACTORS
from calibration.fit.fit import fit
from calibration.fit.identification import half_widths
from calibration.fit.prediction import predict
from des import NO_CORRECTIONS, Corrections, Domain, Link, Parallelism, Placement, Plan, Topology

WAN_FACTORS = ("compute_time_factor", "wan_bandwidth_factor", "wan_latency_factor")
PLANTED = Corrections(
    compute_time_factor=1.08,
    intra_bandwidth_factor=0.8,
    intra_latency_factor=1.3,
    wan_bandwidth_factor=0.9,
    wan_latency_factor=1.25,
    message_overhead_s=0.004,
)
PLANTED_OUTSIDE = dataclasses.replace(PLANTED, intra_bandwidth_factor=1.0, intra_latency_factor=1.0)


def drawn_case(rng, *, is_parallel=False, work_factor=1.0, latency_s=None):
    """Three domains with own links, and layers, messages and microbatches of any size."""
    names = ("east", "middle", "west")
    domains = [
        Domain(
            name=name,
            num_gpus=4,
            gpu_peak_flops_per_s=1e12,
            gpu_memory_bytes=1e12,
            gpu_memory_bandwidth_bytes_per_s=1e12,
            attainable_fraction=0.5,
            intra_bandwidth_bytes_per_s=rng.uniform(2e9, 2e10),
            intra_latency_s=rng.uniform(1e-3, 1e-2),
        )
        for name in names
    ]
    links = [
        Link(
            source=source,
            target=target,
            bandwidth_bytes_per_s=rng.uniform(1e8, 1e9),
            latency_s=rng.uniform(0.01, 0.2) if latency_s is None else latency_s,
        )
        for source in names
        for target in names
        if source != target
    ]
    forward_flops = work_factor * rng.uniform(1e10, 3e11)
    workload = unit_workload(
        [(forward_flops, 2 * forward_flops)] * 6,
        num_microbatches=int(rng.integers(2, 9)),
        message_bytes=rng.uniform(1e6, 5e7),
    )
    cuts = sorted(rng.choice(5, 2, replace=False) + 1)
    counts = np.diff([0, *cuts, 6])
    placement = Placement.contiguous([int(each) for each in rng.permutation(3)], counts.tolist())
    parallelism = (Parallelism(tensor=2, data=2),) * 3 if is_parallel else ()
    schedule = ("1f1b", "gpipe")[int(rng.integers(2))]
    return PlacementCase(
        topology=Topology.of(domains, links),
        workload=workload,
        plan=Plan(placement=placement, schedule=schedule, parallelism=parallelism),
        granularity="gpu" if is_parallel else "domain",
    )


def drawn_cases(count, *, seed=0, **settings):
    rng = np.random.default_rng(seed)
    return [drawn_case(rng, **settings) for _ in range(count)]


def one_after_another(case, corrections):
    """A predictor in closed form: all passes, then all messages, of which none overlap."""
    workload, placement = case.workload, case.plan.placement
    rate = case.topology.domains[0].num_gpus * 0.5e12
    flops = sum(layer.forward_flops + layer.backward_flops for layer in workload.layers)
    compute_s = workload.num_microbatches * flops / rate * corrections.compute_time_factor
    sent_s = num_bytes = 0.0
    for here, there in zip(placement.stages, placement.stages[1:], strict=False):
        link = case.topology.link_between(here.domain, there.domain)
        bandwidth = link.bandwidth_bytes_per_s * corrections.wan_bandwidth_factor
        latency_s = link.latency_s * corrections.wan_latency_factor
        overhead_s = corrections.message_overhead_s
        sent_s += workload.num_microbatches * (
            overhead_s + workload.message_bytes / bandwidth + latency_s
        )
        num_bytes += workload.num_microbatches * workload.message_bytes
    return Measurement(
        makespan_s=compute_s + sent_s, communication_bytes=num_bytes, exposed_s=(sent_s, 0.0, 0.0)
    )


def observed(cases, corrections, *, noise=0.0, predictor=predict, seed=0):
    """What a reference would measure that is `predictor` with corrections, but for noise."""
    rng = np.random.default_rng(seed)
    found = []
    for case in cases:
        exact = predictor(case, corrections)
        whole, exposed = 1.0 + noise * rng.standard_normal(2)
        found.append(
            dataclasses.replace(
                exact,
                makespan_s=exact.makespan_s * whole,
                exposed_s=tuple(each * whole * exposed for each in exact.exposed_s),
            )
        )
    return found


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


@cache
def fitted_alone(seed):
    cases = drawn_cases(12)
    return fit(cases, observed(cases, PLANTED, noise=1e-3), predict=predict, seed=seed)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_any_number_of_workers_finds_the_same_to_the_last_bit(num_workers):
    cases = drawn_cases(12)
    reference = observed(cases, PLANTED, noise=1e-3)
    with ProcessPoolExecutor(num_workers, mp_context=get_context("spawn")) as executor:
        found = fit(cases, reference, predict=predict, executor=executor)

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
