"""The trained move policy at work, on numpy: it sees candidates epoch by epoch and names a rule."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np

from agents.decision.levels import MoveLevel
from agents.hi_ppo.moves.move_observation import observation_names
from agents.hi_ppo.moves.move_observer import MoveObservation
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES, WHOLE_RULES, MoveRule, RuleSet
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, require_held, save_checkpoint
from agents.ppo.trained_net import (
    LoadedNet,
    TrainedNet,
    linear_forward,
    linear_shapes,
    shape_numbers,
)
from des.compiled.many.layout import Observations, Real, Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveArchitecture:
    """Shape of the move network: all that determines its output but the weights.

    Attributes
    ----------
    levels
        Levels of the rules, see `agents.hi_ppo.moves.move_rules.RuleSet`.
    hidden_sizes
        Units between, with tanh.
    start_horizon_epochs
        Of the rule that is likeliest at first: the top level, belief 0.
    """

    levels: tuple[MoveLevel, ...] = PIPELINE_RULES.levels
    hidden_sizes: tuple[int, ...] = (64, 64)
    start_horizon_epochs: float = 3.0

    def __post_init__(self) -> None:
        if self.levels not in (PIPELINE_RULES.levels, WHOLE_RULES.levels):
            raise ValueError(
                f"move architecture: levels must be {PIPELINE_RULES.levels} or "
                f"{WHOLE_RULES.levels}, got {self.levels!r}"
            )
        if min(self.hidden_sizes, default=1) < 1:
            raise ValueError(
                f"move architecture: hidden_sizes must all be at least 1, got {self.hidden_sizes}"
            )
        if not 0 < self.start_horizon_epochs < math.inf:
            raise ValueError(
                "move architecture: start_horizon_epochs must be positive and finite, got "
                f"{self.start_horizon_epochs!r}"
            )

    @property
    def rule_set(self) -> RuleSet:
        """Rules that the network chooses among."""
        return PIPELINE_RULES if self.levels == PIPELINE_RULES.levels else WHOLE_RULES

    @property
    def observation_size(self) -> int:
        """Entries of an observation, D."""
        return len(observation_names(self.rule_set))


MoveNet = TrainedNet[MoveArchitecture]
"""A move network that answers."""


def move_network_payload(network: MoveNet) -> dict[str, object]:
    """Plain content from which `move_network_from_payload` rebuilds the network.

    The levels of `PIPELINE_RULES` go without saying, as in the first files there were.
    """
    architecture = network.architecture
    levels = architecture.levels
    return {
        "observation": list(observation_names(architecture.rule_set)),
        "rules": [asdict(rule) for rule in architecture.rule_set.rules],
        "observation_size": architecture.observation_size,
        "num_rules": len(architecture.rule_set.rules),
        **({} if levels == PIPELINE_RULES.levels else {"levels": levels}),
        "hidden_sizes": architecture.hidden_sizes,
        "start_horizon_epochs": architecture.start_horizon_epochs,
        "parameters": dict(network.numbers),
    }


def move_network_from_payload(payload: object) -> LoadedNet[MoveArchitecture]:
    """Rebuild a network.

    Raises
    ------
    CheckpointError
        If the content does not describe one, or one of other observations, rules or sizes.
    """
    if not isinstance(payload, Mapping):
        raise CheckpointError(f"move policy: content must be a dict, got {type(payload).__name__}")
    sizes = {
        name: value
        for name, value in payload.items()
        if name in ("levels", "hidden_sizes", "start_horizon_epochs")
    }
    try:
        levels = tuple(payload.get("levels", PIPELINE_RULES.levels))
        architecture = MoveArchitecture(**{**sizes, "levels": levels})
        widths = (architecture.observation_size, *architecture.hidden_sizes)
        require_held(payload["parameters"], widths)
        numbers = shape_numbers(payload["parameters"], move_shapes(architecture))
        network = LoadedNet(architecture=architecture, numbers=numbers)
        _require_known(payload, move_network_payload(network))
    except CheckpointError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            "move policy: content must hold the sizes of a network and parameters of these sizes, "
            f"got {sizes} ({type(error).__name__}: {error})"
        ) from error
    if not all(np.isfinite(value).all() for value in numbers.values()):
        raise CheckpointError("move policy: parameters must be finite")
    return network


def move_shapes(architecture: MoveArchitecture) -> dict[str, tuple[int, ...]]:
    """Shapes of the numbers of a network, by name."""
    size = architecture.observation_size
    shapes: dict[str, tuple[int, ...]] = {"normaliser.count": ()}
    shapes |= {
        f"normaliser.{name}": (size,)
        for name in ("mean", "sum_of_squares", "offset", "remainder", "precision")
    }
    widths = (size, *architecture.hidden_sizes, len(architecture.rule_set.rules))
    for number, (num_in, num_out) in enumerate(itertools.pairwise(widths)):
        shapes |= linear_shapes(f"layers.{2 * number}", num_out, num_in)
    return shapes


def _require_known(payload: Mapping[str, object], expected: Mapping[str, object]) -> None:
    """Refuse observations or rules other than those of this version."""
    for name in ("observation", "rules"):
        value = payload.get(name)
        if (list(value) if isinstance(value, Sequence) else value) != expected[name]:
            raise CheckpointError(f"move policy: {name} must be what this version has, got others")


_LARGEST_NORMALISED = 10.0
"""As in `agents.ppo.normaliser.RunningNormaliser`."""


def quick_logits(network: MoveNet, observation: Observations) -> Observations:
    """Logits of the rules at one observation (D,), as a network of torch with these numbers."""
    numbers = network.numbers
    offset, remainder, precision = (
        numbers[f"normaliser.{name}"] for name in ("offset", "remainder", "precision")
    )
    outputs: Observations = (observation - offset - remainder) * precision
    outputs = outputs.clip(-_LARGEST_NORMALISED, _LARGEST_NORMALISED)
    num_hidden = len(network.architecture.hidden_sizes)
    for number in range(num_hidden):
        outputs = np.tanh(linear_forward(numbers, f"layers.{2 * number}", outputs))
    return linear_forward(numbers, f"layers.{2 * num_hidden}", outputs)


def likeliest(logits: Real, targets: Whole) -> int:
    """Likeliest rule that takes the likeliest plan.

    ``logits`` and ``targets`` are those of the rules, (R,).

    Examples
    --------
    The last two rules take a plan that is likelier than that of the first, which is likelier alone:

    >>> likeliest(np.log([0.4, 0.25, 0.35]), np.array([0, 1, 1]))
    2
    """
    weights = np.exp(logits - logits.max())
    of_plan = np.bincount(targets, weights=weights)
    return int(np.where(targets == of_plan.argmax(), weights, -1.0).argmax())


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
