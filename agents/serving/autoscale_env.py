"""The autoscaling task as a Gymnasium environment, ``EastWest/Autoscale-v0``."""

from typing import Any

import gymnasium
import numpy as np

from agents.ppo.episode_env import EpisodeEnv
from agents.serving.autoscale_task import TraceRLSimulator
from agents.serving.rl_state import (
    RLActionExecutor,
    RLRewardCalculator,
    RLStateCollector,
    ScalingWeights,
)


class AutoscaleEnv(EpisodeEnv):
    """Scale a prompt pool and a token pool over a day of requests, every 10 s.

    The action is `agents.serving.rl_state.RLActionExecutor`'s, the observation
    `agents.serving.rl_state.RLStateCollector`'s, the reward
    `agents.serving.rl_state.RLRewardCalculator`'s. An episode ends with its day: that is a time
    limit, so it is truncated.

    Parameters
    ----------
    simulator
        Source of episodes; None: drawn days.
    weights
        Weights of the reward, which are part of the observation.
    action_arguments
        Arguments of the action: ``action_scale_step``, ``action_mig_step``,
        ``min_instances_per_pool``, ``max_total_instances``, ``is_adaptive``.

    Examples
    --------
    >>> env = gymnasium.make("EastWest/Autoscale-v0")
    >>> observation, _ = env.reset(seed=0)
    >>> env.observation_space.contains(observation), env.action_space.shape
    (True, (3,))
    """

    def __init__(
        self,
        *,
        simulator: TraceRLSimulator | None = None,
        weights: ScalingWeights | None = None,
        render_mode: str | None = None,
        **action_arguments: Any,
    ) -> None:
        weights = weights or ScalingWeights()
        self.simulator = simulator or TraceRLSimulator(
            collector=RLStateCollector(weights=weights),
            executor=RLActionExecutor(**action_arguments),
            calculator=RLRewardCalculator(weights=weights),
        )
        super().__init__(
            self.simulator, episode_name="day", has_time_limit=True, render_mode=render_mode
        )
        size = self.simulator.collector.size
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
