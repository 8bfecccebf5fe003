"""A trained network as a scaling policy."""

from functools import cache
from pathlib import Path

from agents.ppo.checkpoint import TrainedPolicy, load_checkpoint
from agents.serving.rl_state import RLActionExecutor, RLStateCollector
from des.serving.fleet_world import Decision, View, World


class LearntPolicy:
    """The most likely action of a network trained by `python -m scenarios.train_autoscaler`."""

    def __init__(self, checkpoint: Path) -> None:
        self.collector, self.executor = RLStateCollector(), RLActionExecutor()
        self.network = _loaded(checkpoint)

    def first_memory(self, world: World) -> object:
        """Nothing."""
        return None

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Look at the view alone."""
        choices = self.network.decide(self.collector.collect(view))
        return self.executor.decide(view, self.executor.action_of(choices)), memory


@cache
def _loaded(checkpoint: Path) -> TrainedPolicy:
    return TrainedPolicy.from_payload(
        load_checkpoint(checkpoint),
        source=checkpoint,
        observation_size=RLStateCollector().size,
        action_sizes=RLActionExecutor().sizes,
    )
