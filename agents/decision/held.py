"""The network of an epoch as it is held from the start of the epoch."""

from agents.decision.world import DecisionWorld
from des import (
    Topology,
)


def held_topology(world: DecisionWorld, draw_seed: int, epoch: int) -> Topology:
    """Return the network at the start of an epoch of a draw, as it is held through the epoch."""
    return world.epoch_topology(draw_seed, epoch).at_start()


def held_topologies(world: DecisionWorld, draw_seed: int) -> tuple[Topology, ...]:
    """Return `held_topology` of all epochs of a draw."""
    return tuple(held_topology(world, draw_seed, epoch) for epoch in range(world.num_epochs))
