"""Shape of the move network, and its content in files."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agents.decision.levels import MoveLevel
from agents.hi_ppo.moves.move_observation import observation_names
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES, WHOLE_RULES, RuleSet
from agents.ppo.checkpoint import CheckpointError, require_held
from agents.ppo.trained_net import LoadedNet, TrainedNet, linear_shapes, shaped_numbers


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
        architecture = MoveArchitecture(**{**sizes, "levels": _levels_of(payload)})
        widths = (architecture.observation_size, *architecture.hidden_sizes)
        require_held(payload["parameters"], widths)
        numbers = shaped_numbers(payload["parameters"], move_shapes(architecture))
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


def _levels_of(payload: Mapping[str, Any]) -> tuple[MoveLevel, ...]:
    return tuple(payload.get("levels", PIPELINE_RULES.levels))


def _require_known(payload: Mapping[str, object], expected: Mapping[str, object]) -> None:
    """Refuse observations or rules other than those of this version."""
    for name in ("observation", "rules"):
        value = payload.get(name)
        if (list(value) if isinstance(value, Sequence) else value) != expected[name]:
            raise CheckpointError(f"move policy: {name} must be what this version has, got others")
