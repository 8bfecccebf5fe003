"""A batch of placement episodes in Python, one after the other: for tasks of any kind."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agents.flat.episode import Episode, EpisodeStep
from agents.flat.kernels.seeds import episode_seed
from agents.flat.task import PlacementTask
from agents.ppo.batch_step import BatchStep
from des import Placement


class SeatState(NamedTuple):
    """Position of one environment: its episode and epoch, from 0, and the last placement.

    ``start_s`` is the time of the episode's course of the links, if it has one, else 0.
    """

    number: int
    epoch: int
    domain_of_layer: tuple[int, ...]
    start_s: float = 0.0


class EpisodeBatch:
    """One `Episode` an environment; it begins the next when one is over.

    Everything random follows from (seed, position in the batch, number of the episode), see
    `agents.flat.kernels.seeds`. What is left to the engine of `des` is left to its compiled twin.
    """

    def __init__(self, task: PlacementTask, num_envs: int, seed: int) -> None:
        self._task = task = task.compiled()
        self._seed = seed
        self._numbers = [-1] * num_envs
        self._episodes = [Episode(task) for _ in range(num_envs)]

    @property
    def bytes_per_env(self) -> None:
        """Unknown memory of an environment."""

    def begin(self) -> npt.NDArray[np.float32]:
        """Begin the next episode in every environment."""
        return np.stack([self._begin(position) for position in range(len(self._episodes))])

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions that are known to be within range."""
        decode = self._task.codec.decode
        steps = [
            episode.step(decode(action))
            for episode, action in zip(self._episodes, actions.tolist(), strict=True)
        ]
        return BatchStep(
            observations=np.stack([self._go_on(*each) for each in enumerate(steps)]),
            final_observations=np.stack([step.observation for step in steps]),
            rewards=np.array([step.reward for step in steps], dtype=np.float32),
            terminated=np.zeros(len(steps), dtype=np.bool_),
            truncated=np.array([step.truncated for step in steps], dtype=np.bool_),
            metrics={
                name: np.array([step.metrics[name] for step in steps]) for name in steps[0].metrics
            },
        )

    def states(self) -> list[SeatState]:
        """Return the position of every environment: episode, epoch and last placement."""
        return [
            SeatState(
                number, episode.epoch, episode.last_placement.domain_of_layer, episode.start_s
            )
            for number, episode in zip(self._numbers, self._episodes, strict=True)
        ]

    def load(self, states: Sequence[SeatState]) -> None:
        """Stand where the environments stood."""
        for position, state in enumerate(states):
            self._numbers[position] = state.number
            placement = Placement(domain_of_layer=state.domain_of_layer)
            seed = self._seed_of(position)
            episode = self._episodes[position]
            episode.resume(seed, state.epoch, placement, start_s=state.start_s)

    def close(self) -> None:
        """Nothing is held."""

    def _go_on(self, position: int, step: EpisodeStep) -> np.ndarray:
        return self._begin(position) if step.truncated else step.observation

    def _begin(self, position: int) -> np.ndarray:
        self._numbers[position] += 1
        return self._episodes[position].begin(self._seed_of(position))

    def _seed_of(self, position: int) -> int:
        return int(episode_seed(self._seed, position, self._numbers[position]))
