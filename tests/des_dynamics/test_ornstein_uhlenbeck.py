"""Log bandwidths that wander about their means, against closed forms.

Seeds are fixed, and four standard deviations of what theory says are allowed.
"""

import dataclasses
import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import wandering_laws
from scipy import stats
from strategies import bandwidth_factors, unit_links

from des.dynamics import OrnsteinUhlenbeck

OU = OrnsteinUhlenbeck(
    bandwidth_sigma=0.3, latency_sigma=0.1, relaxation_s=5.0, interval_s=2.0, most_sigmas=8.0
)
DECAY = math.exp(-2.0 / 5.0)


def wandering(law, seed, num_links, steps):
    """The normal numbers behind the bandwidth factors, shaped (steps, links)."""
    factors = bandwidth_factors(law, seed, num_links, law.interval_s * np.array(steps))
    return (np.log(factors) + law.bandwidth_sigma**2 / 2) / law.bandwidth_sigma


@pytest.mark.parametrize("step", [0, 1, 320, 10_000])
def test_log_bandwidth_has_its_stationary_law_at_all_times(step):
    """Over many links: mean 0, variance 1, normal; from the first step on."""
    count = 20_000
    z = wandering(OU, 11, count, [step])[0]

    assert z.mean() == pytest.approx(0.0, abs=4 / math.sqrt(count))
    assert z.var() == pytest.approx(1.0, abs=4 * math.sqrt(2 / count))
    assert stats.kstest(z, "norm").pvalue > 1e-4


@pytest.mark.parametrize("lag", [1, 2, 5])
@pytest.mark.parametrize("step", [0, 63, 319, 10_000])
def test_the_correlation_over_time_falls_exponentially(step, lag):
    """Within blocks of 64 steps as across them, however far back they are remembered."""
    now, then = wandering(OU, 12, 4000, [step, step + lag])

    expected = DECAY**lag
    assert np.corrcoef(now, then)[0, 1] == pytest.approx(
        expected, abs=4 * (1 - expected**2) / math.sqrt(4000)
    )


def test_slow_links_go_on_from_block_to_block():
    """The noise from step 6399 to 6400, where a block begins, is no larger than the law says."""
    law = dataclasses.replace(OU, relaxation_s=200.0)
    count = 1000

    before, after = wandering(law, 17, count, [6399, 6400])
    noise = after - math.exp(-2.0 / 200.0) * before
    assert noise.var() == pytest.approx(-math.expm1(-4.0 / 200.0), rel=4 * math.sqrt(2 / count))


def test_what_is_new_at_each_step_is_independent_noise():
    """z' - a z has variance 1 - a^2 and no correlation with z or with the noise before it."""
    count = 4000
    z = wandering(OU, 13, 1, range(count))[:, 0]
    noise = z[1:] - DECAY * z[:-1]

    variance = 1 - DECAY**2
    assert noise.var() == pytest.approx(variance, rel=4 * math.sqrt(2 / count))
    for one, other in ((noise, z[:-1]), (noise[1:], noise[:-1])):
        assert np.corrcoef(one, other)[0, 1] == pytest.approx(0.0, abs=4 / math.sqrt(count))


def test_factors_have_mean_1_and_the_declared_spread():
    """Over 20,000 links; a log-normal factor has the variance exp(s^2) - 1."""
    path = OU.path(unit_links(20_000), 14)
    pieces = [path.piece_at(link, 100.0) for link in range(20_000)]

    for name, sigma in (("bandwidth_factor", 0.3), ("latency_factor", 0.1)):
        factors = np.array([getattr(piece, name) for piece in pieces])
        variance = math.expm1(sigma**2)
        assert factors.mean() == pytest.approx(1.0, abs=4 * math.sqrt(variance / 20_000))
        assert factors.var() == pytest.approx(variance, rel=0.1)
    together = [(piece.bandwidth_factor, piece.latency_factor) for piece in pieces]
    assert abs(np.corrcoef(np.array(together).T)[0, 1]) < 4 / math.sqrt(20_000)


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.9])
def test_log_bandwidths_correlate_as_declared(correlation):
    """Effective sample size of a product of two such series: n (1 - a^2) / (1 + a^2)."""
    steps = 4000
    law = dataclasses.replace(OU, correlation=correlation)

    z = wandering(law, 15, 3, range(steps))
    effective = steps * (1 - DECAY**2) / (1 + DECAY**2)
    found = np.corrcoef(z.T)[np.triu_indices(3, 1)]
    np.testing.assert_allclose(
        found, correlation, atol=4 * (1 - correlation**2) / math.sqrt(effective)
    )
    assert z.var() == pytest.approx(1.0, abs=4 * math.sqrt(2 / effective))


def test_factors_are_cut_at_the_declared_number_of_deviations():
    law = dataclasses.replace(OU, most_sigmas=1.0)
    factors = bandwidth_factors(law, 16, 1000, [0.0])

    least, most, *_ = law.extremes(unit_links(1)[0])
    assert (least, most) == pytest.approx((math.exp(-0.3 - 0.045), math.exp(0.3 - 0.045)))
    assert factors.min() == least
    assert factors.max() == most
    assert np.mean((least < factors) & (factors < most)) == pytest.approx(0.6827, abs=0.06)


@settings(max_examples=examples(30), deadline=None)
@given(law=wandering_laws(), seed=st.integers(0, 2**32), step=st.integers(0, 5000))
def test_blocks_join_without_a_seam(law, seed, step):
    """From any step to the next, the noise is the same as when all is run through in one go."""
    many = [law.path(unit_links(2), seed) for _ in range(2)]
    for earlier in range(max(step - 70, 0), step):
        many[0].piece_at(1, (earlier + 0.5) * law.interval_s)

    time_s = (step + 0.5) * law.interval_s
    assert many[0].piece_at(1, time_s) == many[1].piece_at(1, time_s)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("bandwidth_sigma", -0.1, "bandwidth_sigma must be from 0 to 2.0, got -0.1"),
        ("bandwidth_sigma", math.nan, "bandwidth_sigma must be from 0 to 2.0, got nan"),
        ("latency_sigma", 2.1, "latency_sigma must be from 0 to 2.0, got 2.1"),
        ("relaxation_s", 0.0, "relaxation_s must be positive and finite, got 0.0"),
        ("relaxation_s", math.inf, "relaxation_s must be positive and finite, got inf"),
        ("interval_s", 0.0, "interval_s must be at least 0.001 and finite, got 0.0"),
        ("correlation", -0.1, "correlation must be from 0 to 1, got -0.1"),
        ("correlation", 1.1, "correlation must be from 0 to 1, got 1.1"),
        ("most_sigmas", 0.0, "most_sigmas must be positive and finite, got 0.0"),
    ],
)
def test_a_wandering_law_refuses_impossible_figures(field, value, message):
    with pytest.raises(ValueError, match=f"dynamics: {message}"):
        dataclasses.replace(OU, **{field: value})
