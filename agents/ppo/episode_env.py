"""Tasks of `agents.ppo.batch_step` as Gymnasium environments, an episode of a drawn seed."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from agents.ppo.batch_step import EpisodeTask


class EpisodeEnv(gymnasium.Env[npt.NDArray[np.float32], npt.NDArray[Any]]):
    """One task, with an episode of a drawn seed at each reset.

    Parameters
    ----------
    task
        Simulator of the episodes.
    episode_name
        Name of the seed of an episode in the ``info`` of `reset`.
    has_time_limit
        Whether episodes are truncated at their end, not terminated.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        task: EpisodeTask,
        *,
        episode_name: str,
        has_time_limit: bool,
        render_mode: str | None,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"environment: render_mode must be None, got {render_mode!r}")
        self.render_mode = None
        self._task, self._episode_name = task, episode_name
        self._has_time_limit = has_time_limit

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin an episode whose seed the environment's generator draws."""
        if options:
            raise ValueError(f"environment: options must be empty, got {options!r}")
        super().reset(seed=seed)
        episode = int(self.np_random.integers(2**31))
        return self._task.reset(episode), {self._episode_name: episode}

    def step(
        self, action: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Act for one interval."""
        observation, reward, is_over = self._task.step(np.asarray(action).tolist())
        is_truncated = is_over and self._has_time_limit
        return observation, reward, is_over and not is_truncated, is_truncated, {}
