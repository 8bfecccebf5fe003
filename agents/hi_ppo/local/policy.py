"""The local policy: one network for all domains, which points at one of the options that fit."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agents.hi_ppo.local.features import CONTEXT_FEATURES, OPTION_FEATURES, Observation
from agents.ppo.checkpoint import (
    CheckpointError,
    load_checkpoint,
    remade_policy,
    require_held,
    save_checkpoint,
)
from agents.ppo.first_weights import FirstWeights, fill_first

_KIND = "local-agent"
_FIRST_OUTPUT_GAIN = 0.01
_LEAST_DEVIATION = 1e-6


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


def _layer(num_inputs: int, num_outputs: int, *, has_bias: bool = True) -> nn.Linear:
    """A layer without weights: torch would draw them from its global generator."""
    return nn.Linear(num_inputs, num_outputs, bias=has_bias, device="meta").to_empty(device="cpu")


class LocalPolicy(nn.Module):
    """Scores of options from the case and the option, each on its own; a value from the case.

    Two tanh layers, shared by all options, so any number of options can be scored and their order
    makes no difference. Options that do not fit are not among them. Inputs are standardised by
    figures that `standardise` takes from the cases of the training.
    """

    means: Tensor
    deviations: Tensor

    def __init__(self, architecture: LocalArchitecture, generator: FirstWeights) -> None:
        super().__init__()
        self.architecture = architecture
        num_context = len(architecture.context_features)
        num_inputs, size = num_context + len(architecture.option_features), architecture.hidden_size
        self.num_context = num_context
        self._columns = [OPTION_FEATURES.index(name) for name in architecture.option_features]
        self.of_context = _layer(num_context, size)
        self.of_option = _layer(num_inputs - num_context, size, has_bias=False)
        self.inner = _layer(size, size)
        self.score = _layer(size, 1)
        self.value_inner = _layer(size, size)
        self.value = _layer(size, 1)
        for name, layer in self.named_children():
            assert isinstance(layer, nn.Linear)
            gain = _FIRST_OUTPUT_GAIN if name in {"score", "value"} else math.sqrt(2)
            fill_first(layer.weight, gain, generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        self.register_buffer("means", torch.zeros(num_inputs))
        self.register_buffer("deviations", torch.ones(num_inputs))

    def forward(self, context: Tensor, options: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (B, N) and values (B,) of contexts (B, C) and options (B, N, O)."""
        split = self.num_context
        context = (context - self.means[:split]) / self.deviations[:split]
        options = (options[..., self._columns] - self.means[split:]) / self.deviations[split:]
        of_context = self.of_context(context)
        hidden = torch.tanh(of_context.unsqueeze(1) + self.of_option(options))
        scores = self.score(torch.tanh(self.inner(hidden))).squeeze(2)
        values = self.value(torch.tanh(self.value_inner(torch.tanh(of_context)))).squeeze(1)
        return scores, values

    def untrained(self, seed: int) -> "LocalPolicy":
        """Return a policy of fresh weights that standardises its inputs as this one does."""
        fresh = LocalPolicy(self.architecture, torch.Generator().manual_seed(seed))
        fresh.means.copy_(self.means)
        fresh.deviations.copy_(self.deviations)
        return fresh

    @torch.no_grad()
    def standardise(self, contexts: Tensor, options: Tensor) -> None:
        """Take means and deviations of contexts (B, C) and of options of them all (M, O)."""
        both = (contexts.double(), options[:, self._columns].double())
        self.means.copy_(torch.cat([each.mean(dim=0) for each in both]))
        deviations = torch.cat([each.std(dim=0, correction=0) for each in both])
        self.deviations.copy_(torch.where(deviations > _LEAST_DEVIATION, deviations, 1.0))

    @torch.no_grad()
    def scores(self, observation: Observation) -> np.ndarray:
        """Score of every option of a case (N,).

        Raises
        ------
        ValueError
            If the observation is not finite or of another shape.
        """
        shapes = ((self.num_context,), (len(observation.options), len(OPTION_FEATURES)))
        for name, shape in zip(("context", "options"), shapes, strict=True):
            found = getattr(observation, name)
            if found.shape != shape or not np.isfinite(found).all():
                raise ValueError(
                    f"local policy: {name} must be finite and of shape {shape}, got {found!r}"
                )
        return self._scores(observation.context, observation.options[:, self._columns])

    def _scores(self, context: np.ndarray, options: np.ndarray) -> np.ndarray:
        """Do what `forward` does for one case: outside torch, calls cost a third."""
        split = self.num_context
        means, deviations = self.means.numpy(), self.deviations.numpy()
        seen = ((context - means[:split]) / deviations[:split])[np.newaxis]
        hidden = np.tanh(
            _applied(self.of_context, seen)
            + _applied(self.of_option, (options - means[split:]) / deviations[split:])
        )
        scores: np.ndarray = _applied(self.score, np.tanh(_applied(self.inner, hidden)))[:, 0]
        return scores


def _applied(layer: nn.Linear, inputs: np.ndarray) -> np.ndarray:
    outputs: np.ndarray = inputs @ layer.weight.detach().numpy().T
    if layer.bias is not None:
        outputs += layer.bias.detach().numpy()
    return outputs


def save_policy(path: Path, policy: LocalPolicy, training: Mapping[str, object]) -> None:
    """Write a policy with what it was trained by, see `agents.ppo.checkpoint.save_checkpoint`."""
    payload = {
        "kind": _KIND,
        "architecture": asdict(policy.architecture),
        "parameters": dict(policy.state_dict()),
        "training": dict(training),
    }
    save_checkpoint(path, payload)


def load_policy(path: Path) -> LocalPolicy:
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
    return remade_policy(payload, source=path, expected={"kind": _KIND}, make=_make)


def _make(sizes: Mapping[str, Any], parameters: Mapping[str, Tensor]) -> LocalPolicy:
    architecture = LocalArchitecture(**sizes)
    require_held(parameters, (architecture.hidden_size, architecture.hidden_size))
    return LocalPolicy(architecture, None)
