"""Seeds of episodes and epochs: everything random in an episode is a function of its seed."""

import numpy as np

from des.base.jit import kernel
from des.base.random_numbers import derived_seed


@kernel
def episode_seed(batch_seed: int, position: int, number: int) -> np.int64:
    """Seed of an episode, the first of which is number 0, of an environment of a batch."""
    return derived_seed(int(derived_seed(batch_seed, position, 0)), number, 0)


@kernel
def world_seed(episode_seed: int) -> np.int64:
    """Seed of an episode's base world."""
    return derived_seed(episode_seed, 0, 0)


@kernel
def course_seed(episode_seed: int) -> np.int64:
    """Seed of the one course that the links take through an episode."""
    return derived_seed(episode_seed, 0, 1)


@kernel
def epoch_seed(episode_seed: int, epoch: int) -> np.int64:
    """Seed of how the links move in an epoch, counted from 0."""
    return derived_seed(episode_seed, 1 + epoch, 0)
