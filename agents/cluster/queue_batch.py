"""Queueing tasks stepped together, as the trainer of `agents.ppo` wants them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.cluster.queue_task import QueueSimulator, drawn_queue, training_seed
from agents.ppo.batch_step import BatchStep
from des.base.checks import require_count, require_seed
from des.cluster.world import World


class QueueBatch:
    """N simulators; environment ``i`` goes through the queues of ``seed`` and ``i``.

    A state is the number of the episode and its actions: `load_state` plays these again, which
    gives the same to the last bit.
    """

    def __init__(
        self, num_envs: int, seed: int, make_world: Callable[[int], World] = drawn_queue
    ) -> None:
        require_count("queueing", "num_envs", num_envs)
        require_seed("queueing", "seed", seed)
        self.num_envs = num_envs
        self._simulators = [QueueSimulator(make_world=make_world) for _ in range(num_envs)]
        self._seed = seed
        self._played: list[list[list[int]]] = [[] for _ in range(num_envs)]
        self._begun = [0] * num_envs

    @property
    def observation_size(self) -> int:
        """Entries of one observation, D."""
        return self._simulators[0].observation_size

    @property
    def action_sizes(self) -> tuple[int, ...]:
        """Number of choices of every action component."""
        return self._simulators[0].action_sizes

    @property
    def ordinal_starts(self) -> tuple[float | None, ...]:
        """Start at the shortest remaining time."""
        simulator = self._simulators[0]
        pairs = zip(simulator.first_choices, simulator.action_sizes, strict=True)
        return tuple(choice / (size - 1) for choice, size in pairs)

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin new queues and return their first observations (N, D)."""
        return np.stack([self._begin(place) for place in range(self.num_envs)])

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions (N, 3)."""
        outcomes = []
        for place, choices in enumerate(actions.tolist()):
            self._played[place].append(choices)
            outcomes.append(self._simulators[place].step(choices))
        finals, rewards, over = (list(column) for column in zip(*outcomes, strict=True))
        firsts = [
            self._begin(place) if is_over else final
            for place, (final, is_over) in enumerate(zip(finals, over, strict=True))
        ]
        return BatchStep(
            observations=np.stack(firsts),
            final_observations=np.stack(finals),
            rewards=np.array(rewards, np.float32),
            terminated=np.array(over, np.bool_),
            truncated=np.zeros(self.num_envs, np.bool_),
            metrics={},
        )

    def state(self) -> dict[str, object]:
        """Episodes and actions so far."""
        return {"begun": list(self._begun), "played": [list(each) for each in self._played]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Play the actions of a state again."""
        for place, (begun, played) in enumerate(zip(state["begun"], state["played"], strict=True)):
            self._begun[place] = begun - 1
            self._begin(place)
            for choices in played:
                self._simulators[place].step(choices)
                self._played[place].append(list(choices))

    def close(self) -> None:
        """End nothing: all is in this process."""

    def _begin(self, place: int) -> npt.NDArray[np.float32]:
        self._begun[place] += 1
        self._played[place] = []
        episode = training_seed(self._seed, place, self._begun[place])
        return self._simulators[place].reset(episode)
