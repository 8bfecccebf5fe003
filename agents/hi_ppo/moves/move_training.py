"""Trains the move policy by PPO, with advantages that are exact because episodes are tables."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agents.hi_ppo.moves.move_env import MoveGame, joined_games
from agents.hi_ppo.moves.move_evaluation import policy_of
from agents.hi_ppo.moves.move_network import (
    MoveArchitecture,
    MoveNetwork,
    choice_log_probs,
    move_network_from_payload,
    move_network_payload,
)
from agents.ppo.checkpoint import CheckpointError
from agents.ppo.normaliser import Moments
from agents.ppo.ppo_loss import gains_of
from agents.ppo.training_state import random_state, require_same, set_random_state, update_of

_LEAST_CHANCE = 1e-4  # states that are met less often are not learnt from
_FIGURES = ("policy_loss", "entropy", "approximate_kl", "clip_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTrainingConfig:
    """Hyperparameters; pairs ``x`` and ``final_x`` are joined by a line over the training.

    Attributes
    ----------
    num_updates
        Each plays ``episodes_per_update`` episodes under the policy of the moment and then runs
        ``num_epochs`` times over their states in minibatches of ``minibatch_states``.
    weight_decay
        Of AdamW.
    """

    num_updates: int = 150
    episodes_per_update: int = 24
    num_epochs: int = 3
    minibatch_states: int = 1024
    learning_rate: float = 1e-3
    final_learning_rate: float = 1e-4
    clip_range: float = 0.2
    entropy_coefficient: float = 0.02
    final_entropy_coefficient: float = 0.001
    max_gradient_norm: float = 1.0
    weight_decay: float = 0.3
    hidden_sizes: tuple[int, ...] = (64, 64)
    start_horizon_epochs: float = 3.0

    def __post_init__(self) -> None:
        for name in ("num_updates", "episodes_per_update", "num_epochs", "minibatch_states"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"move training: {name} must be at least 1, got {getattr(self, name)!r}"
                )
        for name in (
            "learning_rate",
            "final_learning_rate",
            "entropy_coefficient",
            "final_entropy_coefficient",
            "weight_decay",
        ):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(
                    f"move training: {name} must be at least 0 and finite, "
                    f"got {getattr(self, name)!r}"
                )
        if not 0 < self.clip_range < 1 or not 0 < self.max_gradient_norm < math.inf:
            raise ValueError(
                "move training: clip_range must be in (0, 1) and max_gradient_norm positive and "
                f"finite, got {self.clip_range!r} and {self.max_gradient_norm!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveUpdate:
    """What one update met and did.

    ``cost`` is the mean cost of an epoch over that of the clairvoyant, under the policy before the
    update; losses and divergences are means over minibatches.
    """

    update_index: int
    cost: float
    policy_loss: float
    entropy: float
    approximate_kl: float
    clip_fraction: float
    learning_rate: float


class MoveTrainer:
    """Trains a network on games, update by update; equal arguments give equal weights.

    Parameters
    ----------
    games
        One episode each.
    seed
        For the first weights, the episodes of each update and the order of minibatches.

    Notes
    -----
    Proximal policy optimisation [1]_ with three differences that episodes in tables allow:
    advantages are those of the policy, worked out backwards over all states it can come to, so
    nothing is estimated by a critic; all choices of a state count by their probability, not a
    drawn one; states count by the chance that an episode comes through them.

    References
    ----------
    .. [1] J. Schulman, F. Wolski, P. Dhariwal, A. Radford and O. Klimov, "Proximal policy
       optimization algorithms", arXiv:1707.06347, 2017.
    """

    def __init__(self, games: Sequence[MoveGame], *, config: MoveTrainingConfig, seed: int) -> None:
        if not games:
            raise ValueError("move training: games must be one or more, got none")
        self.config, self.seed, self.update = config, seed, 0
        self._games = games
        first, drawing = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._rng = np.random.default_rng(int(drawing))
        architecture = MoveArchitecture(
            hidden_sizes=config.hidden_sizes, start_horizon_epochs=config.start_horizon_epochs
        )
        self.network = MoveNetwork(architecture, torch.Generator().manual_seed(int(first)))
        for game in games:
            self.network.normaliser.merge(Moments.of(torch.from_numpy(game.observation)))
        self._optimiser = torch.optim.AdamW(
            self.network.layers.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        self._queue: list[int] = []

    def run(self) -> Iterator[MoveUpdate]:
        """Train to the end, update by update."""
        count = self.config.episodes_per_update
        while self.update < self.config.num_updates:
            while len(self._queue) < count:
                self._queue += self._rng.permutation(len(self._games)).tolist()
            drawn, self._queue = self._queue[:count], self._queue[count:]
            game = joined_games([self._games[at] for at in drawn])
            self.update += 1
            yield _update(
                self.network, self._optimiser, game, self.config, self._rng, index=self.update - 1
            )

    def state(self) -> dict[str, object]:
        """Snapshot for `save_checkpoint`; also what `MovePolicy.load` reads."""
        return {
            "move_policy": move_network_payload(self.network),
            **self._identity(),
            "update": self.update,
            "rng": random_state(self._rng),
            "queue": list(self._queue),
            "optimiser": self._optimiser.state_dict(),
        }

    def load_state(self, state: Mapping[str, Any], *, source: Path) -> None:
        """Go on from a snapshot of an equal training on the same games; ``source`` is its file.

        Raises
        ------
        CheckpointError
            If it is none, or of another training.
        """
        try:
            update = update_of(state, most=self.config.num_updates)
            require_same(state, self._identity())
            network = move_network_from_payload(state["move_policy"])
            self.network.load_state_dict(network.state_dict())
            self._optimiser.load_state_dict(state["optimiser"])
            set_random_state(self._rng, state["rng"])
            self._queue = [int(at) for at in state["queue"]]
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"checkpoint {source}: {error}") from error
        self.update = update

    def _identity(self) -> dict[str, object]:
        """What must agree before a snapshot can be continued."""
        settings = asdict(self.config)
        return {"training_seed": self.seed, "training": settings, "num_games": len(self._games)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Experience:
    """B states: what was seen, what could be chosen, and how good each choice is.

    Weights have mean 1; advantages are 0 for what cannot be chosen.
    """

    observations: Tensor
    choice_of_rule: Tensor
    old_log_probs: Tensor
    advantages: Tensor
    weights: Tensor

    def rows(self, rows: Tensor) -> "_Experience":
        return _Experience(
            observations=self.observations[rows],
            choice_of_rule=self.choice_of_rule[rows],
            old_log_probs=self.old_log_probs[rows],
            advantages=self.advantages[rows],
            weights=self.weights[rows],
        )


def _update(
    network: MoveNetwork,
    optimiser: torch.optim.Optimizer,
    game: MoveGame,
    config: MoveTrainingConfig,
    rng: np.random.Generator,
    *,
    index: int,
) -> MoveUpdate:
    """Play, judge, and descend on what was met."""
    progress = index / config.num_updates
    learning_rate = _line(config.learning_rate, config.final_learning_rate, progress)
    entropy_coefficient = _line(
        config.entropy_coefficient, config.final_entropy_coefficient, progress
    )
    for group in optimiser.param_groups:
        group["lr"] = learning_rate
    cost, experience = _play(network, game)
    figures = []
    for _ in range(config.num_epochs):
        order = torch.from_numpy(rng.permutation(len(experience.weights)))
        for rows in torch.split(order, config.minibatch_states):
            loss, measured = _loss(
                network, experience.rows(rows), config.clip_range, entropy_coefficient
            )
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            norm = nn.utils.clip_grad_norm_(
                network.layers.parameters(), config.max_gradient_norm, error_if_nonfinite=True
            )
            assert norm.isfinite()
            optimiser.step()
            figures.append(measured)
    means = torch.stack(figures).mean(dim=0).tolist()
    return MoveUpdate(
        update_index=index,
        cost=cost,
        learning_rate=learning_rate,
        **dict(zip(_FIGURES, means, strict=True)),
    )


def _play(network: MoveNetwork, game: MoveGame) -> tuple[float, _Experience]:
    """Mean cost of an epoch under the policy, and the states that it meets."""
    probability = policy_of(network, game)
    of_choice, of_state = game.values(probability)
    chance = game.occupancy(probability)
    met = np.flatnonzero(chance > _LEAST_CHANCE)
    advantages = np.where(game.chosen[met] >= 0, of_state[met, np.newaxis] - of_choice[met], 0.0)
    weights = chance[met] / chance[met].mean()
    spread = math.sqrt(
        float((weights[:, np.newaxis] * probability[met] * advantages**2).sum() / len(met))
    )
    experience = _Experience(
        observations=torch.from_numpy(game.observation[met]),
        choice_of_rule=torch.from_numpy(game.choice_of_rule[met].astype(np.int64)),
        old_log_probs=torch.from_numpy(np.log(np.maximum(probability[met], 1e-30))).float(),
        advantages=torch.from_numpy(advantages / (spread + 1e-12)).float(),
        weights=torch.from_numpy(weights).float(),
    )
    return float((of_state[game.starts] / game.num_epochs).mean()), experience


def _loss(
    network: MoveNetwork, batch: _Experience, clip_range: float, entropy_coefficient: float
) -> tuple[Tensor, Tensor]:
    """Loss of a minibatch, and `_FIGURES`, which have no gradient."""
    logits = network(batch.observations)
    log_probs = choice_log_probs(logits, batch.choice_of_rule, batch.old_log_probs.shape[1])
    old = batch.old_log_probs.exp()
    ratio = (log_probs - batch.old_log_probs).exp()
    gains, held_gains = gains_of(ratio, batch.advantages, clip_range)
    weights = batch.weights
    policy_loss = -(weights * (old * torch.minimum(gains, held_gains)).sum(dim=1)).mean()
    rules = logits.log_softmax(dim=1)
    entropy = -(weights * (rules.exp() * rules).sum(dim=1)).mean()
    divergence = (weights * (old * (batch.old_log_probs - log_probs)).sum(dim=1)).mean()
    is_outside = ratio != ratio.clamp(1 - clip_range, 1 + clip_range)
    outside = (weights * (old * is_outside).sum(dim=1)).mean()
    figures = torch.stack((policy_loss, entropy, divergence, outside)).detach()
    return policy_loss - entropy_coefficient * entropy, figures


def _line(first: float, final: float, progress: float) -> float:
    return first + (final - first) * progress
