"""Joint actions of several components, and the network outputs that they are drawn from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from agents.ppo.distributions import Nominal, Ordinal, ordinal_z

_NEVER = -1e9  # a logit that float32 turns into a probability of exactly 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JointAction:
    """B joint actions of A independent components.

    The nominal components followed by the ordinal ones are the components ``arrangement`` (A,);
    component i is at place ``places[i]`` there.
    """

    nominal: Nominal
    ordinal: Ordinal
    arrangement: Tensor
    places: Tensor

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability (B,) of joint actions (B, A)."""
        nominal, ordinal = self._apart(actions)
        return self.nominal.log_prob(nominal) + self.ordinal.log_prob(ordinal)

    def entropy(self) -> Tensor:
        """Entropy (B,), that of ordered components before they are made discrete. [nats]"""
        return self.nominal.entropy() + self.ordinal.entropy()

    def log_prob_and_entropy(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Both at once, with a faster gradient."""
        nominal, ordinal = self._apart(actions)
        log_prob, entropy = self.nominal.log_prob_and_entropy(nominal)
        ordinal_log_prob, ordinal_entropy = self.ordinal.log_prob_and_entropy(ordinal)
        return log_prob + ordinal_log_prob, entropy + ordinal_entropy

    def mode(self) -> Tensor:
        """Most likely joint actions (B, A); of ordered components, those at their location."""
        return self._together(self.nominal.mode(), self.ordinal.mode())

    def sample(self, generator: torch.Generator) -> Tensor:
        """Joint actions (B, A): one uniform number per component."""
        location = self.ordinal.location
        shape = (len(self.places), location.shape[-1])
        uniform = torch.rand(shape, generator=generator, device=location.device)
        nominal, ordinal = uniform.tensor_split((len(self.nominal.logits),))
        return self._together(self.nominal.sample(nominal), self.ordinal.sample(ordinal))

    def _apart(self, actions: Tensor) -> tuple[Tensor, ...]:
        """Nominal and ordinal choices (., B) of actions (B, A)."""
        rows = actions.t().index_select(0, self.arrangement)
        return rows.tensor_split((len(self.nominal.logits),))

    def _together(self, nominal: Tensor, ordinal: Tensor) -> Tensor:
        return torch.cat((nominal, ordinal)).index_select(0, self.places).t().contiguous()


class ActionHead(nn.Module):
    """Turn network outputs into a distribution over actions of several components.

    Nominal components come first, each with as many outputs as the largest of them has choices;
    then z of every ordinal component, then w, see `Ordinal.from_outputs`.
    """

    padding: Tensor
    last: Tensor
    arrangement: Tensor
    places: Tensor

    def __init__(self, action_sizes: Sequence[int], ordinal_starts: Sequence[float | None]) -> None:
        super().__init__()
        starts = list(ordinal_starts)
        nominal = [i for i, start in enumerate(starts) if start is None]
        ordinal = [i for i, start in enumerate(starts) if start is not None]
        self._nominal_shape = (len(nominal), max((action_sizes[i] for i in nominal), default=1))
        self.widths = [math.prod(self._nominal_shape), len(ordinal), len(ordinal)]
        self._first_z = [ordinal_z(start) for start in starts if start is not None]
        self.num_outputs = sum(self.widths)
        padding = torch.zeros(*self._nominal_shape, 1)
        for row, i in enumerate(nominal):
            padding[row, action_sizes[i] :] = _NEVER
        last = torch.tensor([action_sizes[i] - 1.0 for i in ordinal]).view(-1, 1)
        arrangement = torch.tensor(nominal + ordinal)
        for name, constant in (
            ("padding", padding),
            ("last", last),
            ("arrangement", arrangement),
            ("places", arrangement.argsort()),
        ):
            self.register_buffer(name, constant, persistent=False)

    def forward(self, logits: Tensor, z: Tensor, w: Tensor) -> JointAction:
        """Distribution of B joint actions from outputs (., B), ``widths`` of each kind."""
        return JointAction(
            nominal=Nominal(
                logits=logits.view(*self._nominal_shape, logits.shape[-1]) + self.padding
            ),
            ordinal=Ordinal.from_outputs(z, w, self.last),
            arrangement=self.arrangement,
            places=self.places,
        )

    def first_outputs(self) -> Tensor:
        """Outputs (``num_outputs``,) that put ordinal locations where they start."""
        return torch.tensor([0.0] * self.widths[0] + self._first_z + [0.0] * self.widths[2])
