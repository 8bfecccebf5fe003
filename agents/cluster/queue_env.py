"""The queueing task as a Gymnasium environment, ``EastWest/Queue-v0``."""

from collections.abc import Callable

import gymnasium
import numpy as np

from agents.cluster.queue_task import QueueSimulator, draw_queue
from agents.ppo.episode_env import EpisodeEnv
from des.cluster.world import World


class QueueEnv(EpisodeEnv):
    """Choose the order of a queue of jobs, every hour.

    The action is three numbers of weights, see `agents.cluster.weighted_ordering`; observation and
    reward are those of `agents.cluster.queue_task.QueueSimulator`. An episode terminates when all
    jobs have ended.

    Parameters
    ----------
    make_world
        World of an episode's seed; default: `agents.cluster.queue_task.draw_queue`.

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

    def __init__(
        self,
        *,
        make_world: Callable[[int], World] = draw_queue,
        render_mode: str | None = None,
    ) -> None:
        self.simulator = QueueSimulator(make_world=make_world)
        super().__init__(
            self.simulator, episode_name="queue", has_time_limit=False, render_mode=render_mode
        )
        size = self.simulator.observation_size
        self.observation_space = gymnasium.spaces.Box(0.0, 32.0, (size,), np.float32)
        self.action_space = gymnasium.spaces.MultiDiscrete(list(self.simulator.action_sizes))
