"""Forward pass of the move network in numpy, since torch spends most of its time between calls."""

import numpy as np

from agents.hi_ppo.moves.move_checkpoint import MoveNet
from agents.ppo.trained_net import linear_forward
from des.compiled.many.layout import Observations, Real, Whole

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
