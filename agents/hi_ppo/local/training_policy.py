"""The local policy in training: one network for all domains, a module of torch."""

import math
from typing import Self

import torch
from torch import Tensor, nn

from agents.hi_ppo.local.features import OPTION_FEATURES
from agents.hi_ppo.local.policy import LocalArchitecture, LocalNet
from agents.ppo.first_weights import BareLinear, FirstWeights, fill_first
from agents.ppo.trained_policy import NumberedModule

_FIRST_OUTPUT_GAIN = 0.01
_LEAST_DEVIATION = 1e-6


class LocalPolicy(NumberedModule):
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
        self.of_context = BareLinear(num_context, size)
        self.of_option = BareLinear(num_inputs - num_context, size, bias=False)
        self.inner = BareLinear(size, size)
        self.score = BareLinear(size, 1)
        self.value_inner = BareLinear(size, size)
        self.value = BareLinear(size, 1)
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

    @classmethod
    def untrained(cls, trained: LocalNet, seed: int) -> Self:
        """Make a policy of fresh weights that standardises its inputs as a trained one does."""
        fresh = cls(trained.architecture, torch.Generator().manual_seed(seed))
        for name in ("means", "deviations"):
            getattr(fresh, name).copy_(torch.from_numpy(trained.numbers[name]))
        return fresh

    @torch.no_grad()
    def standardise(self, contexts: Tensor, options: Tensor) -> None:
        """Take means and deviations of contexts (B, C) and of options of them all (M, O)."""
        both = (contexts.double(), options[:, self._columns].double())
        self.means.copy_(torch.cat([each.mean(dim=0) for each in both]))
        deviations = torch.cat([each.std(dim=0, correction=0) for each in both])
        self.deviations.copy_(torch.where(deviations > _LEAST_DEVIATION, deviations, 1.0))
