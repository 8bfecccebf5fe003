"""The move policy's rules, costs, games and training."""

import dataclasses

import numpy as np
import pytest
import torch
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from move_episodes import epoch_costs, following_rule, random_tables

from agents.decision.levels import LEVELS
from agents.decision.situation import Preference
from agents.hi_ppo.moves.move_costs import MoveCosts, with_plans, working_plans
from agents.hi_ppo.moves.move_env import clairvoyant_work, game_of, join_games
from agents.hi_ppo.moves.move_network import MoveNetwork
from agents.hi_ppo.moves.move_policy import MoveArchitecture, MovePolicy, move_network_payload
from agents.hi_ppo.moves.move_rules import (
    HORIZONS_EPOCHS,
    PIPELINE_RULES,
    WHOLE_RULES,
    MoveRule,
    bank_of,
    target_of_each,
    targets,
)
from agents.ppo.checkpoint import CheckpointError
from agents.replanning.rules import Horizon, clairvoyant, hold
from agents.replanning.tables import levels_of, total_s
from des import Placement, Plan
from des.compiled.many.layout import Real

RULES = PIPELINE_RULES.rules
index_of = PIPELINE_RULES.index_of


@pytest.mark.parametrize("horizon", HORIZONS_EPOCHS)
def test_a_constant_policy_walks_the_path_of_its_rule(horizon: float) -> None:
    for seed in range(5):
        tables = random_tables(seed)
        game = game_of(MoveCosts.of(tables))
        rule = index_of("order", horizon)

        path = game.path(game.choice_of_rule[:, rule].astype(np.int64))

        expected = Horizon(horizon)(tables)
        assert path.tolist() == expected.tolist()
        cost = epoch_costs(game, following_rule(game, rule))[0]
        assert cost == pytest.approx(
            2.0 - total_s(tables, clairvoyant(tables)) / total_s(tables, expected)
        )


def test_who_never_moves_walks_the_static_path() -> None:
    tables = random_tables(3)
    game = game_of(MoveCosts.of(tables))

    path = game.path(game.choice_of_rule[:, 0].astype(np.int64))

    assert path.tolist() == hold(tables).tolist() == [tables.static] * tables.num_epochs


def hand_costs() -> MoveCosts:
    """Two plans, four epochs: 1, 3, 3, 1 against 2 throughout; a move costs 0.1."""
    run = np.array([[1.0, 2.0], [3.0, 2.0], [3.0, 2.0], [1.0, 2.0]])
    move = np.broadcast_to(0.1 * (1.0 - np.eye(2)), (4, 2, 2))
    levels = np.array([[0, 3], [3, 0]], dtype=np.int8)
    return MoveCosts(run=run, move=move, base=np.array([1.0, 2.0]), levels=levels)


def test_a_case_of_two_plans_and_four_epochs_is_as_solved_by_hand() -> None:
    """Going over for the slow epochs and back: 1 + 0.9 / 2 + 1 / 2 + 0.9 = 2.85 of work."""
    costs = hand_costs()
    game = game_of(costs)

    def work_of(probability: Real) -> float:
        return float(2.0 - epoch_costs(game, probability)[0]) * 2.85

    assert clairvoyant_work(costs) == pytest.approx(2.85)
    assert game.unit.tolist() == pytest.approx([2.85 / 4.0])
    # H1 moves, as 0.9 / 2 > 1 / 3, and H0.25 never, as 0.15 / 2 < 0.25 / 3.
    by_rule = {rule: work_of(following_rule(game, rule)) for rule in range(len(RULES))}
    assert by_rule[index_of("order", 1.0)] == pytest.approx(2.85)
    assert by_rule[index_of("order", 0.25)] == pytest.approx(8.0 / 3.0)
    assert by_rule[index_of("split", 64.0)] == by_rule[0] == pytest.approx(8.0 / 3.0)
    assert game.least()[game.starts[0]] == pytest.approx(4.0)
    # An even chance of staying and moving in epoch 1, of staying for good after that:
    probability = following_rule(game, 0)
    (state,) = np.flatnonzero((game.epoch == 1) & (game.plan == 0))
    both = game.choice_of_rule[state, [0, index_of("order", 1.0)]]
    assert both[0] != both[1]
    probability[state] = 0.0
    probability[state, both] = 0.5
    expected = 1.0 + 0.5 * (1.0 / 3.0 + 1.0 / 3.0 + 1.0) + 0.5 * (0.45 + 0.5 + 0.5)
    assert work_of(probability) == pytest.approx(expected)
    assert game.occupancy(probability)[game.epoch == 3].tolist() == [0.5, 0.5]


