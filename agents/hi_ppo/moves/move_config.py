"""Hyperparameters of the training of the move policy, for processes that load no torch."""

from dataclasses import dataclass
from typing import ClassVar

from agents.ppo.update_config import COUNT, NON_NEGATIVE, FieldRange, UpdateConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTrainingConfig(UpdateConfig):
    """Hyperparameters; learning rate and weight of the entropy fall in a straight line.

    Attributes
    ----------
    num_updates
        Each plays ``episodes_per_update`` episodes under the policy of the moment and then runs
        ``num_epochs`` times over their states in minibatches of ``minibatch_states``.
    weight_decay
        Of AdamW.
    """

    num_updates: int = 150
    episodes_per_update: int = 24
    num_epochs: int = 3
    minibatch_states: int = 1024
    learning_rate: float = 1e-3
    final_learning_rate: float = 1e-4
    entropy_coefficient: float = 0.02
    final_entropy_coefficient: float = 0.001
    weight_decay: float = 0.3
    hidden_sizes: tuple[int, ...] = (64, 64)
    start_horizon_epochs: float = 3.0

    owner: ClassVar[str] = "move training"
    ranges: ClassVar[dict[str, FieldRange]] = UpdateConfig.ranges | {
        "num_updates": COUNT,
        "episodes_per_update": COUNT,
        "minibatch_states": COUNT,
        "weight_decay": NON_NEGATIVE,
    }
