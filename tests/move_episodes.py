"""Episodes in tables and simple policies for tests of the move policy."""

import numpy as np

from agents.hi_ppo.moves.move_env import MoveGame
from agents.replanning.tables import EpisodeTables, levels_of
from des import Placement, Plan
from des.compiled.many.layout import Real

PLACEMENTS = ("0*4,1*4", "0*3,1*5", "0*6,1*2", "1*4,0*4", "1*8", "0*8", "1*2,0*6")
SCHEDULES = ("1f1b_4x", "1f1b_8x")


def some_plans(num: int) -> tuple[Plan, ...]:
    """Plans that differ by order, split or depth."""
    every = [
        Plan(placement=Placement.parse(text), schedule=schedule)
        for text in PLACEMENTS
        for schedule in SCHEDULES
    ]
    return tuple(every[:num])


def tables_of(iteration_s: Real, move_s: Real, base_s: Real) -> EpisodeTables:
    """An episode of times in epochs of 10 s; moves cost the same in all epochs."""
    num_epochs, num_plans = iteration_s.shape
    chosen = some_plans(num_plans)
    return EpisodeTables(
        plans=chosen,
        iteration_s=iteration_s,
        move_s=np.broadcast_to(move_s, (num_epochs, num_plans, num_plans)),
        moved_bytes=100.0 * (1.0 - np.eye(num_plans)),
        cost_bytes=np.linspace(5.0, 7.0, num_plans),
        level=levels_of(chosen),
        base_iteration_s=base_s,
        epoch_s=10.0,
        iterations_per_epoch=10,
        flops_per_iteration=1.0,
        tokens_per_iteration=1,
        peak_flops_per_s=1.0,
    )


def random_tables(
    seed: int,
    *,
    num_plans: int = 8,
    num_epochs: int = 24,
    leave: float = 0.2,
    enter: float = 0.1,
    factor: float = 3.0,
    price_epochs: float = 0.5,
) -> EpisodeTables:
    """Plans that are now and then slow for a while, each by itself."""
    rng = np.random.default_rng(seed)
    base_s = rng.uniform(1.0, 1.5, num_plans)
    slow = np.zeros((num_epochs, num_plans), dtype=np.bool_)
    for epoch in range(1, num_epochs):
        turns = rng.random(num_plans) < np.where(slow[epoch - 1], leave, enter)
        slow[epoch] = slow[epoch - 1] ^ turns
    noise = np.exp(0.02 * rng.standard_normal(slow.shape))
    move_s = 10.0 * price_epochs * rng.uniform(0.8, 1.2, (num_plans, num_plans))
    np.fill_diagonal(move_s, 0.0)
    return tables_of(base_s * np.where(slow, factor, 1.0) * noise, move_s, base_s)


def greedy(probability: Real) -> Real:
    """The policy that always makes the likeliest choice, (S, U)."""
    chosen = np.zeros_like(probability)
    chosen[np.arange(len(chosen)), probability.argmax(axis=1)] = 1.0
    return chosen


def following_rule(game: MoveGame, rule: int) -> Real:
    """The policy that follows one rule in all states, by its index in `RULES`, (S, U)."""
    constant = np.zeros(game.cost.shape)
    constant[np.arange(game.num_states), game.choice_of_rule[:, rule]] = 1.0
    return constant


def epoch_costs(game: MoveGame, probability: Real) -> Real:
    """Mean cost of an epoch of each episode under a policy, 1 for the clairvoyant, (G,)."""
    _, of_state = game.values(probability)
    return game.epoch_costs(of_state)
