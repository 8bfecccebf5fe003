"""The autoscaling task as a Gymnasium environment, ``EastWest/Autoscale-v0``."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from agents.serving.autoscale_task import TraceRLSimulator
from agents.serving.rl_state import (
    RLActionExecutor,
    RLRewardCalculator,
    RLStateCollector,
    ScalingWeights,
)


class AutoscaleEnv(gymnasium.Env[npt.NDArray[np.float32], npt.NDArray[np.float32]]):
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

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        *,
        simulator: TraceRLSimulator | None = None,
        weights: ScalingWeights | None = None,
        render_mode: str | None = None,
        **action_arguments: Any,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"environment: render_mode must be None, got {render_mode!r}")
        self.render_mode = None
        weights = weights or ScalingWeights()
        self.simulator = simulator or TraceRLSimulator(
            collector=RLStateCollector(weights=weights),
            executor=RLActionExecutor(**action_arguments),
            calculator=RLRewardCalculator(weights=weights),
        )
        size = self.simulator.collector.size
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin a day that the environment's generator draws."""
        if options:
            raise ValueError(f"environment: options must be empty, got {options!r}")
        super().reset(seed=seed)
        day = int(self.np_random.integers(2**31))
        return self.simulator.reset(day), {"day": day}

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Act for one interval."""
        observation, reward, is_over = self.simulator.step(action)
        return observation, reward, False, is_over, {}
