"""Trains the move policy by PPO, with advantages that are exact because episodes are tables."""

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.hi_ppo.moves.move_config import MoveTrainingConfig
from agents.hi_ppo.moves.move_env import MoveGame, join_games
from agents.hi_ppo.moves.move_network import MoveNetwork, choice_log_probs
from agents.hi_ppo.moves.move_policy import (
    MoveArchitecture,
    MoveNet,
    move_network_from_payload,
    move_network_payload,
)
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES, RuleSet
from agents.ppo.normaliser import ObservationMoments
from agents.ppo.policy_update import PolicyUpdate, TensorRows
from agents.ppo.ppo_loss import gains_of
from agents.ppo.trained_policy import Part, Snapshot, random_state, set_random_state, tensors_of
from des.compiled.many.layout import Real

_NUM_THREADS = 2
_LEAST_CHANCE = 1e-4  # states that are met less often are not learnt from
_FIGURES = ("policy_loss", "entropy", "approximate_kl", "clip_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveUpdate:
    """Report of one update.

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
    rule_set
        Rules of the games.
    start
        Begin from its weights, inputs scaled as there; None: from new ones.

    Notes
    -----
    Proximal policy optimisation [1]_ with three differences that episodes in tables allow:
    advantages are those of the policy, worked out backwards over all states it can reach, so
    nothing is estimated by a critic; all choices of a state count by their probability, not a
    drawn one; states count by the chance that an episode comes through them.

    References
    ----------
    .. [1] J. Schulman, F. Wolski, P. Dhariwal, A. Radford and O. Klimov, "Proximal policy
       optimization algorithms", arXiv:1707.06347, 2017.
    """

    def __init__(
        self,
        games: Sequence[MoveGame],
        *,
        config: MoveTrainingConfig,
        seed: int,
        rule_set: RuleSet = PIPELINE_RULES,
        start: MoveNet | None = None,
    ) -> None:
        if not games:
            raise ValueError("move training: games must be one or more, got none")
        self.config, self.seed, self.update = config, seed, 0
        self._games = games
        first, drawing = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._rng = np.random.default_rng(int(drawing))
        architecture = MoveArchitecture(
            levels=rule_set.levels,
            hidden_sizes=config.hidden_sizes,
            start_horizon_epochs=config.start_horizon_epochs,
        )
        generator = torch.Generator().manual_seed(int(first))
        self.network = MoveNetwork(start.architecture if start else architecture, generator)
        if start is not None:
            self.network.load_state_dict(tensors_of(start.numbers))
        for game in [] if start else games:
            self.network.normaliser.merge(ObservationMoments.of(torch.from_numpy(game.observation)))
        self._optimiser = torch.optim.AdamW(
            self.network.layers.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        self._policy_update = PolicyUpdate(
            config=config,
            optimiser=self._optimiser,
            loss=partial(_loss, self.network, config.clip_range),
            figure_names=_FIGURES,
            minibatches=partial(_minibatches, config.minibatch_states, self._rng),
        )
        self._queue: list[int] = []
        self._snapshot = Snapshot(
            num_updates=config.num_updates,
            identity={
                "training_seed": seed,
                "training": asdict(config),
                "num_games": len(games),
            },
            parts={
                "rng": Part(partial(random_state, self._rng), partial(set_random_state, self._rng)),
                "queue": Part(lambda: list(self._queue), self._set_queue),
                "optimiser": Part(self._optimiser.state_dict, self._optimiser.load_state_dict),
            },
        )

    def run(self) -> Iterator[MoveUpdate]:
        """Train to the end, update by update."""
        while self.update < self.config.num_updates:
            yield self.step()

    def step(self) -> MoveUpdate:
        """Make one update."""
        count, index = self.config.episodes_per_update, self.update
        while len(self._queue) < count:
            self._queue += self._rng.permutation(len(self._games)).tolist()
        drawn, self._queue[:] = self._queue[:count], self._queue[count:]
        cost, experience = _play(self.network, join_games([self._games[at] for at in drawn]))
        outcome = self._policy_update.descend(
            experience, index=index, progress=index / self.config.num_updates
        )
        self.update += 1
        return MoveUpdate(
            update_index=index, cost=cost, learning_rate=outcome.learning_rate, **outcome.figures
        )

    def play_on(self, games: Sequence[MoveGame]) -> None:
        """Continue on as many other games."""
        if len(games) != len(self._games):
            raise ValueError(
                f"move training: games must be {len(self._games)} as before, got {len(games)}"
            )
        self._games = games

    def state(self) -> dict[str, object]:
        """Snapshot for `save_checkpoint`; also what `MovePolicy.load` reads."""
        policy = {"move_policy": move_network_payload(self.network)}
        return policy | self._snapshot.state(self.update)

    def load_state(self, state: Mapping[str, Any], *, source: Path) -> None:
        """Continue from a snapshot of an equal training on the same games; ``source`` is its file.

        Raises
        ------
        CheckpointError
            If it is none, or of another training.
        """

        def restore() -> None:
            network = move_network_from_payload(state["move_policy"])
            self.network.load_state_dict(tensors_of(network.numbers))

        self.update = self._snapshot.load(state, source=source, restore=restore)

    def _set_queue(self, queue: Sequence[Any]) -> None:
        self._queue[:] = [int(at) for at in queue]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Experience(TensorRows):
    """B states: what was seen, what could be chosen, and how good each choice is.

    Weights have mean 1; advantages are 0 for what cannot be chosen.
    """

    observations: Tensor
    choice_of_rule: Tensor
    old_log_probs: Tensor
    advantages: Tensor
    weights: Tensor


def _minibatches(
    num_states: int, rng: np.random.Generator, experience: _Experience
) -> Iterator[_Experience]:
    """Minibatches of one epoch: all states in a random order, cut into equal sizes."""
    order = torch.from_numpy(rng.permutation(len(experience)))
    return (experience[rows] for rows in torch.split(order, num_states))


def _play(network: MoveNetwork, game: MoveGame) -> tuple[float, _Experience]:
    """Mean cost of an epoch under the policy, and the states that it meets."""
    probability = choice_probabilities(network, game)
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
    return float(game.epoch_costs(of_state).mean()), experience


def choice_probabilities(network: MoveNetwork, game: MoveGame, rows_at_once: int = 16384) -> Real:
    """Probability of each choice in each state of a game, (S, U)."""

    @torch.no_grad()
    def part(start: int) -> Tensor:
        rows = slice(start, start + rows_at_once)
        logits = network(torch.from_numpy(game.observation[rows]))
        of_rule = torch.from_numpy(game.choice_of_rule[rows].astype(np.int64))
        return choice_log_probs(logits.double(), of_rule, game.chosen.shape[1]).exp()

    with ThreadPoolExecutor(_NUM_THREADS) as threads:  # torch computes outside Python's lock
        return torch.cat(list(threads.map(part, range(0, game.num_states, rows_at_once)))).numpy()


def _loss(
    network: MoveNetwork, clip_range: float, batch: _Experience, entropy_coefficient: float
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
