"""Hyperparameters of PPO."""

import math
from dataclasses import dataclass

from agents.ppo.devices import DEVICES, PRECISIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class PPOConfig:
    """Hyperparameters; pairs ``x`` and ``final_x`` are joined by a line over the training.

    ``target_kl`` (None: never) ends an update after the epoch whose mean divergence exceeds it.
    With ``discount`` 0, an action is judged by its own reward only. ``device`` and ``precision``
    (of the products within layers) are here because results depend on them, if only by rounding.
    """

    num_steps: int = 32
    num_minibatches: int = 4
    num_epochs: int = 4
    learning_rate: float = 3e-4
    final_learning_rate: float = 0.0
    discount: float = 0.0
    trace_decay: float = 0.95
    clip_range: float = 0.2
    entropy_coefficient: float = 0.01
    final_entropy_coefficient: float = 0.0
    value_coefficient: float = 0.5
    max_gradient_norm: float = 0.5
    target_kl: float | None = None
    hidden_sizes: tuple[int, ...] = (64, 64)
    normalise_advantages: bool = True
    device: str = "cpu"
    precision: str = "float32"

    def __post_init__(self) -> None:
        above = "at least 0 and finite"
        checks = (
            ("num_steps", self.num_steps >= 1, "at least 1"),
            ("num_minibatches", self.num_minibatches >= 1, "at least 1"),
            ("num_epochs", self.num_epochs >= 1, "at least 1"),
            ("learning_rate", 0 < self.learning_rate <= 1, "positive and at most 1"),
            ("final_learning_rate", 0 <= self.final_learning_rate < math.inf, above),
            ("discount", 0 <= self.discount <= 1, "in [0, 1]"),
            ("trace_decay", 0 <= self.trace_decay <= 1, "in [0, 1]"),
            ("clip_range", 0 < self.clip_range < 1, "in (0, 1)"),
            ("entropy_coefficient", 0 <= self.entropy_coefficient < math.inf, above),
            ("final_entropy_coefficient", 0 <= self.final_entropy_coefficient < math.inf, above),
            ("value_coefficient", 0 <= self.value_coefficient < math.inf, above),
            ("max_gradient_norm", 0 < self.max_gradient_norm < math.inf, "positive and finite"),
            ("target_kl", self.target_kl is None or self.target_kl > 0, "None or positive"),
            ("hidden_sizes", min(self.hidden_sizes, default=1) >= 1, "all at least 1"),
            ("device", self.device in DEVICES, f"one of {', '.join(DEVICES)}"),
            ("precision", self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}"),
        )
        for field, holds, allowed in checks:
            if not holds:
                raise ValueError(f"PPO: {field} must be {allowed}, got {getattr(self, field)!r}")
