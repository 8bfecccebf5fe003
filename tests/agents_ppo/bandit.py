"""Environments of one-step episodes, whose best actions are known."""

import dataclasses

import numpy as np
import numpy.typing as npt
import torch

from agents.ppo.batch_step import BatchStep
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trainer import PPOTrainer


class Bandit:
    """One-step episodes: the best action is written in the observation.

    Entry 0 names the best of the choices of component 0, entry 1 (all within 0.01 and 0.011) that
    of component 1, entry 2 never changes. The optimum earns 1, and half of it for each component;
    a miss in component 1 costs in proportion to the distance.
    """

    def __init__(self, action_sizes: tuple[int, int], ordinal: bool, seed: int = 0) -> None:
        self.num_envs = 32
        self.observation_size = 3
        self.action_sizes = action_sizes
        self.ordinal_starts = (None, 0.5 if ordinal else None)
        self._rng = np.random.default_rng(seed)
        self._shares = self._rng.random((self.num_envs, 2))

    def reset(self) -> npt.NDArray[np.float32]:
        self._shares = self._rng.random((self.num_envs, 2))
        return self._observed()

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        rewards = self.rewards(actions)
        observations = self.reset()
        return BatchStep(
            observations=observations,
            final_observations=observations,
            rewards=rewards.astype(np.float32),
            terminated=np.ones(self.num_envs, dtype=np.bool_),
            truncated=np.zeros(self.num_envs, dtype=np.bool_),
            metrics={"regret": 1 - rewards},
        )

    def rewards(self, actions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        first, second = self.action_sizes
        hit = actions[:, 0] == np.floor(self._shares[:, 0] * first)
        distance = np.abs(actions[:, 1] - np.round(self._shares[:, 1] * (second - 1)))
        return (hit + np.maximum(0, 1 - 4 * distance / second)) / 2

    def state(self) -> dict[str, object]:
        return {
            "random": self._rng.bit_generator.state,
            "shares": torch.from_numpy(self._shares.copy()),
        }

    def load_state(self, state: dict[str, object]) -> None:
        shares = state["shares"]
        assert isinstance(shares, torch.Tensor)
        self._rng.bit_generator.state = state["random"]
        self._shares = shares.numpy()

    def close(self) -> None:
        """Nothing was started."""

    def _observed(self) -> npt.NDArray[np.float32]:
        constant = np.full(self.num_envs, 0.5)
        columns = (self._shares[:, 0], 0.01 + 0.001 * self._shares[:, 1], constant)
        return np.stack(columns, axis=1).astype(np.float32)


def config(**changes: object) -> PPOConfig:
    learning_fast = PPOConfig(num_steps=16, num_minibatches=4, num_epochs=8, learning_rate=3e-3)
    return dataclasses.replace(learning_fast, **changes)


def trained(num_updates: int) -> PPOTrainer:
    trainer = PPOTrainer.local(Bandit((3, 81), True), config(), seed=7, total_steps=4 * 512)
    for _ in range(num_updates):
        trainer.update()
    return trainer
