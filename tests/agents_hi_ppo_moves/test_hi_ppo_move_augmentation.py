"""Variants of episodes for the training of the move policy."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from move_episodes import random_tables

from agents.hi_ppo.moves.move_augmentation import (
    VariantConfig,
    move_price_epochs,
    variant_of,
    with_epochs,
    with_prices,
)
from agents.hi_ppo.moves.move_costs import MoveCosts
from agents.hi_ppo.moves.move_env import clairvoyant_work
from agents.replanning.tables import EpisodeTables, total_s


def assert_same(one: EpisodeTables, other: EpisodeTables) -> None:
    for field in dataclasses.fields(EpisodeTables):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def test_all_epochs_at_the_same_price_are_the_same_episode() -> None:
    tables = random_tables(0)
    assert_same(with_prices(with_epochs(tables, np.arange(tables.num_epochs)), 1.0), tables)
    config = VariantConfig(strides=(1,), price_factors=(1.0, 1.0), num_plans=tables.num_plans)
    price = move_price_epochs(tables)
    config = dataclasses.replace(config, price_epochs=(price, price))
    for seed in range(4):
        variant = variant_of([tables], config, np.random.default_rng(seed))
        assert_same(variant, dataclasses.replace(tables, move_s=variant.move_s))
        assert variant.move_s == pytest.approx(tables.move_s, rel=1e-12)


@settings(deadline=None, max_examples=examples(20))
@given(
    seed=st.integers(0, 100),
    factor=st.floats(0.0, 10.0),
    stride=st.integers(1, 4),
    path_seed=st.integers(0, 100),
)
def test_a_path_pays_as_often_as_before_and_the_factor_as_much(
    seed: int, factor: float, stride: int, path_seed: int
) -> None:
    """A constant plan costs the same; of other plans all but iterations scales."""
    tables = with_epochs(random_tables(seed), np.arange(0, 24, stride))
    dearer = with_prices(tables, factor)
    rng = np.random.default_rng(path_seed)
    path = rng.integers(tables.num_plans, size=tables.num_epochs)
    still = np.full(tables.num_epochs, path[0])

    def left_by_moves(priced: EpisodeTables) -> float:
        epochs = range(1, priced.num_epochs)
        return float(priced.undone_by_move[epochs, path[:-1], path[1:]].sum())

    assert total_s(dearer, still) == total_s(tables, still)
    assert left_by_moves(dearer) == pytest.approx(factor * left_by_moves(tables))


def test_the_price_is_the_median_of_far_moves_in_epochs() -> None:
    """Of plans 0*4,1*4 under two depths and 0*3,1*5, only moves to the latter count."""
    tables = random_tables(3, num_plans=3)
    static = tables.static
    far = [plan for plan in range(3) if tables.level[static, plan] >= 2]
    move_s = np.full(tables.move_s.shape, 7.0)
    move_s[:, static, far] = 30.0
    move_s[:, range(3), range(3)] = 0.0
    move_s[0, static, far] = np.inf  # cannot be: does not count
    one = dataclasses.replace(tables, move_s=move_s)
    assert move_price_epochs(one) == pytest.approx(3.0)
    assert move_price_epochs(with_prices(one, 2.0)) == pytest.approx(6.0)
    assert np.isinf(with_prices(one, 0.0).move_s[0, static, far]).all()


@settings(deadline=None, max_examples=examples(20))
@given(seed=st.integers(0, 1000))
def test_variants_hold_epochs_and_plans_of_the_draws_and_repeat_themselves(seed: int) -> None:
    draws = [random_tables(4), random_tables(4)]
    draws[1] = dataclasses.replace(draws[1], iteration_s=2.0 * draws[1].iteration_s)
    config = VariantConfig(num_epochs=10, num_plans=5)
    one, again = (variant_of(draws, config, np.random.default_rng(seed)) for _ in range(2))

    assert_same(one, again)
    assert one.num_epochs == 10
    assert one.num_plans == 5
    assert draws[0].plans[draws[0].static] == one.plans[one.static]
    columns = [draws[0].plans.index(plan) for plan in one.plans]
    rows = {row.tobytes() for draw in draws for row in draw.iteration_s[:, columns]}
    assert {row.tobytes() for row in one.iteration_s} <= rows
    assert clairvoyant_work(MoveCosts.of(one)) > 0.0


def test_at_a_stride_what_held_for_four_epochs_holds_for_two() -> None:
    tables = random_tables(1, num_plans=2, num_epochs=32)
    held = dataclasses.replace(tables, iteration_s=np.repeat(tables.iteration_s[::4], 4, axis=0))
    config = VariantConfig(strides=(2,), num_epochs=16)
    for seed in range(4):
        variant = variant_of([held], config, np.random.default_rng(seed))
        changes = np.flatnonzero(np.diff(variant.iteration_s, axis=0).any(axis=1))
        assert variant.num_epochs == 16
        assert set(np.diff(changes).tolist()) == {2}


def test_what_cannot_be_is_refused() -> None:
    tables = random_tables(0)
    with pytest.raises(ValueError, match="epochs must be one or more from 0 to 23"):
        with_epochs(tables, [24])
    with pytest.raises(ValueError, match="factor must be at least 0"):
        with_prices(tables, float("nan"))
    with pytest.raises(ValueError, match="strides must be one or more"):
        VariantConfig(strides=())
    with pytest.raises(ValueError, match="price_epochs must be positive"):
        VariantConfig(price_epochs=(0.0, 1.0))
    broken = dataclasses.replace(tables, iteration_s=np.full_like(tables.iteration_s, np.inf))
    with pytest.raises(ValueError, match="works in all epochs"):
        variant_of([broken], VariantConfig(), np.random.default_rng(0))
