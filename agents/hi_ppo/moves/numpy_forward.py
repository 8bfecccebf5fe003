"""Forward pass of the move network in numpy, since torch spends most of its time between calls."""

import numpy as np
import torch
from torch import nn

from agents.hi_ppo.moves.move_network import MoveNetwork
from agents.hi_ppo.placement.numpy_forward import linear_forward
from des.compiled.many.layout import Observations, Real, Whole


@torch.no_grad()
def quick_logits(network: MoveNetwork, observation: Observations) -> Observations:
    """Logits of the rules at one observation (D,), those of `network` but for rounding."""
    outputs: Observations = network.normaliser(torch.from_numpy(observation)).numpy()
    for layer in network.layers:
        outputs = (
            linear_forward(layer, outputs) if isinstance(layer, nn.Linear) else np.tanh(outputs)
        )
    return outputs


def likeliest(logits: Real, targets: Whole) -> tuple[int, float]:
    """Likeliest rule that takes the likeliest plan, and by how much the two lead, the lesser.

    ``logits`` and ``targets`` are those of the rules, (R,).

    Examples
    --------
    The last two rules take a plan that is likelier than that of the first, which is likelier alone:

    >>> rule, lead = likeliest(np.log([0.4, 0.25, 0.35]), np.array([0, 1, 1]))
    >>> rule, round(lead, 12)
    (2, 0.1)
    """
    weights = np.exp(logits - logits.max())
    probability = weights / weights.sum()
    of_plan = np.bincount(targets, weights=probability)
    by_rule = np.where(targets == of_plan.argmax(), probability, -1.0)
    leads = [
        float(one[-1] - one[-2]) for one in (np.sort(of_plan), np.sort(by_rule)) if len(one) > 1
    ]
    return int(by_rule.argmax()), min(leads)
