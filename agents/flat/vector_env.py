"""The batched environment as Gymnasium's vector environment, ``EastWest/Placement-v0``."""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.env import make_task, placement_spaces
from agents.ppo.batch_step import BatchStep, SteppedBatch

Observations = npt.NDArray[np.float32]
Actions = npt.NDArray[np.int64]
Infos = dict[str, Any]


class BatchVectorEnv(VectorEnv[Observations, Actions, npt.NDArray[Any]]):
    """A batch of N environments as Gymnasium's vector environment.

    An environment whose episode ends begins its next one in the same step: observations are then
    the first of the new episode, ``infos["final_obs"]`` and ``infos["final_info"]`` what the old
    one ended with. Infos are arrays (N,) with a mask each, every figure of the epoch by its name.

    Parameters
    ----------
    make_batch
        Makes the batch of a seed.
    num_envs
        Environments in the batch, N.
    observation_space, action_space
        Of one environment.
    num_seeds
        Seeds from 0 on of which one is drawn where ``reset`` is given none.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        make_batch: Callable[[int], SteppedBatch],
        num_envs: int,
        observation_space: gymnasium.spaces.Box,
        action_space: gymnasium.spaces.MultiDiscrete | gymnasium.spaces.Discrete,
        *,
        num_seeds: int,
    ) -> None:
        self._make_batch, self._num_seeds = make_batch, num_seeds
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.observation_space = batch_space(observation_space, num_envs)
        self.action_space = batch_space(action_space, num_envs)
        self._batch: SteppedBatch | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Begin the first episodes of a seed, or the next ones everywhere without a seed."""
        if options:
            raise ValueError(f"vector environment: options must be empty, got {options!r}")
        super().reset(seed=seed)
        if seed is not None or self._batch is None:
            self.close_extras()
            first = int(self.np_random.integers(self._num_seeds)) if seed is None else seed
            self._batch = self._make_batch(first)
        return self._batch.reset(), {}

    def step(
        self, actions: Actions
    ) -> tuple[
        Observations,
        npt.NDArray[np.float32],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        Infos,
    ]:
        """Apply actions (N, A)."""
        if self._batch is None:
            raise RuntimeError("vector environment: reset must be called first")
        step = self._batch.step(np.asarray(actions))
        return step.observations, step.rewards, step.terminated, step.truncated, infos_of(step)

    def close_extras(self, **_: Any) -> None:
        """End the workers, if any."""
        if self._batch is not None:
            self._batch.close()


class PlacementVectorEnv(BatchVectorEnv):
    """N placement environments stepped together: ``gymnasium.make_vec("EastWest/Placement-v0")``.

    Episodes are those of `BatchedPlacementEnv` with the seed of ``reset``; rewards are float32.

    Parameters
    ----------
    num_envs
        Environments in the batch, N.
    num_workers
        Threads that simulate, as `BatchedPlacementEnv` has them.
    task_arguments
        Those of `agents.flat.env.make_task`.
    """

    def __init__(self, num_envs: int = 1, *, num_workers: int = 1, **task_arguments: Any) -> None:
        self.task = task = make_task(**task_arguments)

        def make_batch(first: int) -> BatchedPlacementEnv:
            return BatchedPlacementEnv(task, num_envs=num_envs, seed=first, num_workers=num_workers)

        super().__init__(make_batch, num_envs, *placement_spaces(task), num_seeds=2**63)


def infos_of(step: BatchStep) -> Infos:
    """Figures of environments in the middle of an episode, and final ones of the others."""
    ended = step.terminated | step.truncated
    infos = _masked(step.metrics, ~ended)
    if ended.any():
        final_obs = np.full(len(ended), None, dtype=object)
        for row in np.flatnonzero(ended).tolist():
            final_obs[row] = step.final_observations[row]
        infos |= {"final_obs": final_obs, "final_info": _masked(step.metrics, ended)}
        infos |= {"_final_obs": ended, "_final_info": ended.copy()}
    return infos


def _masked(metrics: Mapping[str, npt.NDArray[np.float64]], mask: npt.NDArray[np.bool_]) -> Infos:
    """Figures by name, 0 outside the mask, each with the mask under ``_name``."""
    infos: Infos = {}
    for name, values in metrics.items():
        infos[name] = np.where(mask, values, 0.0)
        infos[f"_{name}"] = mask.copy()
    return infos
