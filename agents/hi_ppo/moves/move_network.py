"""The network of the move policy: from an observation to how likely each rule is."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from agents.decision.levels import MoveLevel
from agents.hi_ppo.moves.move_observation import observation_names
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES, WHOLE_RULES, RuleSet
from agents.ppo.checkpoint import CheckpointError, require_held
from agents.ppo.first_weights import FirstWeights, draw_linear
from agents.ppo.normaliser import RunningNormaliser

_FIRST_OUTPUT_GAIN = 0.01
_START_SHARPNESS = 0.75  # of the first policy: nats a factor of 2 in the horizon
_START_DISBELIEF = 2.0  # nats from belief 0 to 1
_START_RELUCTANCE = 2.0  # nats a level below the top


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveArchitecture:
    """Shape of the move network: all that determines its output but the weights.

    Attributes
    ----------
    levels
        Levels of the rules, see `agents.hi_ppo.moves.move_rules.RuleSet`.
    hidden_sizes
        Units between, with tanh.
    start_horizon_epochs
        Of the rule that is likeliest at first: the top level, belief 0.
    """

    levels: tuple[MoveLevel, ...] = PIPELINE_RULES.levels
    hidden_sizes: tuple[int, ...] = (64, 64)
    start_horizon_epochs: float = 3.0

    def __post_init__(self) -> None:
        if self.levels not in (PIPELINE_RULES.levels, WHOLE_RULES.levels):
            raise ValueError(
                f"move architecture: levels must be {PIPELINE_RULES.levels} or "
                f"{WHOLE_RULES.levels}, got {self.levels!r}"
            )
        if min(self.hidden_sizes, default=1) < 1:
            raise ValueError(
                f"move architecture: hidden_sizes must all be at least 1, got {self.hidden_sizes}"
            )
        if not 0 < self.start_horizon_epochs < math.inf:
            raise ValueError(
                "move architecture: start_horizon_epochs must be positive and finite, got "
                f"{self.start_horizon_epochs!r}"
            )

    @property
    def rule_set(self) -> RuleSet:
        """Rules that the network chooses among."""
        return PIPELINE_RULES if self.levels == PIPELINE_RULES.levels else WHOLE_RULES

    @property
    def observation_size(self) -> int:
        """Entries of an observation, D."""
        return len(observation_names(self.rule_set))


class MoveNetwork(nn.Module):
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


def move_network_payload(network: MoveNetwork) -> dict[str, object]:
    """Plain content from which `move_network_from_payload` rebuilds the network.

    The levels of `PIPELINE_RULES` go without saying, as in the first files there were.
    """
    architecture = network.architecture
    levels = architecture.levels
    return {
        "observation": list(observation_names(architecture.rule_set)),
        "rules": [asdict(rule) for rule in architecture.rule_set.rules],
        "observation_size": architecture.observation_size,
        "num_rules": len(architecture.rule_set.rules),
        **({} if levels == PIPELINE_RULES.levels else {"levels": levels}),
        "hidden_sizes": architecture.hidden_sizes,
        "start_horizon_epochs": architecture.start_horizon_epochs,
        "parameters": dict(network.state_dict()),
    }


def move_network_from_payload(payload: object) -> MoveNetwork:
    """Rebuild a network.

    Raises
    ------
    CheckpointError
        If the content does not describe one, or one of other observations, rules or sizes.
    """
    if not isinstance(payload, Mapping):
        raise CheckpointError(f"move policy: content must be a dict, got {type(payload).__name__}")
    sizes = {
        name: value
        for name, value in payload.items()
        if name in ("levels", "hidden_sizes", "start_horizon_epochs")
    }
    try:
        architecture = MoveArchitecture(**{**sizes, "levels": _levels_of(payload)})
        widths = (architecture.observation_size, *architecture.hidden_sizes)
        require_held(payload["parameters"], widths)
        network = MoveNetwork(architecture, None)
        _require_known(payload, move_network_payload(network))
        network.load_state_dict(payload["parameters"])
    except CheckpointError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            "move policy: content must hold the sizes of a network and parameters of these sizes, "
            f"got {sizes} ({type(error).__name__}: {error})"
        ) from error
    if not all(value.isfinite().all() for value in network.state_dict().values()):
        raise CheckpointError("move policy: parameters must be finite")
    return network.eval()


def _levels_of(payload: Mapping[str, Any]) -> tuple[MoveLevel, ...]:
    return tuple(payload.get("levels", PIPELINE_RULES.levels))


def _require_known(payload: Mapping[str, object], expected: Mapping[str, object]) -> None:
    """Refuse observations or rules other than those of this version."""
    for name in ("observation", "rules"):
        value = payload.get(name)
        if (list(value) if isinstance(value, Sequence) else value) != expected[name]:
            raise CheckpointError(f"move policy: {name} must be what this version has, got others")


def _first_logits(architecture: MoveArchitecture) -> list[float]:
    """Logits that fall with the distance from a horizon, from belief 0 and from the top level."""
    levels, start_epochs = architecture.levels, architecture.start_horizon_epochs
    return [
        -_START_SHARPNESS * abs(math.log2(rule.horizon_epochs / start_epochs))
        - _START_DISBELIEF * rule.belief
        - _START_RELUCTANCE * (len(levels) - 1.0 - levels.index(rule.level))
        for rule in architecture.rule_set.rules
    ]
