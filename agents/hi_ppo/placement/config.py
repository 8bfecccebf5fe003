"""Architecture and training settings of the placement policy."""

from dataclasses import dataclass
from typing import ClassVar

from agents.ppo.update_config import COUNT, NON_NEGATIVE, FieldRange, UpdateConfig
from des.base.checks import require_count


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementArchitecture:
    """Everything that decides what the placement policy computes, but its weights.

    Attributes
    ----------
    width, edge_width
        Numbers by which a domain and a pair of domains are described.
    num_rounds
        Rounds of messages between domains; with 0, every domain knows its own features only.
    sees_preference
        Whether the preference is an input; see `agents.hi_ppo.placement.features.seen_by`.
    """

    width: int = 64
    edge_width: int = 32
    num_rounds: int = 3
    sees_preference: bool = True

    def __post_init__(self) -> None:
        require_count("placement architecture", "width", self.width)
        require_count("placement architecture", "edge_width", self.edge_width)
        if self.num_rounds != 0:
            require_count("placement architecture", "num_rounds", self.num_rounds)
        if not isinstance(self.sees_preference, bool):
            raise ValueError(
                "placement architecture: sees_preference must be True or False, "
                f"got {self.sees_preference!r}"
            )

    @property
    def chains(self) -> tuple[tuple[int, int], ...]:
        """Widths of layers that follow each other in any policy of this architecture."""
        edges = (self.edge_width, self.edge_width)
        return edges, (self.width, self.width), (self.num_rounds * self.width, self.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementConfig(UpdateConfig):
    """Training of the placement policy, see `agents.hi_ppo.placement.placement_training`.

    Attributes
    ----------
    worlds_per_update, samples_per_world
        Networks of an update, and orders that are drawn for each: they are each other's baseline.
    curriculum
        Domains of the largest networks, and the share of the training from which on they come.
    depth_weight, tilt_weight
        Weights of the losses of depths and of shares; that of orders is 1.
    value_coefficient
        Of the error of the networks' values. These are no baseline: to tell them is another task
        that what describes networks is learnt by.
    imitation
        Weight of the likelihood of the best order that a look-ahead finds from the samples.
    look_ahead_budget
        Plans that such a look-ahead judges; 0 for none.
    """

    num_updates: int = 800
    worlds_per_update: int = 48
    samples_per_world: int = 16
    num_epochs: int = 2
    learning_rate: float = 1e-3
    final_learning_rate: float = 5e-5
    entropy_coefficient: float = 0.02
    final_entropy_coefficient: float = 0.002
    depth_weight: float = 1.0
    tilt_weight: float = 0.2
    value_coefficient: float = 0.1
    imitation: float = 0.5
    look_ahead_budget: int = 800
    curriculum: tuple[tuple[int, float], ...] = ((4, 0.0), (6, 0.08), (16, 0.2))

    owner: ClassVar[str] = "placement config"
    ranges: ClassVar[dict[str, FieldRange]] = UpdateConfig.ranges | {
        "num_updates": COUNT,
        "worlds_per_update": COUNT,
        "samples_per_world": FieldRange("at least 2", lambda value: value >= 2),
        "depth_weight": NON_NEGATIVE,
        "tilt_weight": NON_NEGATIVE,
        "value_coefficient": NON_NEGATIVE,
        "imitation": NON_NEGATIVE,
        "look_ahead_budget": NON_NEGATIVE,
        "curriculum": FieldRange(
            "steps of which the first begins at a share of 0",
            lambda steps: bool(steps) and steps[0][1] == 0.0,
        ),
    }

    def most_domains(self, update: int) -> int:
        """Domains of the largest networks of an update."""
        done = update / self.num_updates
        return max(most for most, start in self.curriculum if start <= done)
