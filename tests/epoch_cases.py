"""Worlds with a decision in every epoch, and tables of episodes, by hand and drawn."""

from dataclasses import dataclass, replace

import numpy as np
from strategies import plan, unit_workload, world

from agents.replanning.tables import EpisodeTables, levels_of
from des import Topology, Workload
from des.plan.replacement import Replacement

FOUR_LAYERS = unit_workload([(1, 1)] * 4, num_microbatches=2)
"""Four layers of one parameter, so 16 bytes of state, each."""

FREE_PAIR = world("AB", {"AB": (8.0, 0.0), "BA": (8.0, 0.0)})
"""A layer's 16 bytes take 2 s either way; messages without bytes take no time."""


RESTART_1_S = Replacement(restart_s=1.0)


@dataclass(frozen=True, kw_only=True)
class HandWorld:
    """A world whose epochs are given one by one; draws are equal."""

    epochs: tuple[Topology, ...]
    workload: Workload = FOUR_LAYERS
    topology: Topology = FREE_PAIR
    name: str = "by hand"
    schedule: str = "gpipe"
    epoch_s: float = 100.0
    iterations_per_epoch: int = 10
    replacement: Replacement = RESTART_1_S

    @property
    def num_epochs(self):
        return len(self.epochs)

    def epoch_topology(self, draw_seed, epoch):
        return self.epochs[epoch]


def slowed(factor):
    """The pair of domains with the second one at a part of its speed."""
    first, second = FREE_PAIR.domains
    domains = (first, replace(second, attainable_fraction=factor))
    return replace(FREE_PAIR, domains=domains)


def tables_by_hand(iteration_s, move_s, *, base_s, epoch_s=1.0):
    """Tables of given times, (E, C) and (E, C, C) or (C, C), of plans that differ by their split.

    Plan ``c`` has ``c + 1`` of its layers in the first domain.
    """
    iteration_s = np.array(iteration_s, dtype=np.float64)
    num_epochs, num_plans = iteration_s.shape
    plans = tuple(
        plan(*([0] * (first + 1) + [1] * (num_plans - first))) for first in range(num_plans)
    )
    moves = np.broadcast_to(np.array(move_s, np.float64), (num_epochs, num_plans, num_plans))
    return EpisodeTables(
        plans=plans,
        iteration_s=iteration_s,
        move_s=moves.copy(),
        moved_bytes=np.zeros((num_plans, num_plans)),
        cost_bytes=np.ones(num_plans),
        level=levels_of(plans),
        base_iteration_s=np.array(base_s, dtype=np.float64),
        epoch_s=epoch_s,
        iterations_per_epoch=1,
        flops_per_iteration=1.0,
        tokens_per_iteration=1,
        peak_flops_per_s=1.0,
    )


def drawn_tables(seed, num_epochs, num_plans, *, are_moves_free=False):
    """Tables of random times of about 1; moves take from nothing to several epochs."""
    rng = np.random.default_rng(seed)
    moves = rng.uniform(0.0, 3.0, (num_epochs, num_plans, num_plans)) * rng.choice([0.1, 1.0])
    moves *= 0.0 if are_moves_free else 1.0 - np.eye(num_plans)
    return tables_by_hand(
        rng.uniform(0.5, 2.0, (num_epochs, num_plans)),
        moves,
        base_s=rng.uniform(0.5, 2.0, num_plans),
    )
