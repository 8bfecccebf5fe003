"""The network of an epoch as it is held from the start of the epoch."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from agents.decision.world import DecisionWorld
from des import Topology
from des.compiled.many.layout import Whole
from des.dynamics.link_course import Weather


def freeze_topology(world: DecisionWorld, draw_seed: int, epoch: int) -> Topology:
    """Return the network at the start of an epoch of a draw, as it is held through the epoch."""
    return world.epoch_topology(draw_seed, epoch).at_start()


def freeze_topologies(
    world: DecisionWorld, draw_seed: int, num_epochs: int | None = None
) -> tuple[Topology, ...]:
    """Return `freeze_topology` of a draw's first epochs (None: all), its course drawn once."""
    courses: dict[Hashable, Weather] = {}
    count = world.num_epochs if num_epochs is None else num_epochs
    epochs = (world.epoch_topology(draw_seed, epoch) for epoch in range(count))
    return tuple(_held(topology, courses) for topology in epochs)


def _held(topology: Topology, courses: dict[Hashable, Weather]) -> Topology:
    """``topology.at_start()``, by the course of its links from 0 s on, which epochs share."""
    movement, links = topology.movement, topology.links
    if movement is None:
        return topology
    key = (movement.law, movement.seed, links)
    if key not in courses:
        courses[key] = Weather(replace(movement, start_s=0.0), links)
    pieces = [courses[key].piece(link, movement.start_s) for link in range(len(links))]
    bandwidth_factors, latency_factors, _ = np.array(pieces).T
    return topology.scaled(bandwidth_factors, latency_factors)


def distinct_networks(networks: Sequence[Topology]) -> tuple[list[Topology], Whole]:
    """Networks without those seen before, and which of them each epoch has, (E,)."""
    numbers: dict[Topology, int] = {}
    epochs = [numbers.setdefault(one, len(numbers)) for one in networks]
    return list(numbers), np.array(epochs)
