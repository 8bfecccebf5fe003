"""Uniform numbers behind the laws of moving links, by position, seed and link."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats
from strategies import bandwidth_factors, unit_links

from des import UniformLaw
from des.dynamics import DYNAMICS


def test_segments_and_seeds_have_uniform_numbers_of_their_own():
    """No number comes twice; with equal swings, a stream that is reused would show."""
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.3, update_interval_s=1.0)
    numbers = [
        factor
        for seed in (0, 1, 2**63 - 1)
        for path in [law.path(unit_links(3), seed)]
        for segment, link in itertools.product(range(5), range(3))
        for factor in path.piece_at(link, float(segment))[2:]
    ]

    assert len(numbers) == len(set(numbers)) == 3 * 5 * 3 * 2


def test_a_segment_of_a_link_is_drawn_from_the_seed_and_its_position():
    """The draw is fixed, as recorded figures rest on it: numpy's, from a counter of its own.

    numpy counts before it draws, so its counter stands one below (link, segment).
    """
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=2.0)
    path = law.path(unit_links(3), 7)
    for link in range(3):
        rng = np.random.Generator(np.random.Philox(key=[7, 0], counter=link + (4 << 64) - 1))
        bandwidth_eps, latency_eps = rng.uniform(-1.0, 1.0, size=2)

        found = path.piece_at(link, 9.9)
        assert found == (8.0, 10.0, 1 + 0.3 * bandwidth_eps, 1 + 0.2 * latency_eps)


def test_factors_of_a_link_do_not_depend_on_how_many_links_there_are():
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)

    np.testing.assert_array_equal(law.factors(3, 7, 4), law.factors(90, 7, 4)[:, :3])
    assert law.factors(0, 7, 4).shape == (2, 0)


def test_correlated_segments_are_drawn_from_the_seed_and_their_number():
    """A normal number of its own for each link, then a common one: the draw is fixed."""
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2, correlation=0.36)
    rng = np.random.Generator(np.random.Philox(key=7, counter=[0, 0, 0, 4]))
    own, common = rng.standard_normal((2, 3)), rng.standard_normal((2, 1))
    eps = 2 * stats.norm.cdf(0.6 * common + 0.8 * own) - 1

    expected = [1 + 0.3 * eps[0], 1 + 0.2 * eps[1]]
    np.testing.assert_allclose(law.factors(3, 7, 4), expected, rtol=1e-14)


def test_uniform_numbers_fill_their_range_over_links_segments_and_seeds():
    """20 equal bins of the band, with each of the three in turn as what is counted through."""
    law = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5)
    over_links = law.factors(4000, 11, 5)
    over_segments = np.stack([law.factors(2, 11, segment)[:, 1] for segment in range(4000)], 1)
    over_seeds = np.stack([law.factors(2, seed, 5)[:, 1] for seed in range(4000)], 1)

    for bandwidth, latency in (over_links, over_segments, over_seeds):
        for factors in (bandwidth, latency):
            counts = np.histogram(factors, bins=20, range=(0.5, 1.5))[0]
            assert counts.sum() == 4000
            assert stats.chisquare(counts).pvalue > 1e-4
            # Neighbours are independent: pairs fill the square.
            pairs = np.histogram2d(factors[::2], factors[1::2], 5, [[0.5, 1.5]] * 2)[0]
            assert stats.chisquare(pairs.ravel()).pvalue > 1e-4
        assert abs(np.corrcoef(bandwidth, latency)[0, 1]) < 4 / np.sqrt(4000)


def test_uniform_numbers_of_any_two_links_correlate_as_their_normal_ones():
    """The copula's correlation r gives the uniform numbers 6/pi asin(r/2) (Pearson 1907)."""
    count, r = 4000, 0.6
    law = UniformLaw(
        bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=1.0, correlation=r
    )

    factors = bandwidth_factors(law, 3, 2, np.arange(count))
    expected = 6 / math.pi * math.asin(r / 2)
    found = np.corrcoef(factors.T)[0, 1]
    assert found == pytest.approx(expected, abs=4 * (1 - expected**2) / math.sqrt(count))
    for column in factors.T:
        assert stats.kstest((column - 0.5) / 1.0, "uniform").pvalue > 1e-4


def test_uniform_numbers_are_independent_unless_told():
    count = 4000
    law = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=1.0)

    found = np.corrcoef(bandwidth_factors(law, 3, 3, np.arange(count)).T)
    assert np.all(np.abs(found[np.triu_indices(3, 1)]) < 4 / math.sqrt(count))


def test_links_of_full_correlation_move_as_one():
    for law in (
        UniformLaw(
            bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=1.0, correlation=1.0
        ),
        dataclasses.replace(DYNAMICS["ou"], correlation=1.0),
        dataclasses.replace(DYNAMICS["markov_fast"], correlation=1.0),
    ):
        factors = bandwidth_factors(law, 5, 3, np.arange(0.0, 5e4, 500.0))
        assert len(np.unique(factors[:, 0])) > 2
        np.testing.assert_array_equal(factors, factors[:, :1].repeat(3, axis=1))
