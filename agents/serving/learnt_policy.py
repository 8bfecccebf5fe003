"""Networks as scaling policies: trained, untrained; and random actions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from agents.ppo.checkpoint import CheckpointError, load_checkpoint
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trained_policy import TrainedPolicy, tensors_of
from agents.ppo.trainer import PPOTrainer
from agents.serving.autoscale_task import AutoscaleBatch
from agents.serving.forecast_policies import Predictive
from agents.serving.rl_state import RLActionExecutor, RLStateCollector
from des.base.checks import MOST_ITEMS
from des.compiled.fleet import CompiledFleet, is_compiled
from des.serving.fleet_engine import Fleet
from des.serving.fleet_scaling import ScaledFleet
from des.serving.fleet_world import Decision, History, View, World

AUTOSCALER_PPO = PPOConfig(
    num_steps=64, discount=0.97, learning_rate=1e-3, entropy_coefficient=0.001
)
"""Settings of PPO for the task."""

ACTIONS, ACTION_FLAGS = "actions", ("is_adaptive", "is_residual")
"""Entry of a checkpoint with the kind of its actions, and the fields of that."""


class LearntPolicy:
    """The most likely action of a network, with the guide that it was trained with."""

    def __init__(self, network: TrainedPolicy, executor: RLActionExecutor) -> None:
        self.collector, self.executor = RLStateCollector(), executor
        self.network, self.guide = network, Predictive()

    def first_memory(self, world: World) -> object:
        """Memory of the guide."""
        return self.guide.first_memory(world)

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Look at the view and at what the guide wants."""
        advice, memory = self.guide.decide(view, memory)
        choices = self.network.decide(self.collector.collect(view, advice.counts))
        action = self.executor.action_of(choices)
        return self.executor.decide(view, action, advice.counts), memory


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
def learnt_policy(checkpoint: Path) -> LearntPolicy:
    """Load a network trained by `python -m scenarios.east_west_train autoscale`, with its actions.

    Raises
    ------
    CheckpointError
        If the file is no such checkpoint.
    """
    payload = load_checkpoint(checkpoint)
    actions = payload.get(ACTIONS, {})
    if not isinstance(actions, dict) or not set(actions) <= set(ACTION_FLAGS):
        raise CheckpointError(
            f"checkpoint {checkpoint}: {ACTIONS} must have the fields {', '.join(ACTION_FLAGS)}, "
            f"got {actions!r}"
        )
    flags = {name: bool(value) for name, value in actions.items()}
    return LearntPolicy(_network(payload, checkpoint), RLActionExecutor(**flags))


def learn_in_the_loop(world: World, seed: int, checkpoint: Path) -> History:
    """Run a world under a network that keeps learning from the results of its decisions.

    Actions are drawn, and every `PPOConfig.num_steps` decisions the network is updated.

    Raises
    ------
    CheckpointError
        If the file is no checkpoint of the task.
    """
    payload, executor = load_checkpoint(checkpoint), learnt_policy(checkpoint).executor
    begun: list[ScaledFleet] = []

    def make_fleet(served: World, _: int) -> ScaledFleet:
        begun.append(CompiledFleet(served, seed) if is_compiled(served) else Fleet(served, seed))
        return begun[-1]

    batch = AutoscaleBatch(1, seed, lambda _: world, executor)
    batch.tasks[0].make_fleet = make_fleet
    learner = PPOTrainer.local(batch, AUTOSCALER_PPO, seed, MOST_ITEMS)
    trained = payload["policy"]
    assert isinstance(trained, Mapping)  # `learnt_policy` has read it
    learner.network.load_state_dict(tensors_of(trained["parameters"]))
    while len(begun) < 2:  # the run has ended when the task begins another
        learner.update()
    return begun[0].history()


def untrained_policy(seed: int, config: PPOConfig, executor: RLActionExecutor) -> LearntPolicy:
    """Make a network as it is before its training."""
    state = PPOTrainer.local(AutoscaleBatch(1, seed), config, seed, config.num_steps).state()
    return LearntPolicy(_network(state, Path("untrained")), executor)


def _network(payload: Mapping[str, Any], source: Path) -> TrainedPolicy:
    return TrainedPolicy.from_payload(
        payload,
        source=source,
        observation_size=RLStateCollector().size,
        action_sizes=RLActionExecutor().sizes,
    )
