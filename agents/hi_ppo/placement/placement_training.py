"""Training of the placement policy by proximal policy optimisation with groups as baselines."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.decision.situation import Preference
from agents.hi_ppo.placement.config import PlacementArchitecture, PlacementConfig
from agents.hi_ppo.placement.placement_checkpoint import (
    PlacementNet,
    placement_from_payload,
    placement_payload,
)
from agents.hi_ppo.placement.placement_policy import PlacementPolicy
from agents.hi_ppo.placement.placement_rollouts import (
    PlacementRollout,
    Worlds,
    WorldSource,
    collect,
)
from agents.hi_ppo.placement.pointer import log_probs_of
from agents.ppo.annealing import cosine_annealing
from agents.ppo.policy_update import PolicyUpdate, whole_batch
from agents.ppo.ppo_loss import clipped_policy_loss
from agents.ppo.trained_policy import Part, Snapshot, tensors_of
from des import Corrections
from des.base.checks import require_seed
from des.base.parallel_map import ParallelMap

_LEAST_SPREAD = 0.01
_MOST_LOG_RATIO = 10.0


def log_ratio(now: Tensor, then: Tensor) -> Tensor:
    """Logarithm of how many times likelier a choice is than when it was drawn, within bounds."""
    return (now - then).clamp(-_MOST_LOG_RATIO, _MOST_LOG_RATIO)


def group_loss(
    log_probs: Tensor, old_log_probs: Tensor, rewards: Tensor, clip_range: float
) -> tuple[Tensor, Tensor]:
    """Clipped loss of proposals (B, N), and the share of those outside the range.

    The baseline of a proposal is the mean over the N of its network; its advantage is in spreads.

    Examples
    --------
    >>> import torch
    >>> same, rewards = torch.zeros(1, 2), torch.tensor([[1.0, 3.0]])
    >>> loss, outside = group_loss(same, same, rewards, 0.2)
    >>> bool(loss.abs() < 1e-6), float(outside)
    (True, 0.0)
    """
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    advantages = centred / (rewards.std(dim=1, keepdim=True) + _LEAST_SPREAD)
    ratio = log_ratio(log_probs, old_log_probs)
    clipped = ((ratio.exp() - 1.0).abs() > clip_range).float().mean()
    return clipped_policy_loss(ratio, advantages, clip_range), clipped


def judged_choice_loss(
    log_probs: Tensor,
    chosen: Tensor,
    old_log_probs: Tensor,
    rewards: Tensor,
    *,
    clip_range: float,
    least_spread: float,
) -> tuple[Tensor, Tensor]:
    """Clipped loss and entropy of choices (B, N) of which all K have rewards (B, N, K).

    The gain of a choice is its reward less what the policy expects over all of them.
    """
    own = chosen.unsqueeze(-1)
    expected = (log_probs.exp().detach() * rewards).sum(dim=-1)
    gain = rewards.gather(-1, own).squeeze(-1) - expected
    ratio = log_ratio(log_probs.gather(-1, own).squeeze(-1), old_log_probs)
    entropy = -(log_probs.exp() * log_probs).sum(dim=-1).mean()
    return clipped_policy_loss(ratio, gain / (gain.std() + least_spread), clip_range), entropy


def imitation_loss(known_log_probs: Tensor, found_rewards: Tensor, rewards: Tensor) -> Tensor:
    """Loss by which found proposals (B, 1) get likelier, where better than the drawn ones' mean."""
    is_better = found_rewards > rewards.mean(dim=1) + 1e-4
    return -(known_log_probs.squeeze(1) * is_better).mean()


