"""Networks and loads of a training run to come: they depend on the seed, not on the training."""

import numpy as np

from des.clock import Clock
from des.training.background import Background
from des.training.training_settings import EpochView, TrainingRun, observed
from des.world.topology import Topology


def drawn_world(topology: Topology, seed: int, epoch: int) -> Topology:
    """World of an epoch of a run: links that move in time keep the draw that they have."""
    if topology.movement is not None:
        return topology
    return topology.draw_epoch(np.random.default_rng([seed, 1 + epoch]))


def foreseen_views(topology: Topology, run: TrainingRun) -> list[EpochView]:
    """Return links and loads at the nominal start of every epoch of a run; no plan is in force.

    Raises
    ------
    ValueError
        If the run does not end by its number of epochs.
    """
    if run.num_epochs is None:
        raise ValueError("foresight: the run must have num_epochs, got none")
    clock = Clock()
    background = Background(clock, topology, run.background, run.seed)
    world, views = drawn_world(topology, run.seed, 0), list[EpochView]()
    for epoch in range(run.num_epochs):
        start_s = epoch * run.epoch_s
        if epoch > 0:
            clock.run(until=clock.at(start_s))
            if world.movement is None:
                world = drawn_world(topology, run.seed, epoch)
        views.append(
            EpochView(
                epoch=epoch,
                time_s=start_s,
                topology=observed(world.later(start_s)),
                loads=background.loads,
                load_changes=(),
                plan=None,
            )
        )
    return views
