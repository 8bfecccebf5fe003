"""Networks as scaling policies: trained, untrained; and random actions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from agents.ppo.checkpoint import TrainedPolicy, load_checkpoint
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trainer import Trainer
from agents.serving.autoscale_batch import AutoscaleBatch
from agents.serving.rl_state import RLActionExecutor, RLStateCollector
from des.serving.fleet_world import Decision, View, World


class LearntPolicy:
    """The most likely action of a network."""

    def __init__(self, network: TrainedPolicy, executor: RLActionExecutor) -> None:
        self.collector, self.executor = RLStateCollector(), executor
        self.network = network

    def first_memory(self, world: World) -> object:
        """Nothing."""
        return None

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Look at the view alone."""
        choices = self.network.decide(self.collector.collect(view))
        return self.executor.decide(view, self.executor.action_of(choices)), memory


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomActions:
    """Actions of the task drawn at random, as a comparison."""

    seed: int

    def first_memory(self, world: World) -> object:
        """Decisions so far."""
        return 0

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Draw an action by the seed and the number of the decision."""
        assert isinstance(memory, int)
        action = np.random.default_rng([self.seed, memory]).uniform(-1.0, 1.0, 3)
        return RLActionExecutor().decide(view, action), memory + 1


@cache
def learnt_policy(checkpoint: Path, *, is_adaptive: bool = False) -> LearntPolicy:
    """Load a network trained by `python -m scenarios.train_autoscaler`.

    With ``is_adaptive`` its steps are those of `RLActionExecutor` with that setting.
    """
    network = _network(load_checkpoint(checkpoint), checkpoint)
    return LearntPolicy(network, RLActionExecutor(is_adaptive=is_adaptive))


def untrained_policy(seed: int, config: PPOConfig) -> LearntPolicy:
    """Make a network as it is before its training."""
    state = Trainer.local(AutoscaleBatch(1, seed), config, seed, config.num_steps).state()
    return LearntPolicy(_network(state, Path("untrained")), RLActionExecutor())


def _network(payload: Mapping[str, Any], source: Path) -> TrainedPolicy:
    return TrainedPolicy.from_payload(
        payload,
        source=source,
        observation_size=RLStateCollector().size,
        action_sizes=RLActionExecutor().sizes,
    )
