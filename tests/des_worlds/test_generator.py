"""Worlds drawn on a plane: shapes, bounds, and the laws of the draws."""

import dataclasses
import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from des import Topology, UniformLaw, read_topology
from des.worlds.generator import PlaneWorlds

GBIT_PER_S = 1e9 / 8
MANY = 100
NUM_PAIRS = MANY * (MANY - 1) // 2


def draw(num_domains: int, seed: int = 0, **law: object) -> Topology:
    return PlaneWorlds(num_domains=num_domains, **law).draw(np.random.default_rng(seed))


def one_way(topology: Topology, field: str) -> np.ndarray:
    """A field of the links that lead from an earlier domain to a later one."""
    return np.array(
        [
            getattr(link, field)
            for link in topology.links
            if topology.index_of[link.source] < topology.index_of[link.target]
        ]
    )


def worlds() -> st.SearchStrategy[PlaneWorlds]:
    latencies = st.tuples(st.floats(0, 0.2), st.floats(0, 0.2)).map(sorted)
    return st.builds(
        lambda latency, **law: PlaneWorlds(
            lowest_latency_s=latency[0], highest_latency_s=latency[1], **law
        ),
        latency=latencies,
        num_domains=st.integers(1, 8),
        mean_bandwidth_bytes_per_s=st.floats(GBIT_PER_S, 100 * GBIT_PER_S),
        mean_price_usd_per_gb=st.none() | st.floats(0, 1),
        gpu_price_usd_per_hour=st.none() | st.floats(0, 100),
    )


@settings(max_examples=examples(50), deadline=None)
@given(law=worlds(), seed=st.integers(0, 2**32))
def test_every_two_domains_are_joined_within_the_bounds_and_alike_both_ways(law, seed):
    topology = law.draw(np.random.default_rng(seed))

    mean = law.mean_bandwidth_bytes_per_s
    assert [domain.name for domain in topology.domains] == [
        f"domain{index}" for index in range(law.num_domains)
    ]
    assert {domain.gpu_price_usd_per_hour for domain in topology.domains} == {
        law.gpu_price_usd_per_hour
    }
    assert len(topology.links) == law.num_domains * (law.num_domains - 1)
    for link in topology.links:
        back = topology.link_between(topology.index_of[link.target], topology.index_of[link.source])
        assert dataclasses.replace(link, source=link.target, target=link.source) == back
        assert max(0.3 * mean, GBIT_PER_S) <= link.bandwidth_bytes_per_s <= 2 * mean
        # A diagonal over its own length can be an ulp above 1.
        assert law.lowest_latency_s <= link.latency_s <= law.highest_latency_s * (1 + 1e-12)
        assert (link.price_usd_per_gb is None) == (law.mean_price_usd_per_gb is None)


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_detour_is_quicker_than_a_link(seed):
    """Latency is a distance plus a constant, so the triangle inequality holds."""
    topology = draw(5, seed)
    latency_s = np.zeros((5, 5))
    for link in topology.links:
        latency_s[topology.index_of[link.source], topology.index_of[link.target]] = link.latency_s

    detours_s = latency_s[:, :, None] + latency_s[None, :, :]
    assert (latency_s[:, None, :] <= detours_s + 1e-15).all()


def test_latencies_have_the_mean_of_distances_in_a_square():
    """Two points in a unit square are 0.5214 apart on average; K points, about 2/sqrt(K) of that.

    The closed form is (2 + sqrt 2 + 5 asinh 1) / 15.
    """
    latencies_s = one_way(draw(MANY), "latency_s")

    mean_distance = (2 + math.sqrt(2) + 5 * math.asinh(1)) / 15
    expected_s = 0.005 + 0.115 * mean_distance / math.sqrt(2)
    assert latencies_s.mean() == pytest.approx(expected_s, rel=0.1)
    assert latencies_s.min() < 0.010
    assert latencies_s.max() > 0.090


def test_bandwidths_are_log_normal_between_the_bounds():
    """Shares at both bounds within four deviations, and the distribution between them."""
    factors = one_way(
        draw(MANY, mean_bandwidth_bytes_per_s=10 * GBIT_PER_S), "bandwidth_bytes_per_s"
    )
    factors /= 10 * GBIT_PER_S

    law = stats.lognorm(s=0.5, scale=math.exp(-0.125))  # of mean 1
    for share, expected in (
        ((factors == 0.3).mean(), law.cdf(0.3)),
        ((factors == 2.0).mean(), law.sf(2.0)),
        ((factors < 1.0).mean(), law.cdf(1.0)),
    ):
        spread = math.sqrt(expected * (1 - expected) / NUM_PAIRS)
        assert share == pytest.approx(expected, abs=4 * spread)
    inner = factors[(factors > 0.3) & (factors < 2.0)]
    bounds = [(math.log(bound) + 0.125) / 0.5 for bound in (0.3, 2.0)]
    normal = stats.truncnorm(*bounds, loc=-0.125, scale=0.5)
    assert stats.kstest(np.log(inner), normal.cdf).pvalue > 1e-4


