"""The network of the move policy: from an observation to how likely each rule is."""

import itertools
import math
from typing import Self

import torch
from torch import Tensor, nn

from agents.hi_ppo.moves.move_policy import MoveArchitecture, MoveNet
from agents.ppo.first_weights import FirstWeights, draw_linear
from agents.ppo.normaliser import RunningNormaliser
from agents.ppo.trained_policy import NumberedModule, tensors_of

_FIRST_OUTPUT_GAIN = 0.01
_START_SHARPNESS = 0.75  # of the first policy: nats a factor of 2 in the horizon
_START_DISBELIEF = 2.0  # nats from belief 0 to 1
_START_RELUCTANCE = 2.0  # nats a level below the top


class MoveNetwork(NumberedModule):
    """Logits of the rules, (B, R), at raw observations (B, D).

    Weights are orthogonal, drawn from ``generator`` only; the last ones are so small that the
    first policy is nearly the same everywhere: around the rule that the architecture names.
    """

    def __init__(self, architecture: MoveArchitecture, generator: FirstWeights) -> None:
        super().__init__()
        self.architecture = architecture
        self.normaliser = RunningNormaliser(architecture.observation_size)
        sizes = (architecture.observation_size, *architecture.hidden_sizes)
        layers: list[nn.Module] = []
        for num_in, num_out in itertools.pairwise(sizes):
            layers += [draw_linear(num_in, num_out, generator, math.sqrt(2)), nn.Tanh()]
        num_rules = len(architecture.rule_set.rules)
        last = draw_linear(sizes[-1], num_rules, generator, _FIRST_OUTPUT_GAIN)
        with torch.no_grad():
            last.bias.copy_(torch.tensor(_first_logits(architecture)))
        self.layers = nn.Sequential(*layers, last)

    @classmethod
    def of(cls, net: MoveNet) -> Self:
        """Make a network that computes with the numbers of another."""
        network = cls(net.architecture, None)
        network.load_state_dict(tensors_of(net.numbers))
        return network.eval()

    def forward(self, observations: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.layers(self.normaliser(observations))
        return logits


def choice_log_probs(logits: Tensor, choice_of_rule: Tensor, num_choices: int) -> Tensor:
    """Log-probabilities of plans, (B, U), of which each is taken by some rules.

    Parameters
    ----------
    logits
        Of the rules, (B, R).
    choice_of_rule
        Choice of each rule, int64 (B, R).
    num_choices
        U; choices that no rule makes get a log-probability of about -69.

    Examples
    --------
    Of three rules as likely as each other two make the first choice:

    >>> logs = choice_log_probs(torch.zeros(1, 3), torch.tensor([[0, 1, 0]]), 2)
    >>> [round(p, 4) for p in logs.exp().squeeze(0).tolist()]
    [0.6667, 0.3333]
    """
    probs = logits.softmax(dim=1)
    joint = probs.new_zeros(len(probs), num_choices).scatter_add(1, choice_of_rule, probs)
    return joint.clamp_min(1e-30).log()


def _first_logits(architecture: MoveArchitecture) -> list[float]:
    """Logits that fall with the distance from a horizon, from belief 0 and from the top level."""
    levels, start_epochs = architecture.levels, architecture.start_horizon_epochs
    return [
        -_START_SHARPNESS * abs(math.log2(rule.horizon_epochs / start_epochs))
        - _START_DISBELIEF * rule.belief
        - _START_RELUCTANCE * (len(levels) - 1.0 - levels.index(rule.level))
        for rule in architecture.rule_set.rules
    ]
