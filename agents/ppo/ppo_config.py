"""Hyperparameters of PPO on environments."""

from dataclasses import dataclass
from typing import ClassVar

from agents.ppo.devices import DEVICES, PRECISIONS
from agents.ppo.update_config import (
    COUNT,
    NON_NEGATIVE,
    WITHIN_UNIT,
    FieldRange,
    UpdateConfig,
    is_count,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PPOConfig(UpdateConfig):
    """Hyperparameters; learning rate and weight of the entropy fall in a straight line.

    ``target_kl`` (None: never) ends an update after the epoch whose mean divergence exceeds it.
    With ``discount`` 0, an action is judged by its own reward only. ``device`` and ``precision``
    (of the products within layers) are here because results depend on them, if only by rounding.
    """

    num_steps: int = 32
    num_minibatches: int = 4
    discount: float = 0.0
    trace_decay: float = 0.95
    value_coefficient: float = 0.5
    max_gradient_norm: float = 0.5
    target_kl: float | None = None
    hidden_sizes: tuple[int, ...] = (64, 64)
    normalise_advantages: bool = True
    device: str = "cpu"
    precision: str = "float32"

    ranges: ClassVar[dict[str, FieldRange]] = UpdateConfig.ranges | {
        "num_steps": COUNT,
        "num_minibatches": COUNT,
        "discount": WITHIN_UNIT,
        "trace_decay": WITHIN_UNIT,
        "value_coefficient": NON_NEGATIVE,
        "target_kl": FieldRange("None or positive", lambda value: value is None or value > 0),
        "hidden_sizes": FieldRange("all at least 1", lambda sizes: all(map(is_count, sizes))),
        "device": FieldRange(f"one of {', '.join(DEVICES)}", DEVICES.__contains__),
        "precision": FieldRange(f"one of {', '.join(PRECISIONS)}", PRECISIONS.__contains__),
    }
