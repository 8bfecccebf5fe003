"""A trained network as an ordering."""

import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from agents.cluster.weighted_ordering import (
    CHOICES,
    INTERVAL_S,
    OBSERVATION_SIZE,
    WeightedOrdering,
    queue_observation,
)
from agents.ppo.checkpoint import TrainedPolicy, load_checkpoint
from des.cluster.policy import View


@dataclass(slots=True, kw_only=True)
class LearntOrdering(WeightedOrdering):
    """Weights chosen every hour by a network of `python -m scenarios.train_queue`."""

    network: TrainedPolicy
    _chosen_for: float = field(default=-math.inf, init=False)

    def prepare(self, view: View) -> None:
        """Choose weights at the first decision of an interval."""
        interval = view.now_s // INTERVAL_S
        if interval != self._chosen_for:
            self._chosen_for = interval
            self.choose(self.network.decide(queue_observation(view)).tolist())


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
