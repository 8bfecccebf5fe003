"""Networks that the placement policy of Hi-PPO is trained on."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from des import Topology, Workload
from scenarios.suites import SuiteWorld, suite

WorldOf = Callable[[int, int], SuiteWorld]
"""Gives the world of an index and a seed."""

_NUM_KEPT, _NUM_AT_FIRST, _EPOCHS_PER_WORLD, _USES = 512, 64, 4, 6
"""Networks that are at hand; how many there are at the beginning; epochs that are looked at of each
world; and how many networks are taken before a new one comes in. Drawing worlds takes longer than
judging plans, so each network is taken several times, with other preferences and loads."""


def suite_world(index: int, seed: int) -> SuiteWorld:
    """Return a world of the training suite."""
    return suite("train").world(index, seed)


def training_networks(
    seed: int, world_of: WorldOf = suite_world
) -> Iterator[tuple[Topology, Topology, Workload]]:
    """Networks of worlds as they are at some time, at base figures, and the jobs.

    Each is taken about six times, in no order. Worlds are those of the training suite by default.
    """
    rng = np.random.default_rng(seed)
    fresh = _fresh_networks(world_of, seed, rng)
    kept = [next(fresh) for _ in range(_NUM_AT_FIRST)]
    for taken in itertools.count():
        if taken % _USES == 0:
            if len(kept) < _NUM_KEPT:
                kept.append(next(fresh))
            else:
                kept[int(rng.integers(_NUM_KEPT))] = next(fresh)
        yield kept[int(rng.integers(len(kept)))]


def _fresh_networks(
    world_of: WorldOf, seed: int, rng: np.random.Generator
) -> Iterator[tuple[Topology, Topology, Workload]]:
    for index in itertools.count():
        world = world_of(index, seed)
        for _ in range(_EPOCHS_PER_WORLD):
            epoch, draw_seed = int(rng.integers(world.num_epochs)), int(rng.integers(2**62))
            now = world.epoch_topology(draw_seed, epoch).at_start()
            yield now, world.topology, world.workload
