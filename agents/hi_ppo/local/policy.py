"""The local policy: one network for all domains, which points at one of the options that fit."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.hi_ppo.local.features import CONTEXT_FEATURES, OPTION_FEATURES, Observation
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, require_held, save_checkpoint
from agents.ppo.trained_net import (
    LoadedNet,
    Numbers,
    TrainedNet,
    linear_forward,
    linear_shapes,
    load_net,
)

_KIND = "local-agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalArchitecture:
    """All that decides what the network computes, but its weights.

    ``option_features`` are some of `OPTION_FEATURES`, in that order: those it looks at.
    """

    context_features: tuple[str, ...] = CONTEXT_FEATURES
    option_features: tuple[str, ...] = OPTION_FEATURES
    hidden_size: int = 64

    def __post_init__(self) -> None:
        if isinstance(self.hidden_size, bool) or not 1 <= self.hidden_size <= 4096:
            raise ValueError(
                "local architecture: hidden_size must be a whole number from 1 to 4096, "
                f"got {self.hidden_size!r}"
            )
        known = [name for name in OPTION_FEATURES if name in self.option_features]
        if self.context_features != CONTEXT_FEATURES or list(self.option_features) != known:
            raise ValueError(
                f"local architecture: features must be {CONTEXT_FEATURES} of a case and some of "
                f"{OPTION_FEATURES} of an option, got {self.context_features} and "
                f"{self.option_features}"
            )


LocalNet = TrainedNet[LocalArchitecture]
"""A local policy that answers."""


def option_scores(policy: LocalNet, observation: Observation) -> np.ndarray:
    """Score of every option of a case (N,), without torch: its calls take three times as long.

    Raises
    ------
    ValueError
        If the observation is not finite or of another shape.
    """
    architecture, numbers = policy.architecture, policy.numbers
    split = len(architecture.context_features)
    shapes = ((split,), (len(observation.options), len(OPTION_FEATURES)))
    for name, shape in zip(("context", "options"), shapes, strict=True):
        found = getattr(observation, name)
        if found.shape != shape or not np.isfinite(found).all():
            raise ValueError(
                f"local policy: {name} must be finite and of shape {shape}, got {found!r}"
            )
    columns = [OPTION_FEATURES.index(name) for name in architecture.option_features]
    means, deviations = numbers["means"], numbers["deviations"]
    seen = ((observation.context - means[:split]) / deviations[:split])[np.newaxis]
    options = (observation.options[:, columns] - means[split:]) / deviations[split:]
    hidden = np.tanh(
        linear_forward(numbers, "of_context", seen) + linear_forward(numbers, "of_option", options)
    )
    inner = np.tanh(linear_forward(numbers, "inner", hidden))
    scores: np.ndarray = linear_forward(numbers, "score", inner)[:, 0]
    return scores


def save_policy(path: Path, policy: LocalNet, training: Mapping[str, object]) -> None:
    """Write a policy with what it was trained by, see `agents.ppo.checkpoint.save_checkpoint`."""
    payload = {
        "kind": _KIND,
        "architecture": asdict(policy.architecture),
        "parameters": dict(policy.numbers),
        "training": dict(training),
    }
    save_checkpoint(path, payload)


def load_policy(path: Path) -> LoadedNet[LocalArchitecture]:
    """Read a policy.

    Raises
    ------
    CheckpointError
        If the file is no checkpoint of a local policy, or of one that sees other features.
    """
    payload = load_checkpoint(path)
    found = payload.get("architecture")
    if isinstance(found, Mapping) and "servers" not in found.get("context_features", ("servers",)):
        raise CheckpointError(
            f"checkpoint {path}: local policy must see domains of several servers, got one of "
            "before; train it with python -m scenarios.east_west_train local"
        )
    return load_net(payload, source=path, expected={"kind": _KIND}, shapes_of=_shapes_of)


def _shapes_of(
    sizes: Mapping[str, Any], parameters: Numbers
) -> tuple[LocalArchitecture, dict[str, tuple[int, ...]]]:
    architecture = LocalArchitecture(**sizes)
    size = architecture.hidden_size
    require_held(parameters, (size, size))
    num_context, num_option = len(CONTEXT_FEATURES), len(architecture.option_features)
    return architecture, {
        **linear_shapes("of_context", size, num_context),
        "of_option.weight": (size, num_option),
        **linear_shapes("inner", size, size),
        **linear_shapes("score", 1, size),
        **linear_shapes("value_inner", size, size),
        **linear_shapes("value", 1, size),
        **dict.fromkeys(("means", "deviations"), (num_context + num_option,)),
    }
