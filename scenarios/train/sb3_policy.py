"""PPO of Stable-Baselines3 on the scheduling task; needs the extra ``sb3``."""

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from agents.scheduling.playing import Act
from agents.scheduling.sb3_vec_env import scheduling_vec_env
from agents.scheduling.task import SchedulingTask

GAMMA, STEPS_PER_ENV, MOST_IN_BATCH = 0.95, 64, 512


def trained_policy(task: SchedulingTask, *, seed: int, steps: int, num_envs: int) -> Act:
    """Train a policy, and return it as one that takes its likeliest actions.

    Rewards are scaled by `VecNormalize`, as described plans can be a hundred times slower than the
    start plan; the learning rate falls to 0.
    """
    env = VecNormalize(
        scheduling_vec_env(task, num_envs=num_envs, seed=seed),
        norm_obs=False,
        clip_reward=5.0,
        gamma=GAMMA,
    )
    model = PPO(
        "MlpPolicy",
        env,
        lambda left: 1e-3 * left,  # learning rate by the share of the training that is left
        n_steps=STEPS_PER_ENV,
        batch_size=min(MOST_IN_BATCH, STEPS_PER_ENV * num_envs),
        n_epochs=5,
        gamma=GAMMA,
        gae_lambda=0.9,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [128, 128]},
        device="cpu",
        seed=seed,
    )
    model.learn(steps)

    def act(observations: np.ndarray) -> np.ndarray:
        actions, _ = model.predict(observations, deterministic=True)
        return actions

    return act
