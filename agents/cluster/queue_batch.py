"""Queueing tasks stepped together, as the trainer of `agents.ppo` wants them."""

from collections.abc import Callable

from agents.cluster.queue_task import QueueSimulator, draw_queue
from agents.ppo.batch_step import ReplayedBatch
from des.cluster.world import World


class QueueBatch(ReplayedBatch[QueueSimulator]):
    """N simulators; environment ``i`` goes through the queues of ``seed`` and ``i``."""

    first_episode = 1
    state_names = ("begun", "played")

    def __init__(
        self, num_envs: int, seed: int, make_world: Callable[[int], World] = draw_queue
    ) -> None:
        super().__init__("queueing", num_envs, seed, lambda: QueueSimulator(make_world=make_world))

    @property
    def observation_size(self) -> int:
        """Entries of one observation, D."""
        return self.tasks[0].observation_size

    @property
    def action_sizes(self) -> tuple[int, ...]:
        """Number of choices of every action component."""
        return self.tasks[0].action_sizes

    @property
    def ordinal_starts(self) -> tuple[float | None, ...]:
        """Start at the shortest remaining time."""
        simulator = self.tasks[0]
        pairs = zip(simulator.first_choices, simulator.action_sizes, strict=True)
        return tuple(choice / (size - 1) for choice, size in pairs)
