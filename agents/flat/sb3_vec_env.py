"""The batched environment as Stable-Baselines3's vector environment; needs the extra ``sb3``."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.env import placement_spaces
from agents.flat.task import PlacementTask
from agents.ppo.batch_step import BatchStep, SteppedBatch

Indices = None | int | Iterable[int]


class BatchSB3VecEnv(VecEnv):
    """A batch of N environments for the algorithms of Stable-Baselines3.

    The ``infos`` of environments whose episode has just ended hold ``terminal_observation``,
    ``TimeLimit.truncated``, ``episode`` (return "r" and length "l", as its ``Monitor`` has them)
    and every figure of the last epoch; those of the others are empty, as nothing is done for each
    environment in each step. `metrics` has the figures of every step, as arrays.

    Parameters
    ----------
    make_batch
        Makes the batch of a seed.
    num_envs, seed
        ``seed`` holds until the method of that name, or the seed of an algorithm, gives another.
    observation_space, action_space
        Of one environment.
    """

    def __init__(
        self,
        make_batch: Callable[[int], SteppedBatch],
        num_envs: int,
        observation_space: gymnasium.spaces.Box,
        action_space: gymnasium.spaces.MultiDiscrete | gymnasium.spaces.Discrete,
        *,
        seed: int,
    ) -> None:
        self._make_batch = make_batch
        self.render_mode = None
        self.metrics: Mapping[str, npt.NDArray[np.float64]] = {}
        super().__init__(num_envs, observation_space, action_space)
        self._reset_ended(seed)

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin the next episode everywhere; the first one after a new seed."""
        if any(self._options):
            raise ValueError(f"vector environment: options must be empty, got {self._options!r}")
        if self._seeds[0] is not None:
            self._batch.close()
            self._reset_ended(self._seeds[0])
            self._reset_seeds()
        self._returns[:] = 0.0
        self._lengths[:] = 0
        return self._batch.reset()

    def step_async(self, actions: npt.NDArray[np.int64]) -> None:
        """Take the actions (N, A) of the next step."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[
        npt.NDArray[np.float32],
        npt.NDArray[np.float32],
        npt.NDArray[np.bool_],
        list[dict[str, Any]],
    ]:
        """Apply the actions."""
        step = self._batch.step(self._actions)
        self.metrics = step.metrics
        self._returns += step.rewards
        self._lengths += 1
        ended = step.terminated | step.truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row in np.flatnonzero(ended).tolist():
            infos[row] = self._last_info(step, row)
        self._returns[ended] = 0.0
        self._lengths[ended] = 0
        return step.observations, step.rewards, ended, infos

    def close(self) -> None:
        """End the workers, if any."""
        self._batch.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of the batch, the same for each environment."""
        value = getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Refuse: the environments of a batch have no attributes of their own."""
        raise AttributeError(f"vector environment: {attr_name} cannot be set on one of a batch")

    def env_method(
        self, method_name: str, *_: Any, indices: Indices = None, **__: Any
    ) -> list[Any]:
        """Refuse: the environments of a batch have no methods of their own."""
        raise AttributeError(
            f"vector environment: {method_name} cannot be called on one of a batch"
        )

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """Tell that episodes are counted as `Monitor` does it; nothing else is wrapped."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    def _reset_ended(self, seed: int) -> None:
        self._batch = self._make_batch(seed)
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, dtype=np.int64)

    def _last_info(self, step: BatchStep, row: int) -> dict[str, Any]:
        """Everything about an episode that has just ended."""
        return {
            "terminal_observation": step.final_observations[row],
            "TimeLimit.truncated": bool(step.truncated[row] and not step.terminated[row]),
            "episode": {"r": float(self._returns[row]), "l": int(self._lengths[row])},
            **{name: float(values[row]) for name, values in step.metrics.items()},
        }


class PlacementSB3VecEnv(BatchSB3VecEnv):
    """N placement environments for the algorithms of Stable-Baselines3.

    Parameters
    ----------
    task
        Task of every environment.
    num_envs, seed, num_workers
        As in `BatchedPlacementEnv`, and in `BatchSB3VecEnv`.

    Examples
    --------
    >>> from agents.flat.env import make_task
    >>> env = PlacementSB3VecEnv(make_task(num_layers=4), num_envs=2, seed=0)
    >>> env.reset().shape
    (2, 21)
    >>> env.close()
    """

    def __init__(
        self, task: PlacementTask, *, num_envs: int, seed: int, num_workers: int = 1
    ) -> None:
        self.task = task

        def make_batch(first: int) -> BatchedPlacementEnv:
            return BatchedPlacementEnv(task, num_envs=num_envs, seed=first, num_workers=num_workers)

        super().__init__(make_batch, num_envs, *placement_spaces(task), seed=seed)
