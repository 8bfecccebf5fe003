"""The network of an epoch as it is held from the start of the epoch."""

from collections.abc import Sequence

import numpy as np

from agents.decision.world import DecisionWorld
from des import Topology
from des.compiled.many.layout import Whole


def held_topology(world: DecisionWorld, draw_seed: int, epoch: int) -> Topology:
    """Return the network at the start of an epoch of a draw, as it is held through the epoch."""
    return world.epoch_topology(draw_seed, epoch).at_start()


def held_topologies(world: DecisionWorld, draw_seed: int) -> tuple[Topology, ...]:
    """Return `held_topology` of all epochs of a draw."""
    return tuple(held_topology(world, draw_seed, epoch) for epoch in range(world.num_epochs))


def distinct_networks(networks: Sequence[Topology]) -> tuple[list[Topology], Whole]:
    """Networks without those seen before, and which of them each epoch has, (E,)."""
    numbers: dict[Topology, int] = {}
    epochs = [numbers.setdefault(one, len(numbers)) for one in networks]
    return list(numbers), np.array(epochs)
