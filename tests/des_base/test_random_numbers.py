"""Random numbers by position: numpy's Philox, in any order and from any process."""

import itertools

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from des.base.arithmetic import segment_at
from des.base.random_numbers import derive_seed, philox, uniform_pair, unit
from des.dynamics.uniform_course import segment_ruling, uniform_factors_of_links

WORDS = st.integers(0, 2**63 - 1)


def numpy_philox(key: tuple[int, int], counter: tuple[int, int, int, int]) -> np.random.Philox:
    """numpy's generator about to give the block of a counter: it counts before it draws."""
    position = sum(word << (64 * index) for index, word in enumerate(counter))
    return np.random.Philox(key=key, counter=(position - 1) % 2**256)


def test_philox_gives_the_known_answer_of_its_authors():
    """Random123's kat_vectors: philox4x64 of 10 rounds, all zeros."""
    assert [f"{int(word):016x}" for word in philox(0, 0, 0, 0, 0, 0)] == [
        "16554d9eca36314c", "db20fe9d672d0fdc", "d7e772cee186176b", "7e68b68aec7ba23b"
    ]  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(key=st.tuples(WORDS, WORDS), counter=st.tuples(WORDS, WORDS, WORDS, WORDS))
def test_philox_is_that_of_numpy(key, counter):
    words = philox(*key, *counter)

    assert [int(word) for word in words] == numpy_philox(key, counter).random_raw(4).tolist()


@settings(max_examples=examples(300), deadline=None)
@given(seed=WORDS, first=WORDS, second=WORDS)
def test_a_pair_is_what_numpys_uniform_draws_at_the_same_counter(seed, first, second):
    """To the last bit."""
    generator = np.random.Generator(numpy_philox((seed, 0), (first, second, 0, 0)))

    assert uniform_pair(seed, first, second) == tuple(generator.uniform(-1.0, 1.0, size=2))


def test_a_word_becomes_a_number_below_1():
    assert unit(np.uint64(0)) == 0.0
    assert unit(np.uint64(1 << 63)) == 0.5
    assert unit(np.uint64(2**64 - 1)) == 1.0 - 2.0**-53


def test_pairs_do_not_depend_on_the_order_in_which_they_are_asked_for():
    positions = list(itertools.product((0, 1, 2**63 - 1), range(4), range(4)))
    asked = {position: uniform_pair(*position) for position in positions}

    assert {position: uniform_pair(*position) for position in reversed(positions)} == asked
    numbers = [number for pair in asked.values() for number in pair]
    assert len(set(numbers)) == len(numbers) == 2 * len(positions)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_pairs_are_uniform_along_each_position(axis):
    """Kolmogorov-Smirnov on 20,000, and neighbours are independent."""
    count, base = 20_000, [5, 6, 7]
    pairs = np.array(
        [uniform_pair(*base[:axis], index, *base[axis + 1 :]) for index in range(count)]
    )

    assert pairs.min() >= -1.0
    assert pairs.max() < 1.0
    for column in pairs.T:
        assert stats.kstest(column, stats.uniform(-1, 2).cdf).pvalue > 1e-4
        assert abs(np.corrcoef(column[:-1], column[1:])[0, 1]) < 4 / np.sqrt(count)
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 4 / np.sqrt(count)


def test_derived_seeds_are_within_range_and_differ():
    """20,000 of 2**63 meet with a probability of 1e-11."""
    positions = itertools.product((0, 1, 2**63 - 1, 12), range(50), range(100))
    seeds = [int(derive_seed(*position)) for position in positions]

    assert min(seeds) >= 0
    assert max(seeds) < 2**63
    assert len(set(seeds)) == len(seeds) == 20_000
    shares = np.array(seeds, dtype=float) / 2**63
    assert stats.kstest(shares, "uniform").pvalue > 1e-4


@settings(max_examples=examples(100), deadline=None)
@given(seed=WORDS, first=WORDS, second=WORDS)
def test_a_derived_seed_shares_no_word_with_the_draws_at_its_position(seed, first, second):
    """Draws have a key of their own: neither the word itself nor its upper 63 bits."""
    drawn = {int(word) >> 1 for word in philox(seed, 0, first, second, 0, 0)}

    assert int(derive_seed(seed, first, second)) not in drawn


@settings(deadline=None)
@given(
    seed=WORDS,
    num_links=st.integers(0, 6),
    segment=WORDS,
    swings=st.tuples(st.floats(0, 0.95), st.floats(0, 0.95)),
)
def test_factors_are_one_and_the_swing_times_the_pair_of_the_link(seed, num_links, segment, swings):
    factors = uniform_factors_of_links(seed, num_links, segment, *swings)

    assert factors.shape == (2, num_links)
    for link in range(num_links):
        pair = uniform_pair(seed, link, segment)
        assert factors[:, link].tolist() == [
            1.0 + swing * eps for swing, eps in zip(swings, pair, strict=True)
        ]


@settings(deadline=None)
@given(interval_s=st.floats(1e-3, 1e3), time_s=st.floats(0.0, 1e10))
def test_a_time_lies_in_its_segment_and_a_border_in_the_one_it_opens(interval_s, time_s):
    segment = segment_at(time_s, interval_s)

    assert segment * interval_s <= time_s < (segment + 1) * interval_s
    border_s = segment * interval_s
    assert segment_at(border_s, interval_s) * interval_s <= border_s
    assert (segment_at(border_s, interval_s) + 1) * interval_s > border_s


@settings(deadline=None)
@given(interval_s=st.floats(1e-3, 1e3), start_s=st.floats(0.0, 1e6), time_s=st.floats(0.0, 1e6))
def test_the_segment_that_rules_ends_after_the_time_as_the_iteration_counts_it(
    interval_s, start_s, time_s
):
    segment = segment_ruling(start_s, time_s, interval_s)

    assert segment * interval_s - start_s <= time_s
    assert (segment + 1) * interval_s - start_s > time_s
