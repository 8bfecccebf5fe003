"""A trained network as an ordering."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agents.cluster.weighted_ordering import (
    CHOICES,
    OBSERVATION_SIZE,
    HourlyWeights,
    queue_observation,
)
from agents.ppo.checkpoint import load_checkpoint
from agents.ppo.trained_policy import TrainedPolicy
from des.cluster.policy import View


@dataclass(slots=True, kw_only=True)
class LearntOrdering(HourlyWeights):
    """Weights chosen every hour by a network of `python -m scenarios.east_west_train queue`."""

    network: TrainedPolicy

    def next_choices(self, view: View) -> Sequence[int]:
        """Choices of the network."""
        choices: list[int] = self.network.decide(queue_observation(view)).tolist()
        return choices


@cache
def trained_ordering_network(checkpoint: Path) -> TrainedPolicy:
    """Read the network of a checkpoint.

    Raises
    ------
    CheckpointError
        If the file is none of a training of queues.
    """
    return TrainedPolicy.from_payload(
        load_checkpoint(checkpoint),
        source=checkpoint,
        observation_size=OBSERVATION_SIZE,
        action_sizes=CHOICES,
    )
