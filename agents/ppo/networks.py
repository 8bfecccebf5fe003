"""Actor and critic on one body, for vector observations and actions of several components."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from agents.ppo.action_head import ActionHead, JointAction
from agents.ppo.dense import layers_of, num_parameters, tanh_layers
from agents.ppo.devices import PRECISIONS
from agents.ppo.first_weights import FirstWeights, fill_first
from agents.ppo.normaliser import RunningNormaliser

MOST_CHOICES = 1_000_000
"""Choices of all components of an action together."""

_FIRST_OUTPUT_GAIN = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArchitecture:
    """Everything that decides what a network computes, but its weights.

    ``action_sizes[i]`` is the number of choices of action component i. ``ordinal_starts[i]`` is
    None for plain categories; for ordered choices, of which neighbours have similar value, it is
    where the first policy looks, as a share of the range: 0 is the first choice, 1 the last.
    ``precision`` is that of the products within layers, one of `agents.ppo.devices.PRECISIONS`.
    """

    observation_size: int
    action_sizes: tuple[int, ...]
    ordinal_starts: tuple[float | None, ...]
    hidden_sizes: tuple[int, ...] = (64, 64)
    precision: str = "float32"

    def __post_init__(self) -> None:
        checks = (
            ("observation_size", self.observation_size >= 1, "at least 1"),
            (
                "action_sizes",
                len(self.action_sizes) >= 1
                and min(self.action_sizes) >= 1
                and sum(self.action_sizes) <= MOST_CHOICES,
                f"one or more sizes of at least 1, {MOST_CHOICES} together at most",
            ),
            (
                "ordinal_starts",
                len(self.ordinal_starts) == len(self.action_sizes)
                and all(start is None or 0 <= start <= 1 for start in self.ordinal_starts),
                f"None or within [0, 1] for each of {len(self.action_sizes)} action components",
            ),
            ("hidden_sizes", all(size >= 1 for size in self.hidden_sizes), "all at least 1"),
            ("precision", self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}"),
        )
        for field, holds, allowed in checks:
            if not holds:
                raise ValueError(
                    f"architecture: {field} must be {allowed}, got {getattr(self, field)!r}"
                )

    @property
    def widths(self) -> tuple[int, ...]:
        """Inputs, hidden units, and outputs for the policy: at least those of plain categories."""
        pairs = zip(self.action_sizes, self.ordinal_starts, strict=True)
        nominal = [size for size, start in pairs if start is None]
        outputs = len(nominal) * max(nominal, default=0)
        return (self.observation_size, *self.hidden_sizes, outputs)


class ActorCritic(nn.Module):
    """One tanh network whose last layer gives both the policy and the value.

    Calling it takes observations (B, D) as ``normaliser`` has standardised them; the other methods
    but ``act`` take raw ones. Weights are orthogonal, drawn from ``generator`` only; those of the
    last layer are so small that the first policy is nearly the same everywhere (uniform over
    nominal components, around their start over ordinal ones) and the first values nearly 0.

    All weights are one vector, ``parameter``, so that optimising takes a few operations.
    """

    def __init__(self, architecture: NetworkArchitecture, generator: FirstWeights) -> None:
        super().__init__()
        self.architecture = architecture
        self.normaliser = RunningNormaliser(architecture.observation_size)
        self.head = ActionHead(architecture.action_sizes, architecture.ordinal_starts)
        num_outputs = self.head.num_outputs
        self._sizes = (architecture.observation_size, *architecture.hidden_sizes, num_outputs + 1)
        self.parameter = nn.Parameter(torch.zeros(num_parameters(self._sizes)))
        with torch.no_grad():
            *hidden_layers, last = layers_of(self.parameter, self._sizes)
            for layer in hidden_layers:
                fill_first(layer.weight, math.sqrt(2), generator)
            for rows in torch.functional.split(last.weight, [num_outputs, 1]):
                fill_first(rows, _FIRST_OUTPUT_GAIN, generator)
            last.bias[:-1] = self.head.first_outputs()

    def forward(self, inputs: Tensor) -> tuple[JointAction, Tensor]:
        """Policy and values (B,) at standardised observations (B, D)."""
        precision = PRECISIONS[self.architecture.precision]
        outputs = tanh_layers(inputs, self.parameter, self._sizes, precision)
        *of_policy, values = torch.functional.split(outputs, [*self.head.widths, 1])
        return self.head(*of_policy), values.squeeze(0)

    def act(self, inputs: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Sample actions (B, A) at standardised observations; also their log-probabilities (B,).

        The third are the values (B,).
        """
        policy, values = self(inputs)
        actions = policy.sample(generator)
        return actions, policy.log_prob(actions), values

    def greedy(self, observations: Tensor) -> Tensor:
        """Most likely actions (B, A)."""
        return self.policy(observations).mode()

    def policy(self, observations: Tensor) -> JointAction:
        """Distribution of the joint action at every observation."""
        policy: JointAction = self(self.normaliser(observations))[0]
        return policy

    def value(self, observations: Tensor) -> Tensor:
        """Value (B,) of every observation."""
        values: Tensor = self(self.normaliser(observations))[1]
        return values
