"""First weights of networks: orthogonal ones, or none where trained ones are loaded next."""

import torch
from torch import Tensor, nn

FirstWeights = torch.Generator | None
"""Generator that draws first weights; None: others are loaded next, and drawing would take long."""


def fill_first(weight: Tensor, gain: float, generator: FirstWeights) -> None:
    """Fill a matrix with orthogonal weights of a gain, or with 0 where others are loaded next."""
    with torch.no_grad():
        if generator is None:
            weight.zero_()
        else:
            nn.init.orthogonal_(weight, gain, generator=generator)


class BareLinear(nn.Linear):
    """A layer without first weights: torch would draw them from its global generator."""

    def reset_parameters(self) -> None:
        """Draw nothing."""


def draw_linear(
    num_inputs: int, num_outputs: int, generator: FirstWeights, gain: float = 1.0
) -> nn.Linear:
    """Make a layer of the first weights that `fill_first` gives, and no bias to begin with."""
    layer = BareLinear(num_inputs, num_outputs)
    fill_first(layer.weight, gain, generator)
    with torch.no_grad():
        layer.bias.zero_()
    return layer