def test_bandwidths_do_not_depend_on_the_distance():
    topology = draw(MANY)

    correlation = np.corrcoef(
        one_way(topology, "bandwidth_bytes_per_s"), one_way(topology, "latency_s")
    )[0, 1]
    assert abs(correlation) < 4 / math.sqrt(NUM_PAIRS)


def test_a_slow_world_has_no_link_below_a_gbit_per_s():
    bandwidths = one_way(
        draw(MANY, mean_bandwidth_bytes_per_s=2 * GBIT_PER_S), "bandwidth_bytes_per_s"
    )

    assert bandwidths.min() == GBIT_PER_S  # 0.3 x 2 = 0.6 would be allowed otherwise


def test_prices_have_their_mean_and_leave_the_links_as_they_are():
    """The mean of n log-normal factors of deviation 0.6 spreads by sqrt((e^0.36 - 1) / n)."""
    plain, priced = draw(MANY), draw(MANY, mean_price_usd_per_gb=0.05)

    prices = one_way(priced, "price_usd_per_gb")
    spread = math.sqrt(math.expm1(0.36) / NUM_PAIRS)
    assert prices.mean() == pytest.approx(0.05, rel=4 * spread)
    assert np.log(prices).std() == pytest.approx(0.6, rel=4 / math.sqrt(2 * NUM_PAIRS))
    for field in ("bandwidth_bytes_per_s", "latency_s"):
        np.testing.assert_array_equal(one_way(plain, field), one_way(priced, field))


def test_equal_bounds_make_all_latencies_equal():
    topology = draw(6, lowest_latency_s=0.03, highest_latency_s=0.03)

    assert {link.latency_s for link in topology.links} == {0.03}


def test_twice_the_mean_is_twice_every_bandwidth():
    slow, fast = (draw(8, mean_bandwidth_bytes_per_s=mean * GBIT_PER_S) for mean in (8, 16))

    np.testing.assert_allclose(
        one_way(fast, "bandwidth_bytes_per_s"), 2 * one_way(slow, "bandwidth_bytes_per_s")
    )


def test_a_world_follows_from_the_seed():
    assert draw(5, seed=1) == draw(5, seed=1)
    assert draw(5, seed=1).links != draw(5, seed=2).links


def test_domains_and_law_of_motion_are_those_asked_for():
    law = UniformLaw(bandwidth_fluctuation=0.1, latency_jitter=0.0)
    topology = draw(2, dynamics=law)

    model = read_topology("east_central_west").domains[0]
    assert topology.dynamics == law
    assert [dataclasses.replace(domain, name="East") for domain in topology.domains] == [model] * 2


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_domains", 0, "num_domains must be a whole number from 1 to 1000, got 0"),
        ("num_domains", 1001, "num_domains must be a whole number from 1 to 1000, got 1001"),
        ("num_domains", 2.0, "num_domains must be a whole number .* got 2.0"),
        ("mean_bandwidth_bytes_per_s", 0.0, "mean_bandwidth_bytes_per_s must be positive"),
        ("mean_bandwidth_bytes_per_s", 1e8, "mean_bandwidth_bytes_per_s must be at least .* 125"),
        ("mean_bandwidth_bytes_per_s", math.nan, "mean_bandwidth_bytes_per_s must be positive"),
        ("lowest_latency_s", -0.1, "lowest_latency_s must be finite and not negative, got -0.1"),
        ("highest_latency_s", math.inf, "highest_latency_s must be finite and not negative"),
        ("lowest_latency_s", 0.2, "lowest_latency_s must be at most highest_latency_s 0.12, got 0"),
        ("mean_price_usd_per_gb", -1.0, "mean_price_usd_per_gb must be finite and not negative"),
        ("gpu_price_usd_per_hour", math.nan, "gpu_price_usd_per_hour must be finite and not neg"),
    ],
)
def test_a_law_out_of_range_is_refused(field, value, message):
    with pytest.raises(ValueError, match=f"generator: {message}"):
        PlaneWorlds(**{"num_domains": 3, field: value})