@settings(max_examples=examples(20), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_policy_costs_less_than_the_least_and_chances_add_up(seed: int) -> None:
    tables = random_tables(seed, num_plans=5, num_epochs=10)
    game = game_of(MoveCosts.of(tables))
    drawn = np.random.default_rng(seed).exponential(size=game.cost.shape) * (game.chosen >= 0)
    probability = drawn / drawn.sum(axis=1, keepdims=True)

    chance = game.occupancy(probability)

    assert np.bincount(game.epoch, weights=chance) == pytest.approx(np.ones(10))
    least = game.least()[game.starts[0]] / 10.0
    finite = np.where(game.chosen >= 0, game.cost, 0.0)
    paid = (probability * finite).sum(axis=1)
    assert epoch_costs(game, probability)[0] == pytest.approx((chance * paid).sum() / 10.0)
    assert 1.0 - 1e-9 <= least <= epoch_costs(game, probability)[0] + 1e-9


def test_games_side_by_side_cost_what_they_cost_alone() -> None:
    games = [game_of(MoveCosts.of(random_tables(seed, num_plans=3 + seed))) for seed in range(3)]
    together = join_games(games)

    for rule in (0, index_of("order", 2.0), index_of("split", 8.0)):
        alone = [epoch_costs(game, following_rule(game, rule))[0] for game in games]
        assert epoch_costs(together, following_rule(together, rule)).tolist() == pytest.approx(
            alone
        )


def test_bytes_count_by_their_weight() -> None:
    """By bytes alone an iteration costs its bytes over those of the quickest plan."""
    tables = random_tables(0, num_plans=4)
    weighed = MoveCosts.of(tables, Preference(time=0.0, communication=1.0))

    unit = tables.cost_bytes[tables.static]
    assert weighed.run[0].tolist() == pytest.approx((tables.cost_bytes / unit).tolist())
    sent = 10.0 / tables.base_iteration_s[tables.static] * unit
    assert weighed.move[0, 0, 1] == pytest.approx(100.0 / sent)
    half = MoveCosts.of(tables, Preference(time=0.5, communication=0.5))
    by_time = MoveCosts.of(tables)
    assert half.run == pytest.approx((weighed.run + by_time.run) / 2)
    assert half.move == pytest.approx((weighed.move + by_time.move) / 2)


def test_targets_keep_the_level() -> None:
    tables = random_tables(1, num_plans=12)
    move, now = tables.move_s[3] / 10.0, tables.iteration_s[3]
    chosen = targets(PIPELINE_RULES, move, tables.level, now, tables.base_iteration_s)

    for present in range(12):
        for rule, target in zip(RULES, chosen[present], strict=True):
            assert tables.level[present, target] <= LEVELS.index(rule.level)


@settings(deadline=None, max_examples=examples(30))
@given(seed=st.integers(0, 1000))
def test_rules_taken_one_by_one_take_what_they_take_together(seed: int) -> None:
    """Also where changes cannot be, and where plans cost the same."""
    costs = MoveCosts.of(random_tables(seed, num_plans=9, num_epochs=3))
    rng = np.random.default_rng(seed)
    present = rng.integers(9, size=40)
    rules = rng.integers(len(RULES), size=40)
    move, now = costs.move[1].copy(), np.round(costs.run[1], 1)
    move[rng.random(move.shape) < 0.2] = np.inf
    np.fill_diagonal(move, 0.0)
    levels = costs.levels
    together = targets(PIPELINE_RULES, move, levels, now, costs.base)[present, rules]
    one_by_one = target_of_each(rules, move[present], levels[present], now, costs.base)
    assert one_by_one.tolist() == together.tolist()


def test_costs_that_are_no_numbers_are_refused() -> None:
    costs = hand_costs()
    broken = costs.run.copy()
    broken[2, 1] = np.nan
    with pytest.raises(ValueError, match="run must be positive and finite"):
        dataclasses.replace(costs, run=broken)
    with pytest.raises(ValueError, match="move must be at least 0"):
        dataclasses.replace(costs, move=np.full((4, 2, 2), np.nan))
    with pytest.raises(ValueError, match="level must be one of nothing"):
        MoveRule(level="far", horizon_epochs=1.0, belief=0.0)  # type: ignore[arg-type]


def test_the_bank_holds_the_rules_that_evaluations_compare_with() -> None:
    assert {index_of("order", horizon) for horizon in HORIZONS_EPOCHS} | {0} <= set(
        bank_of(PIPELINE_RULES)
    )


def test_plans_that_do_not_work_are_left_out() -> None:
    """Of four plans one never works; the others keep all their numbers."""
    tables = random_tables(4, num_plans=4)
    broken = tables.iteration_s.copy()
    broken[5, 1] = np.inf
    tables = dataclasses.replace(tables, iteration_s=broken)
    with pytest.raises(ValueError, match="run must be positive and finite"):
        MoveCosts.of(tables)

    working = with_plans(tables, working_plans(tables))

    assert working.plans == tuple(tables.plans[at] for at in (0, 2, 3))
    for epoch in (0, 23):
        assert working.move_s[epoch, 1, 2] == tables.move_s[epoch, 2, 3]
        assert working.iteration_s[epoch].tolist() == broken[epoch, [0, 2, 3]].tolist()
    assert working.level[0, 2] == tables.level[0, 3]
    assert MoveCosts.of(working).num_plans == 3


def test_rules_of_all_families_reach_what_their_levels_allow() -> None:
    """The top level reaches everything, ``order`` neither other groups nor other families."""
    copies = tuple(
        Plan(placement=Placement.parse(one), replicas=(Placement.parse(other),))
        for one, other in (("0*8", "1*8"), ("1*8", "0*8"), ("0*8", "2*8"), ("0*4,2*4", "1*8"))
    )
    tables = random_tables(7)
    plans = (*tables.plans[:4], *copies)
    tables = dataclasses.replace(tables, plans=plans, level=levels_of(plans))
    game = game_of(MoveCosts.of(tables), rule_set=WHOLE_RULES)
    rule = WHOLE_RULES.index_of("family", 2.0)

    path = game.path(game.choice_of_rule[:, rule].astype(np.int64))

    assert path.tolist() == Horizon(2.0)(tables).tolist()
    assert set(tables.level.ravel().tolist()) == set(range(len(LEVELS)))
    for level in ("order", "groups"):
        chosen = np.take_along_axis(
            game.chosen, game.choice_of_rule[:, [WHOLE_RULES.index_of(level, 64.0)]], axis=1
        )[:, 0]
        assert (tables.level[game.plan, chosen] <= LEVELS.index(level)).all()


def test_a_policy_for_all_families_comes_back_with_its_levels() -> None:
    network = MoveNetwork(MoveArchitecture(levels=LEVELS), torch.Generator().manual_seed(0))
    payload = move_network_payload(network)

    again = MovePolicy.from_payload(payload)

    assert again.rule_set == WHOLE_RULES
    assert "levels" not in move_network_payload(MoveNetwork(MoveArchitecture(), torch.Generator()))
    with pytest.raises(CheckpointError, match="levels must be"):
        MovePolicy.from_payload(payload | {"levels": ["nothing", "family"]})
