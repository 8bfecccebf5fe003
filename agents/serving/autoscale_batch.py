"""Autoscaling tasks stepped together, as the trainer of `agents.ppo` wants them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.ppo.batch_step import BatchStep
from agents.serving.autoscale_task import TraceRLSimulator, drawn_day
from agents.serving.rl_state import RLActionExecutor
from des.base.checks import require_count, require_seed
from des.serving.fleet_world import World


class AutoscaleBatch:
    """N simulators; environment ``i`` goes through the days of ``seed`` and ``i``.

    Actions are the numbers of changes that `RLActionExecutor.sizes` counts. A state is the days
    and the actions in them: `load_state` plays these again, which gives the same to the last bit.
    """

    def __init__(
        self,
        num_envs: int,
        seed: int,
        make_world: Callable[[int], World] = drawn_day,
        executor: RLActionExecutor | None = None,
    ) -> None:
        require_count("autoscaling", "num_envs", num_envs)
        require_seed("autoscaling", "seed", seed)
        self.num_envs, self.seed = num_envs, seed
        self._simulators = [
            TraceRLSimulator(make_world=make_world, executor=executor or RLActionExecutor())
            for _ in range(num_envs)
        ]
        self._episodes = [-1] * num_envs
        self._actions: list[list[list[int]]] = [[] for _ in range(num_envs)]

    @property
    def observation_size(self) -> int:
        """Entries of one observation, D."""
        return self._simulators[0].collector.size

    @property
    def action_sizes(self) -> tuple[int, ...]:
        """Number of choices of every action component."""
        return self._simulators[0].executor.sizes

    @property
    def ordinal_starts(self) -> tuple[float | None, ...]:
        """Start in the middle: no change."""
        return (0.5, 0.5, 0.5)

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin new days and return their first observations (N, D)."""
        return np.stack([self._begin(place) for place in range(self.num_envs)])

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions (N, 3)."""
        observations, finals, rewards, truncated = [], [], [], []
        for place, choices in enumerate(actions):
            self._actions[place].append([int(each) for each in choices])
            simulator = self._simulators[place]
            action = simulator.executor.action_of(choices)
            observation, reward, is_over = simulator.step(action)
            finals.append(observation)
            observations.append(self._begin(place) if is_over else observation)
            rewards.append(reward)
            truncated.append(is_over)
        return BatchStep(
            observations=np.stack(observations),
            final_observations=np.stack(finals),
            rewards=np.array(rewards, np.float32),
            terminated=np.zeros(self.num_envs, np.bool_),
            truncated=np.array(truncated, np.bool_),
            metrics={},
        )

    def state(self) -> dict[str, object]:
        """Days and actions so far."""
        return {"episodes": list(self._episodes), "actions": [list(a) for a in self._actions]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Play the actions of a state again."""
        for place in range(self.num_envs):
            self._episodes[place] = int(state["episodes"][place]) - 1
            self._begin(place)
            for choices in state["actions"][place]:
                simulator = self._simulators[place]
                simulator.step(simulator.executor.action_of(np.array(choices)))
                self._actions[place].append(list(choices))

    def close(self) -> None:
        """End nothing: all is in this process."""

    def _begin(self, place: int) -> npt.NDArray[np.float32]:
        self._episodes[place] += 1
        self._actions[place] = []
        return self._simulators[place].reset(day_seed(self.seed, place, self._episodes[place]))


def day_seed(seed: int, place: int, episode: int) -> int:
    """Seed of a day to train on; those below 2**20 are kept to evaluate on."""
    (entry,) = np.random.SeedSequence((seed, place, episode)).generate_state(1, np.uint64)
    return (int(entry) >> 2) | 2**20