_LEAST_GAIN_SPREAD = 1e-3
_FIGURES = ("loss", "entropy", "clipped_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementReport:
    """One update of the training.

    Attributes
    ----------
    mean_cost, best_cost, found_cost
        Mean over networks of the logarithm of the cost of plans over that of even work on all
        domains without a network: drawn orders, the best of them, and what the look-ahead found
        from them.
    depth_regret
        Excess cost of the depths chosen at random over the best ones, in logarithms.
    """

    update: int
    most_domains: int
    mean_cost: float
    best_cost: float
    found_cost: float
    depth_regret: float
    tilt_gain: float
    entropy: float
    clipped_fraction: float
    loss: float


class _Experience(NamedTuple):
    """Drawn plans, and the log-probabilities (B, N) of depths and of shares as they were drawn."""

    rollout: PlacementRollout
    old_log_probs: tuple[Tensor, Tensor]


class PlacementTrainer:
    """Trains one policy; equal seeds and sources give equal weights.

    Three choices are credited with what each decides alone. An order: its reward under its best
    depth less the mean over the orders drawn for the same network, over their spread. A depth: its
    reward less what the policy expects over all depths, each of which is judged. Shares of layers:
    what they have won over even ones. With ``imitation`` the best order that a look-ahead found
    from the drawn ones is made likelier too, where it is better than the drawn ones' mean.

    With ``start`` the training begins from the weights and has the architecture of that policy.
    A ``preference`` is that of all situations; None: they are drawn. Plans are judged ``at_work``,
    which changes nothing but the time.
    """

    def __init__(
        self,
        source: WorldSource,
        *,
        seed: int,
        architecture: PlacementArchitecture | None = None,
        config: PlacementConfig | None = None,
        start: PlacementNet | None = None,
        preference: Preference | None = None,
        at_work: ParallelMap = map,
    ) -> None:
        require_seed("placement trainer", "seed", seed)
        self.seed, self._at_work = seed, at_work
        self.config = config or PlacementConfig()
        self._generator = torch.Generator().manual_seed(seed)
        self._worlds = Worlds(source, np.random.default_rng(seed), preference)
        sizes = architecture or PlacementArchitecture()
        self.policy = PlacementPolicy(start.architecture if start else sizes, self._generator)
        if start is not None:
            self.policy.load_state_dict(tensors_of(start.numbers))
        self._optimiser = torch.optim.Adam(
            self.policy.parameters(), lr=self.config.learning_rate, eps=1e-5
        )
        self._policy_update = PolicyUpdate(
            config=self.config,
            optimiser=self._optimiser,
            loss=self._loss,
            figure_names=_FIGURES,
            minibatches=whole_batch,
            learning_rate_law=cosine_annealing,
        )
        self._snapshot = Snapshot(
            num_updates=self.config.num_updates,
            identity={
                "training_seed": seed,
                "training": asdict(self.config),
                "architecture": placement_payload(self.policy)["architecture"],
            },
            parts={
                "worlds": Part(self._worlds.state, self._worlds.load_state),
                "generator": Part(self._generator.get_state, self._generator.set_state),
                "optimiser": Part(self._optimiser.state_dict, self._optimiser.load_state_dict),
            },
        )
        self.update = 0

    def recalibrate(self, corrections: Corrections) -> None:
        """Judge plans with other factors from now on; they are no part of a snapshot."""
        self._worlds.recalibrate(corrections)

    def state(self) -> dict[str, object]:
        """Snapshot for `save_checkpoint`; also what `load_placement` reads."""
        return placement_payload(self.policy) | self._snapshot.state(self.update)

    def load_state(self, state: Mapping[str, Any], *, source: Path) -> None:
        """Before any update, continue a snapshot of an equal training; ``source`` is its file.

        Raises
        ------
        CheckpointError
            If it is none, or of another training.
        """
        weights = tensors_of(placement_from_payload(state, source=source).numbers)
        self.update = self._snapshot.load(
            state, source=source, restore=lambda: self.policy.load_state_dict(weights)
        )

    def step(self) -> PlacementReport:
        """Make one update."""
        most_domains = self.config.most_domains(self.update)
        worlds = self._worlds.drawn(self.config.worlds_per_update, most_domains)
        rollout = collect(self.policy, worlds, self.config, self._generator, self._at_work)
        outcome = self._policy_update.descend(
            _Experience(rollout, self._old_log_probs(rollout)),
            index=self.update,
            progress=self.update / self.config.num_updates,
        )
        self.update += 1
        chosen = rollout.by_depth.gather(-1, rollout.depths.unsqueeze(-1)).squeeze(-1)
        return PlacementReport(
            update=self.update,
            most_domains=most_domains,
            mean_cost=-rollout.rewards.mean().item(),
            best_cost=-rollout.rewards.amax(dim=1).mean().item(),
            found_cost=-rollout.found_rewards.mean().item(),
            depth_regret=(rollout.rewards - chosen).mean().item(),
            tilt_gain=rollout.gains.mean().item(),
            **outcome.figures,
        )

    @torch.no_grad()
    def _old_log_probs(self, rollout: PlacementRollout) -> tuple[Tensor, Tensor]:
        """Log-probabilities of depths and shares as they were drawn, (B, N) each."""
        encoded, _ = self.policy(rollout.networks)
        heads = self.policy.heads
        logits = heads.depth_logits(rollout.networks, encoded, rollout.orders).log_softmax(-1)
        means = heads.tilts(encoded, rollout.orders)
        return (
            logits.gather(-1, rollout.depths.unsqueeze(-1)).squeeze(-1),
            heads.tilt_log_probs(means, rollout.tilts, rollout.orders),
        )

    def _loss(self, batch: _Experience, entropy_weight: float) -> tuple[Tensor, Tensor]:
        rollout, old = batch
        config, policy, heads = self.config, self.policy, self.policy.heads
        encoded, scores = policy(rollout.networks)
        log_probs, entropies = log_probs_of(
            rollout.networks, scores, rollout.orders, rollout.most_stages
        )
        loss, clipped = group_loss(log_probs, rollout.log_probs, rollout.rewards, config.clip_range)
        loss = loss - entropy_weight * entropies.mean()
        logits = heads.depth_logits(rollout.networks, encoded, rollout.orders).log_softmax(-1)
        depth_loss, entropy = judged_choice_loss(
            logits,
            rollout.depths,
            old[0],
            rollout.by_depth,
            clip_range=config.clip_range,
            least_spread=_LEAST_GAIN_SPREAD,
        )
        loss = loss + config.depth_weight * (depth_loss - entropy_weight * entropy)

        means = heads.tilts(encoded, rollout.orders)
        tilts = heads.tilt_log_probs(means, rollout.tilts, rollout.orders)
        gains = rollout.gains / (rollout.gains.std() + _LEAST_GAIN_SPREAD)
        tilt_loss = clipped_policy_loss(log_ratio(tilts, old[1]), gains, config.clip_range)
        loss = loss + config.tilt_weight * tilt_loss

        errors = heads.values(encoded) - rollout.rewards.mean(dim=1)
        loss = loss + config.value_coefficient * errors.square().mean()
        if config.imitation and rollout.found is not None:
            known, _ = log_probs_of(rollout.networks, scores, rollout.found, rollout.most_stages)
            loss = loss + config.imitation * imitation_loss(
                known, rollout.found_rewards, rollout.rewards
            )
        figures = torch.stack((loss, entropies.mean(), clipped)).detach().double()
        return loss, figures
