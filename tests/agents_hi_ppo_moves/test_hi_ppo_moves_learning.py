"""Learning of PPO on episodes in tables."""

import pytest
import torch
from move_episodes import epoch_costs, following_rule, greedy, random_tables

from agents.hi_ppo.moves.move_config import MoveTrainingConfig
from agents.hi_ppo.moves.move_costs import MoveCosts, with_plans, working_plans
from agents.hi_ppo.moves.move_env import game_of, join_games
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES
from agents.hi_ppo.moves.move_training import MoveTrainer, choice_probabilities
from agents.replanning.tables import EpisodeTables

RULES = PIPELINE_RULES.rules


def persistent_or_not(seed: int) -> EpisodeTables:
    """By turns slow spells of 24 epochs and of hardly more than one, at the same price."""
    leave = 1.0 / 24.0 if seed % 2 else 0.9
    return random_tables(
        seed, num_plans=3, num_epochs=32, leave=leave, enter=0.12, factor=2.0, price_epochs=1.0
    )


def test_what_is_learnt_beats_every_fixed_rule_where_persistence_decides() -> None:
    """Half of the worlds flicker and half hold; the policy can tell from what it has seen."""
    train = [game_of(MoveCosts.of(persistent_or_not(seed))) for seed in range(80)]
    held_out = join_games(
        [game_of(MoveCosts.of(persistent_or_not(seed))) for seed in range(1000, 1040)]
    )
    config = MoveTrainingConfig(num_updates=30, episodes_per_update=40, minibatch_states=512)

    trainer = MoveTrainer(train, config=config, seed=0)
    rows, network = list(trainer.run()), trainer.network.eval()

    learnt = epoch_costs(held_out, greedy(choice_probabilities(network, held_out))).mean()
    fixed = [
        epoch_costs(held_out, following_rule(held_out, rule)).mean() for rule in range(len(RULES))
    ]
    assert rows[-1].cost < rows[0].cost
    assert learnt < min(fixed) - 0.005


def test_training_repeats_itself_to_the_last_bit() -> None:
    tables = [random_tables(seed, num_epochs=8) for seed in range(4)]
    games = [game_of(MoveCosts.of(with_plans(one, working_plans(one)))) for one in tables]
    config = MoveTrainingConfig(num_updates=3, episodes_per_update=3, hidden_sizes=(16,))

    trainers = [MoveTrainer(games, config=config, seed=seed) for seed in (5, 5, 6)]
    runs = [list(trainer.run()) for trainer in trainers]

    weights = [
        torch.cat([part.flatten() for part in trainer.network.parameters()]).tolist()
        for trainer in trainers
    ]
    assert runs[0] == runs[1]
    assert weights[0] == weights[1] != weights[2]


def test_training_wants_episodes_and_sensible_numbers() -> None:
    with pytest.raises(ValueError, match="games must be one or more"):
        MoveTrainer([], config=MoveTrainingConfig(), seed=0)
    with pytest.raises(ValueError, match="num_updates must be a whole number of at least 1, got 0"):
        MoveTrainingConfig(num_updates=0)
    with pytest.raises(ValueError, match="learning_rate must be positive and at most 1"):
        MoveTrainingConfig(learning_rate=float("nan"))
