"""Rules of re-planning: what must hold for all of them, in any episode."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from epoch_cases import drawn_tables
from hypothesis import given
from hypothesis import strategies as st

from agents.replanning.rules import Clairvoyant, FollowTheLeader, Horizon, clairvoyant, greedy
from agents.replanning.table import RULES
from agents.replanning.tables import total_s

JUMPS = st.builds(drawn_tables, st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 6))


@given(tables=JUMPS, seed=st.integers(0, 2**32 - 1))
def test_whatever_is_known_no_rule_takes_what_is_not(tables, seed):
    rng = np.random.default_rng(seed)
    known_from = rng.integers(tables.num_epochs + 1, size=tables.num_plans)
    known_from[rng.integers(tables.num_plans)] = 0
    tables = replace(tables, known_from=known_from)

    for name, rule in RULES.items():
        path = rule(tables)
        if name != "clairvoyant":
            assert (known_from[path] <= np.arange(tables.num_epochs)).all(), name


@given(tables=JUMPS)
def test_to_know_all_from_the_first_epoch_on_is_to_be_told_nothing(tables):
    told = replace(tables, known_from=np.zeros(tables.num_plans, dtype=np.int64))

    for name, rule in RULES.items():
        assert rule(told).tolist() == rule(tables).tolist(), name


@pytest.mark.parametrize("horizon", [-1.0, math.nan])
def test_horizons_are_not_negative(horizon):
    with pytest.raises(ValueError, match="num_epochs must be at least 0"):
        Horizon(horizon)
    with pytest.raises(ValueError, match="one or more of at least 0"):
        FollowTheLeader((1.0, horizon))


@given(tables=JUMPS)
def test_no_rule_is_better_than_the_clairvoyant(tables):
    bound_s = total_s(tables, clairvoyant(tables))

    for name, rule in RULES.items():
        assert bound_s <= total_s(tables, rule(tables)) * (1 + 1e-12), name


@given(seed=st.integers(0, 2**32 - 1), num_epochs=st.integers(1, 4), num_plans=st.integers(1, 4))
def test_the_clairvoyant_is_the_best_of_all_paths(seed, num_epochs, num_plans):
    tables = drawn_tables(seed, num_epochs, num_plans)

    paths = np.ndindex(*[num_plans] * num_epochs)
    least_s = min(total_s(tables, path) for path in paths)

    assert total_s(tables, clairvoyant(tables)) == pytest.approx(least_s)


@given(seed=st.integers(0, 2**32 - 1), num_epochs=st.integers(1, 12), num_plans=st.integers(1, 6))
def test_greedy_is_the_clairvoyant_where_moves_are_free(seed, num_epochs, num_plans):
    tables = drawn_tables(seed, num_epochs, num_plans, are_moves_free=True)

    assert total_s(tables, greedy(tables)) == pytest.approx(total_s(tables, clairvoyant(tables)))


@given(tables=JUMPS)
def test_no_horizon_holds_and_an_endless_one_is_greedy(tables):
    assert Horizon(0.0)(tables).tolist() == [tables.static] * tables.num_epochs
    assert Horizon(1e12)(tables).tolist() == greedy(tables).tolist()


@given(tables=JUMPS, horizon=st.floats(0.0, 20.0))
def test_who_has_one_horizon_to_follow_has_that_horizon(tables, horizon):
    assert FollowTheLeader((horizon,))(tables).tolist() == Horizon(horizon)(tables).tolist()


@given(tables=JUMPS)
def test_fewer_levels_are_never_better(tables):
    split_only = Clairvoyant(("depth", "split"))(tables)
    nothing = Clairvoyant(())(tables)

    assert len(set(nothing.tolist())) == 1
    totals = [total_s(tables, path) for path in (clairvoyant(tables), split_only, nothing)]
    assert totals[0] <= totals[1] * (1 + 1e-12) <= totals[2] * (1 + 2e-12)


@given(tables=JUMPS, scale=st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(tables, scale):
    """Powers of two, so that nothing rounds."""
    factor = 2.0 ** round(math.log2(scale))
    scaled = replace(
        tables,
        iteration_s=tables.iteration_s * factor,
        move_s=tables.move_s * factor,
        epoch_s=tables.epoch_s * factor,
    )

    for name, rule in RULES.items():
        assert rule(scaled).tolist() == rule(tables).tolist(), name


def test_the_clairvoyant_of_many_plans_is_quick():
    tables = drawn_tables(0, 64, 128)

    began_s = time.process_time()
    clairvoyant(tables)

    assert time.process_time() - began_s < 0.5
