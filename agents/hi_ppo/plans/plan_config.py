"""Training settings of the plan policy."""

from dataclasses import dataclass
from typing import ClassVar

from agents.ppo.update_config import COUNT, NON_NEGATIVE, FieldRange, UpdateConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanConfig(UpdateConfig):
    """Training of the plan policy, see `agents.hi_ppo.plans.plan_training`.

    Attributes
    ----------
    samples_per_network
        Plans that are drawn for each network: they are each other's baseline.
    batches
        Most domains of the networks of an update, and how many networks it has then.
    schedule_weight
        Weight of the loss of schedules; that of groups is 1.
    imitation
        Weight of the likelihood of the best groups that a look-ahead finds from the samples.
    look_ahead_budget
        Changes that such a look-ahead tries; 0 for none.
    num_neighbours
        Groups by nearest neighbours that it begins from too.
    """

    num_updates: int = 800
    samples_per_network: int = 16
    batches: tuple[tuple[int, int], ...] = ((10, 48), (16, 24), (32, 16), (64, 8))
    num_epochs: int = 2
    learning_rate: float = 1e-3
    final_learning_rate: float = 5e-5
    entropy_coefficient: float = 0.02
    final_entropy_coefficient: float = 0.002
    schedule_weight: float = 1.0
    imitation: float = 0.5
    look_ahead_budget: int = 64
    num_neighbours: int = 16

    owner: ClassVar[str] = "plan config"
    ranges: ClassVar[dict[str, FieldRange]] = UpdateConfig.ranges | {
        "num_updates": COUNT,
        "samples_per_network": FieldRange("at least 2", lambda value: value >= 2),
        "batches": FieldRange(
            "pairs of most domains and networks, ascending",
            lambda pairs: bool(pairs) and list(pairs) == sorted(pairs, key=lambda one: one[0]),
        ),
        "schedule_weight": NON_NEGATIVE,
        "imitation": NON_NEGATIVE,
        "look_ahead_budget": NON_NEGATIVE,
        "num_neighbours": NON_NEGATIVE,
    }
