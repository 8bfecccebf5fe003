"""The queueing task as a Gymnasium environment, ``EastWest/Queue-v0``."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from agents.cluster.queue_task import QueueSimulator, drawn_queue
from des.cluster.world import World


class QueueEnv(gymnasium.Env[npt.NDArray[np.float32], npt.NDArray[np.int64]]):
    """Choose the order of a queue of jobs, every hour.

    The action is three numbers of weights, see `agents.cluster.weighted_ordering`; observation and
    reward are those of `agents.cluster.queue_task.QueueSimulator`. An episode terminates when all
    jobs have ended.

    Parameters
    ----------
    make_world
        World of an episode's seed; default: `agents.cluster.queue_task.drawn_queue`.

    Examples
    --------
    >>> env = gymnasium.make("EastWest/Queue-v0")
    >>> observation, _ = env.reset(seed=0)
    >>> env.observation_space.contains(observation), env.action_space.nvec.tolist()
    (True, [7, 5, 5])

    Several at once, stepped together:

    >>> envs = gymnasium.make_vec("EastWest/Queue-v0", num_envs=2, vectorization_mode="sync")
    >>> observations, _ = envs.reset(seed=0)
    >>> observations.shape
    (2, 25)
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        *,
        make_world: Callable[[int], World] = drawn_queue,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"environment: render_mode must be None, got {render_mode!r}")
        self.render_mode = None
        self.simulator = QueueSimulator(make_world=make_world)
        size = self.simulator.observation_size
        self.observation_space = gymnasium.spaces.Box(0.0, 32.0, (size,), np.float32)
        self.action_space = gymnasium.spaces.MultiDiscrete(list(self.simulator.action_sizes))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin a queue that the environment's generator draws."""
        if options:
            raise ValueError(f"environment: options must be empty, got {options!r}")
        super().reset(seed=seed)
        queue = int(self.np_random.integers(2**31))
        return self.simulator.reset(queue), {"queue": queue}

    def step(
        self, action: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Order jobs for an hour."""
        observation, reward, is_over = self.simulator.step(np.asarray(action).tolist())
        return observation, reward, is_over, False, {}
