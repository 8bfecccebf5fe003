"""Fields that the configurations of all PPO trainings have in common, and their ranges."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple


class FieldRange(NamedTuple):
    """Range of a field, in words and as a test."""

    allowed: str
    holds: Callable[[Any], bool]


def is_count(value: object) -> bool:
    """Whether a value is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


COUNT = FieldRange("a whole number of at least 1", is_count)
NON_NEGATIVE = FieldRange("at least 0 and finite", lambda value: 0 <= value < math.inf)
POSITIVE = FieldRange("positive and finite", lambda value: 0 < value < math.inf)
WITHIN_UNIT = FieldRange("in [0, 1]", lambda value: 0 <= value <= 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConfig:
    """Hyperparameters of the updates of every PPO training, see `agents.ppo.policy_update`.

    Pairs ``x`` and ``final_x`` are annealed over the training, see `agents.ppo.annealing`.

    Attributes
    ----------
    num_epochs
        Passes over the experience of an update.
    learning_rate, final_learning_rate
        Of the optimiser, at the start and at the end.
    clip_range
        Largest relative change of a probability that the loss rewards.
    entropy_coefficient, final_entropy_coefficient
        Weight of the entropy in the loss, at the start and at the end.
    max_gradient_norm
        Norm to which a longer gradient is shortened.
    owner
        Name of the training in errors.
    ranges
        Of the fields that are numbers; a training with more fields adds theirs.
    """

    num_epochs: int = 4
    learning_rate: float = 3e-4
    final_learning_rate: float = 0.0
    clip_range: float = 0.2
    entropy_coefficient: float = 0.01
    final_entropy_coefficient: float = 0.0
    max_gradient_norm: float = 1.0

    owner: ClassVar[str] = "PPO"
    ranges: ClassVar[dict[str, FieldRange]] = {
        "num_epochs": COUNT,
        "learning_rate": FieldRange("positive and at most 1", lambda value: 0 < value <= 1),
        "final_learning_rate": NON_NEGATIVE,
        "clip_range": FieldRange("in (0, 1)", lambda value: 0 < value < 1),
        "entropy_coefficient": NON_NEGATIVE,
        "final_entropy_coefficient": NON_NEGATIVE,
        "max_gradient_norm": POSITIVE,
    }

    def __post_init__(self) -> None:
        for name, (allowed, holds) in self.ranges.items():
            value = getattr(self, name)
            if not holds(value):
                raise ValueError(f"{self.owner}: {name} must be {allowed}, got {value!r}")
        self.check_together()

    def check_together(self) -> None:
        """Refuse fields that do not fit each other; here all do."""
