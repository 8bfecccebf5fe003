"""What policies come to in games: those of a network, and those that follow one rule."""

import numpy as np
import torch

from agents.hi_ppo.moves.move_env import MoveGame
from agents.hi_ppo.moves.move_network import MoveNetwork, choice_log_probs
from des.compiled.many.layout import Real


def policy_of(network: MoveNetwork, game: MoveGame, rows_at_once: int = 16384) -> Real:
    """Probability of each choice in each state of a game, (S, U)."""
    parts = []
    with torch.no_grad():
        for start in range(0, game.num_states, rows_at_once):
            rows = slice(start, start + rows_at_once)
            logits = network(torch.from_numpy(game.observation[rows]))
            of_rule = torch.from_numpy(game.choice_of_rule[rows].astype(np.int64))
            parts.append(choice_log_probs(logits.double(), of_rule, game.chosen.shape[1]).exp())
    return torch.cat(parts).numpy()


def greedy_of(probability: Real) -> Real:
    """The policy that always makes the likeliest choice, (S, U)."""
    greedy = np.zeros_like(probability)
    greedy[np.arange(len(greedy)), probability.argmax(axis=1)] = 1.0
    return greedy


def cost_of(game: MoveGame, probability: Real) -> Real:
    """Mean cost of an epoch of each episode under a policy, over the clairvoyant's, (G,)."""
    _, of_state = game.values(probability)
    return of_state[game.starts] / game.num_epochs


def constant_of(game: MoveGame, rule: int) -> Real:
    """The policy that follows one rule in all states, by its index in `RULES`, (S, U)."""
    constant = np.zeros(game.cost.shape)
    constant[np.arange(game.num_states), game.choice_of_rule[:, rule]] = 1.0
    return constant
