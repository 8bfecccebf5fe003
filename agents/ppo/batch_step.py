"""Batches of environments, and the result of their steps; a module that needs no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from des.base.checks import require_count, require_seed


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStep:
    """Result of one step of N environments; D entries per observation.

    ``observations`` (N, D) are what the next action is chosen on: already the first of the next
    episode where one ended. ``final_observations`` (N, D) are what the step reached before any
    reset, so the two are equal where no episode ended. ``terminated`` (N,) says that the task
    itself ended there, ``truncated`` (N,) that only a time limit did. ``metrics`` are quantities
    to report, each (N,). The arrays are made for this step: later ones leave them as they are.
    """

    observations: npt.NDArray[np.float32]
    final_observations: npt.NDArray[np.float32]
    rewards: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    metrics: Mapping[str, npt.NDArray[np.float64]]

    def __post_init__(self) -> None:
        shape = self.observations.shape
        if len(shape) != 2:
            raise ValueError(f"batch step: observations must be shaped (N, D), got {shape}")
        _check_array("observations", self.observations, shape, np.float32)
        _check_array("final_observations", self.final_observations, shape, np.float32)
        _check_array("rewards", self.rewards, shape[:1], np.float32)
        _check_array("terminated", self.terminated, shape[:1], np.bool_)
        _check_array("truncated", self.truncated, shape[:1], np.bool_)
        for name, values in self.metrics.items():
            _check_array(f"metric {name!r}", values, shape[:1], np.float64)


class SteppedBatch(Protocol):
    """N episodes stepped together: arrays in, arrays out."""

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin the next episode everywhere."""

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions (N, A)."""

    def close(self) -> None:
        """End the workers, if any."""


def _check_array(
    field: str, array: npt.NDArray[np.generic], shape: tuple[int, ...], dtype: type[np.generic]
) -> None:
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(
            f"batch step: {field} must be {np.dtype(dtype)} shaped {shape}, "
            f"got {array.dtype} shaped {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"batch step: {field} must be finite, got {array!r}")


TaskStep = tuple[npt.NDArray[np.float32], float, bool]
"""Observation (D,), reward, and whether the episode is over."""


class EpisodeTask(Protocol):
    """One simulator whose episodes follow from their seeds and the actions."""

    def reset(self, seed: int) -> npt.NDArray[np.float32]:
        """Begin the episode of a seed and return its first observation (D,)."""

    def step(self, action: Any, /) -> TaskStep:
        """Apply an action."""


TaskT = TypeVar("TaskT", bound=EpisodeTask)


class ReplayedBatch(Generic[TaskT]):
    """N tasks of `agents.ppo.rollout.BatchedEnvironment`; task ``i`` has seeds of its own.

    A state is the number of each episode and its actions: `load_state` plays these again, which
    gives the same to the last bit.

    Parameters
    ----------
    owner
        Name in error messages.
    num_envs, seed
        Number of tasks N, and seed of their episodes, see `training_seed`.
    make_task
        Called N times.
    """

    first_episode: ClassVar[int] = 0
    state_names: ClassVar[tuple[str, str]] = ("episodes", "actions")
    """Names in a state, which is part of checkpoints: numbers of episodes, actions in them."""
    has_time_limit: ClassVar[bool] = False
    """Whether episodes are truncated, not terminated."""

    def __init__(
        self, owner: str, num_envs: int, seed: int, make_task: Callable[[], TaskT]
    ) -> None:
        require_count(owner, "num_envs", num_envs)
        require_seed(owner, "seed", seed)
        self.num_envs, self.seed = num_envs, seed
        self.tasks = [make_task() for _ in range(num_envs)]
        self._episodes = [self.first_episode - 1] * num_envs
        self._actions: list[list[list[int]]] = [[] for _ in range(num_envs)]

    def play(self, task: TaskT, choices: list[int]) -> TaskStep:
        """Apply the choices of one action to a task."""
        return task.step(choices)

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin new episodes and return their first observations (N, D)."""
        return np.stack([self._begin(place) for place in range(self.num_envs)])

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions (N, A)."""
        outcomes = [
            self._step(place, choices) for place, choices in enumerate(np.asarray(actions).tolist())
        ]
        finals, rewards, over = (list(column) for column in zip(*outcomes, strict=True))
        firsts = [
            self._begin(place) if is_over else final
            for place, (final, is_over) in enumerate(zip(finals, over, strict=True))
        ]
        ended, not_ended = np.array(over, np.bool_), np.zeros(self.num_envs, np.bool_)
        return BatchStep(
            observations=np.stack(firsts),
            final_observations=np.stack(finals),
            rewards=np.array(rewards, np.float32),
            terminated=not_ended if self.has_time_limit else ended,
            truncated=ended if self.has_time_limit else not_ended,
            metrics={},
        )

    def state(self) -> dict[str, object]:
        """Numbers of episodes, and actions so far."""
        episodes, actions = self.state_names
        return {episodes: list(self._episodes), actions: [list(each) for each in self._actions]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Play the actions of a state again."""
        episodes, actions = (state[name] for name in self.state_names)
        for place, (episode, played) in enumerate(zip(episodes, actions, strict=True)):
            self._episodes[place] = int(episode) - 1
            self._begin(place)
            for choices in played:
                self._step(place, list(choices))

    def close(self) -> None:
        """End nothing: all is in this process."""

    def _step(self, place: int, choices: list[int]) -> TaskStep:
        self._actions[place].append(choices)
        return self.play(self.tasks[place], choices)

    def _begin(self, place: int) -> npt.NDArray[np.float32]:
        self._episodes[place] += 1
        self._actions[place] = []
        return self.tasks[place].reset(training_seed(self.seed, place, self._episodes[place]))


def training_seed(seed: int, place: int, episode: int) -> int:
    """Seed of an episode to train on, at least 2**20; smaller ones are kept to compare on.

    Examples
    --------
    >>> training_seed(0, 0, 0) >= 2**20
    True
    """
    (entry,) = np.random.SeedSequence((seed, place, episode)).generate_state(1, np.uint64)
    return (int(entry) >> 2) | 2**20
