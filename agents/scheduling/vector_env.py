"""The scheduling task as Gymnasium's vector environment, ``EastWest/Scheduling-v0``."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from agents.flat.vector_env import infos_of
from agents.scheduling.batch import SchedulingBatch
from agents.scheduling.env import scheduling_spaces, task_of
from agents.scheduling.task import SchedulingTask
from des.base.checks import require_count

_MOST_ENVS = 65536


class SchedulingVectorEnv(
    VectorEnv[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[Any]]
):
    """N scheduling environments together: ``gymnasium.make_vec("EastWest/Scheduling-v0")``.

    Environment ``i`` goes through the episodes of a single one that is reset with ``seed + i``.
    One whose episode ends begins its next one in the same step: observations are then the first of
    the new episode, ``infos["final_obs"]`` and ``infos["final_info"]`` what the old one ended with.
    Infos are arrays (N,) with a mask each; ``family`` and ``fallback`` are positions in
    `agents.decision.families.FAMILIES` and `agents.scheduling.plan_maker.REASONS`.

    Parameters
    ----------
    num_envs
        Environments in the batch, N.
    task, task_arguments
        As `agents.scheduling.env.SchedulingEnv` has them.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self, num_envs: int = 1, *, task: SchedulingTask | None = None, **task_arguments: Any
    ) -> None:
        require_count("vector environment", "num_envs", num_envs, _MOST_ENVS)
        self.task = task_of(task, task_arguments)
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = scheduling_spaces(self.task)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._batch: SchedulingBatch | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin the first episodes of a seed, or the next ones everywhere without a seed."""
        if options:
            raise ValueError(f"vector environment: options must be empty, got {options!r}")
        super().reset(seed=seed)
        if seed is not None or self._batch is None:
            first = int(self.np_random.integers(2**31)) if seed is None else seed
            self._batch = seeded_batch(self.task, self.num_envs, first)
        return self._batch.reset(), {}

    def step(
        self, actions: npt.NDArray[np.int64]
    ) -> tuple[
        npt.NDArray[np.float32],
        npt.NDArray[np.float32],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Apply actions (N, A)."""
        if self._batch is None:
            raise RuntimeError("vector environment: reset must be called first")
        step = self._batch.step(np.asarray(actions))
        return step.observations, step.rewards, step.terminated, step.truncated, infos_of(step)


def seeded_batch(task: SchedulingTask, num_envs: int, seed: int) -> SchedulingBatch:
    """Make a batch whose environment ``i`` has the random numbers of seed ``seed + i``."""
    return SchedulingBatch(task, [seeding.np_random(seed + each)[0] for each in range(num_envs)])
