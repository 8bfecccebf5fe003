"""Actor and critic on one body, for vector observations and actions of several components."""

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from agents.ppo.action_head import ActionHead, JointAction
from agents.ppo.dense import layers_of, num_parameters, tanh_layers
from agents.ppo.devices import PRECISIONS
from agents.ppo.first_weights import FirstWeights, fill_first
from agents.ppo.normaliser import ObservationMoments, RunningNormaliser

MOST_CHOICES = 1_000_000
"""Choices of all components of an action together."""

_FIRST_OUTPUT_GAIN = 0.01
_FORBIDDEN = -1e9  # a logit that float32 turns into a probability of exactly 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArchitecture:
    """Everything that decides what a network computes, but its weights.

    ``action_sizes[i]`` is the number of choices of action component i. ``ordinal_starts[i]`` is
    None for plain categories; for ordered choices, of which neighbours have similar value, it is
    where the first policy looks, as a share of the range: 0 is the first choice, 1 the last.
    ``precision`` is that of the products within layers, one of `agents.ppo.devices.PRECISIONS`.
    With a ``candidate_size`` the last entries of an observation are as many for each choice of the
    one action component, see `PointerNetwork`.
    """

    observation_size: int
    action_sizes: tuple[int, ...]
    ordinal_starts: tuple[float | None, ...]
    hidden_sizes: tuple[int, ...] = (64, 64)
    precision: str = "float32"
    candidate_size: int = 0

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
            (
                "candidate_size",
                self.candidate_size == 0
                or (
                    len(self.action_sizes) == 1
                    and self.ordinal_starts == (None,)
                    and self.candidate_size >= 2
                    and self.num_shared >= 0
                ),
                "0, or at least 2 for each choice of one plain component",
            ),
            ("precision", self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}"),
        )
        for field, holds, allowed in checks:
            if not holds:
                raise ValueError(
                    f"architecture: {field} must be {allowed}, got {getattr(self, field)!r}"
                )

    @property
    def num_shared(self) -> int:
        """Entries of an observation that are of no choice."""
        return self.observation_size - self.candidate_size * self.action_sizes[0]

    def plain(self) -> dict[str, object]:
        """Fields as a file has them: without ``candidate_size`` where there is none."""
        fields = asdict(self)
        if not self.candidate_size:
            del fields["candidate_size"]
        return fields

    @property
    def widths(self) -> tuple[int, ...]:
        """Inputs, hidden units, and outputs for the policy: at least those of plain categories."""
        if self.candidate_size:
            return (self.num_shared + self.candidate_size, *self.hidden_sizes, 1)
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
        num_outputs = 1 if architecture.candidate_size else self.head.num_outputs
        self._sizes = (architecture.widths[0], *architecture.hidden_sizes, num_outputs + 1)
        self.parameter = nn.Parameter(torch.zeros(num_parameters(self._sizes)))
        with torch.no_grad():
            *hidden_layers, last = layers_of(self.parameter, self._sizes)
            for layer in hidden_layers:
                fill_first(layer.weight, math.sqrt(2), generator)
            for rows in torch.functional.split(last.weight, [num_outputs, 1]):
                fill_first(rows, _FIRST_OUTPUT_GAIN, generator)
            if not architecture.candidate_size:
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


class PointerNetwork(ActorCritic):
    """One network that rates every choice by itself, with what is of no choice beside it.

    Of the entries of a choice the first says whether it is allowed (1) or not (0), and the second
    is its rating before anything was learnt: the network adds to it. The value is the mean of
    second outputs. So the number of choices is not part of the weights, and observations are taken
    as they are.
    """

    def __init__(self, architecture: NetworkArchitecture, generator: FirstWeights) -> None:
        super().__init__(architecture, generator)
        self.normaliser = _AsTheyAre(architecture.observation_size)

    def forward(self, inputs: Tensor) -> tuple[JointAction, Tensor]:
        """Policy and values (B,) at observations (B, D)."""
        found = self.architecture
        num_choices = found.action_sizes[0]
        shared = inputs[:, : found.num_shared]
        choices = inputs[:, found.num_shared :].reshape(len(inputs), num_choices, -1)
        rows = torch.cat((shared.unsqueeze(1).expand(-1, num_choices, -1), choices), dim=2)
        outputs = tanh_layers(
            rows.flatten(0, 1), self.parameter, self._sizes, PRECISIONS[found.precision]
        )
        ratings, values = outputs.view(2, len(inputs), num_choices)
        logits = torch.where(choices[:, :, 0] > 0.0, ratings + choices[:, :, 1], _FORBIDDEN)
        empty = logits.new_zeros(0, len(inputs))
        return self.head(logits.t(), empty, empty), values.mean(dim=1)


class _AsTheyAre(RunningNormaliser):
    """Leave observations as they are."""

    def merge(self, moments: ObservationMoments) -> None:
        """Learn nothing."""

    def forward(self, observations: Tensor, out: Tensor | None = None) -> Tensor:
        """Observations (B, D), written to ``out`` if there is one."""
        return observations.clone() if out is None else out.copy_(observations)


def network_of(architecture: NetworkArchitecture, generator: FirstWeights) -> ActorCritic:
    """Return a new network, a pointer where the architecture has candidates."""
    kind = PointerNetwork if architecture.candidate_size else ActorCritic
    return kind(architecture, generator)
