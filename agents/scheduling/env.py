"""The scheduling task as Gymnasium environments: one, and many at once."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding

from agents.decision.families import FAMILIES
from agents.flat.env import BatchVectorEnv
from agents.scheduling.batch import SchedulingBatch
from agents.scheduling.make_task import make_scheduling_task
from agents.scheduling.observation import LARGEST
from agents.scheduling.plan_maker import REASONS
from agents.scheduling.task import SchedulingTask
from des import Plan
from des.base.checks import require_count

_NUMBERS = ("iteration_s", "num_iterations", "change_s", "moved_bytes", "wan_bytes")
"""Figures of an epoch in ``info``."""


class SchedulingEnv(gymnasium.Env[np.ndarray, Any]):
    """Decide about the plan of a training in every epoch of moving links and loads.

    See `make_scheduling_task` for the arguments, `agents.scheduling.task.PlanAction` for the
    action, `agents.scheduling.observation.Observing` for the observation, and
    `agents.scheduling.task.SchedulingTask` for the reward. ``reset(options={"draw_seed": 7})``
    begins a draw of one's choice. ``info`` has figures of the epoch, their units in the names:
    ``change_s`` of the change and ``num_iterations``, of ``iteration_s`` each, in what it leaves of
    the epoch, ``moved_bytes`` by the change, ``wan_bytes`` by the iterations; the ``plan`` in
    force, its ``family`` and its ``trainer``, ``ideal`` for perfect devices; and ``fallback``, the
    reason for which the plan in force stayed, empty where there is none.

    Parameters
    ----------
    task
        A task that several environments share, with all that is known of its draws; None: one of
        ``task_arguments``.

    Examples
    --------
    >>> env = gymnasium.make("EastWest/Scheduling-v0", num_known=4)
    >>> _, _ = env.reset(seed=0)
    >>> *_, info = env.step(env.action_space.sample() * 0)  # keep the plan in force
    >>> info["family"], info["fallback"]
    ('pipeline', '')
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        *,
        task: SchedulingTask | None = None,
        render_mode: str | None = None,
        **task_arguments: Any,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"environment: render_mode must be None, got {render_mode!r}")
        self.render_mode = None
        self.task = task_of(task, task_arguments)
        self.observation_space, self.action_space = scheduling_spaces(self.task)
        self._batch: SchedulingBatch | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; the same seed gives the same episodes from there on."""
        super().reset(seed=seed)
        given = dict(options or {})
        draw_seed = given.pop("draw_seed", None)
        if given:
            raise ValueError(f"environment: options must be draw_seed alone, got {options!r}")
        if self._batch is None:
            self._batch = SchedulingBatch(self.task, [self.np_random])
        self._batch.rngs = [self.np_random]
        observations = self._batch.reset([] if draw_seed is None else [draw_seed])
        return observations[0], {"plan": self.plan, "reference_s": self.task.reference_s}

    def step(
        self, action: np.ndarray | int
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Decide an epoch, and run it."""
        if self._batch is None:
            raise RuntimeError("environment: reset must be called first")
        step = self._batch.step(np.asarray(action)[np.newaxis], resets=False)
        info: dict[str, Any] = {name: float(step.metrics[name][0]) for name in _NUMBERS}
        info["plan"] = self.plan
        info["trainer"] = self.task.setting.trainer.name
        info["family"] = FAMILIES[int(step.metrics["family"][0])]
        info["fallback"] = REASONS[int(step.metrics["fallback"][0])]
        reward, is_over = float(step.rewards[0]), bool(step.truncated[0])
        return step.observations[0], reward, False, is_over, info

    @property
    def plan(self) -> Plan:
        """Plan in force."""
        if self._batch is None:
            raise RuntimeError("environment: reset must be called first")
        return self._batch.plans[0].plan


def task_of(task: SchedulingTask | None, arguments: Mapping[str, Any]) -> SchedulingTask:
    """Return a task that is given, or make one.

    Raises
    ------
    ValueError
        If arguments come with a task, or as `make_scheduling_task`.
    """
    if task is None:
        return make_scheduling_task(**arguments)
    if arguments:
        raise ValueError(
            f"environment: {', '.join(arguments)} must be left out where task is given, got "
            f"{', '.join(f'{name}={value!r}' for name, value in arguments.items())}"
        )
    return task


def scheduling_spaces(
    task: SchedulingTask,
) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.MultiDiscrete | gymnasium.spaces.Discrete]:
    """Return the spaces of one environment's observations and actions.

    The action that is a choice alone is ``Discrete``, which algorithms such as DQN ask for.
    """
    sizes = list(task.action.sizes)
    return (
        gymnasium.spaces.Box(-LARGEST, LARGEST, shape=(task.observing.size,), dtype=np.float32),
        gymnasium.spaces.MultiDiscrete(sizes)
        if task.action.is_described
        else gymnasium.spaces.Discrete(sizes[0]),
    )


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
