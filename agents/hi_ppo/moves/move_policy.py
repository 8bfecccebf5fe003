"""The trained move policy at work: it sees candidates epoch by epoch and names a rule."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from agents.hi_ppo.moves.move_checkpoint import (
    MoveNet,
    move_network_from_payload,
    move_network_payload,
)
from agents.hi_ppo.moves.move_observer import MoveObservation
from agents.hi_ppo.moves.move_rules import MoveRule, RuleSet
from agents.hi_ppo.moves.numpy_forward import likeliest, quick_logits
from agents.ppo.checkpoint import load_checkpoint, save_checkpoint

_FIRST_HORIZON_EPOCHS = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePolicy:
    """Names the rule to decide by, epoch by epoch."""

    network: MoveNet

    @property
    def rule_set(self) -> RuleSet:
        """Rules that it chooses among."""
        return self.network.architecture.rule_set

    def choose(self, observation: MoveObservation) -> MoveRule:
        """Choose the likeliest plan, and the likeliest rule that takes it.

        Before any plan is in force it is that of the top level and 16 epochs: the first plan is
        free, yet to leave the one that is best at base figures has its price, the way back, and a
        network of which one epoch is known tells a policy too little to weigh the two.

        Raises
        ------
        ValueError
            If the observation is not finite or of another size.
        """
        size = self.network.architecture.observation_size
        if observation.values.shape != (size,) or not np.isfinite(observation.values).all():
            raise ValueError(f"move policy: observation must be {size} finite numbers")
        if observation.is_first:
            rule_set = self.rule_set
            return rule_set.rule(rule_set.top, _FIRST_HORIZON_EPOCHS)
        logits = quick_logits(self.network, observation.values).astype(np.float64)
        return self.rule_set.rules[likeliest(logits, observation.targets)]

    def payload(self) -> dict[str, object]:
        """Plain content from which `from_payload` rebuilds the policy."""
        return move_network_payload(self.network)

    @classmethod
    def from_payload(cls, payload: object) -> Self:
        """Rebuild a policy; `CheckpointError` if the content is not one of this version."""
        return cls(network=move_network_from_payload(payload))

    def save(self, path: Path) -> None:
        """Write the policy to a file, see `agents.ppo.checkpoint.save_checkpoint`."""
        save_checkpoint(path, {"move_policy": self.payload()})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; `CheckpointError` if it is something else."""
        return cls.from_payload(load_checkpoint(path).get("move_policy"))
