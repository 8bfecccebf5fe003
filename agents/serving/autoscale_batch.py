"""Autoscaling tasks stepped together, as the trainer of `agents.ppo` wants them."""

from collections.abc import Callable

import numpy as np

from agents.ppo.replayed_batch import ReplayedBatch, TaskStep
from agents.serving.autoscale_task import TraceRLSimulator, drawn_day
from agents.serving.rl_state import RLActionExecutor
from des.serving.fleet_world import World


class AutoscaleBatch(ReplayedBatch[TraceRLSimulator]):
    """N simulators; environment ``i`` goes through the days of ``seed`` and ``i``.

    Actions are the numbers of changes that `RLActionExecutor.sizes` counts.
    """

    has_time_limit = True

    def __init__(
        self,
        num_envs: int,
        seed: int,
        make_world: Callable[[int], World] = drawn_day,
        executor: RLActionExecutor | None = None,
    ) -> None:
        executor = executor or RLActionExecutor()
        super().__init__(
            "autoscaling",
            num_envs,
            seed,
            lambda: TraceRLSimulator(make_world=make_world, executor=executor),
        )

    @property
    def observation_size(self) -> int:
        """Entries of one observation, D."""
        return self.tasks[0].collector.size

    @property
    def action_sizes(self) -> tuple[int, ...]:
        """Number of choices of every action component."""
        return self.tasks[0].executor.sizes

    @property
    def ordinal_starts(self) -> tuple[float | None, ...]:
        """Start in the middle: no change."""
        return (0.5, 0.5, 0.5)

    def play(self, task: TraceRLSimulator, choices: list[int]) -> TaskStep:
        """Apply the choices of one action, as changes of the pools."""
        return task.step(task.executor.action_of(np.array(choices)))
