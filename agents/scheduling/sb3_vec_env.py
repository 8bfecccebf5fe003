"""The scheduling task as Stable-Baselines3's vector environment; needs the extra ``sb3``."""

from stable_baselines3.common.vec_env import VecEnv

from agents.flat.sb3_vec_env import BatchSB3VecEnv
from agents.scheduling.env import scheduling_spaces, seeded_batch
from agents.scheduling.task import SchedulingTask


def scheduling_vec_env(task: SchedulingTask, *, num_envs: int, seed: int) -> VecEnv:
    """Make N scheduling environments for the algorithms of Stable-Baselines3.

    Episodes are those of `agents.scheduling.env.SchedulingVectorEnv` reset with ``seed``,
    infos as `agents.flat.sb3_vec_env.BatchSB3VecEnv` has them.

    Examples
    --------
    >>> from agents.scheduling.make_task import make_scheduling_task
    >>> task = make_scheduling_task(num_known=4, trainer="ideal")
    >>> env = scheduling_vec_env(task, num_envs=2, seed=0)
    >>> env.reset().shape
    (2, 77)
    """
    return BatchSB3VecEnv(
        lambda first: seeded_batch(task, num_envs, first),
        num_envs,
        *scheduling_spaces(task),
        seed=seed,
    )
