"""The scheduling task as Gymnasium's vector environment, ``EastWest/Scheduling-v0``."""

from typing import Any

from gymnasium.utils import seeding

from agents.flat.vector_env import BatchVectorEnv
from agents.scheduling.batch import SchedulingBatch
from agents.scheduling.env import scheduling_spaces, task_of
from agents.scheduling.task import SchedulingTask
from des.base.checks import require_count

_MOST_ENVS = 65536


class SchedulingVectorEnv(BatchVectorEnv):
    """N scheduling environments together: ``gymnasium.make_vec("EastWest/Scheduling-v0")``.

    Environment ``i`` goes through the episodes of a single one that is reset with ``seed + i``.
    In infos, ``family`` and ``fallback`` are positions in `agents.decision.families.FAMILIES` and
    `agents.scheduling.plan_maker.REASONS`.

    Parameters
    ----------
    num_envs
        Environments in the batch, N.
    task, task_arguments
        As `agents.scheduling.env.SchedulingEnv` has them.
    """

    def __init__(
        self, num_envs: int = 1, *, task: SchedulingTask | None = None, **task_arguments: Any
    ) -> None:
        require_count("vector environment", "num_envs", num_envs, _MOST_ENVS)
        self.task = shared = task_of(task, task_arguments)
        super().__init__(
            lambda first: seeded_batch(shared, num_envs, first),
            num_envs,
            *scheduling_spaces(shared),
            num_seeds=2**31,
        )


def seeded_batch(task: SchedulingTask, num_envs: int, seed: int) -> SchedulingBatch:
    """Make a batch whose environment ``i`` has the random numbers of seed ``seed + i``."""
    return SchedulingBatch(task, [seeding.np_random(seed + each)[0] for each in range(num_envs)])
