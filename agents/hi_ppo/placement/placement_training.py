"""Training of the placement policy by proximal policy optimisation with groups as baselines."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.hi_ppo.placement.config import PlacementArchitecture, PlacementConfig
from agents.hi_ppo.placement.placement_checkpoint import placement_from_payload, placement_payload
from agents.hi_ppo.placement.placement_policy import PlacementPolicy
from agents.hi_ppo.placement.placement_rollouts import (
    PlacementRollout,
    Worlds,
    WorldSource,
    collect,
)
from agents.hi_ppo.placement.pointer import log_probs_of
from agents.ppo.annealing import cosine_annealing
from agents.ppo.checkpoint import CheckpointError
from agents.ppo.policy_update import PolicyUpdate, whole_batch
from agents.ppo.ppo_loss import clipped_policy_loss
from agents.ppo.training_state import require_same, update_of
from des import Corrections
from des.base.checks import require_seed
from des.base.parallel_map import ParallelMap

_LEAST_SPREAD = 0.01
_MOST_LOG_RATIO = 10.0
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
    Plans are judged ``at_work``, which changes nothing but the time.
    """

    def __init__(
        self,
        source: WorldSource,
        *,
        seed: int,
        architecture: PlacementArchitecture | None = None,
        config: PlacementConfig | None = None,
        start: PlacementPolicy | None = None,
        at_work: ParallelMap = map,
    ) -> None:
        require_seed("placement trainer", "seed", seed)
        self.seed, self._at_work = seed, at_work
        self.config = config or PlacementConfig()
        self._generator = torch.Generator().manual_seed(seed)
        self._worlds = Worlds(source, np.random.default_rng(seed))
        sizes = architecture or PlacementArchitecture()
        self.policy = PlacementPolicy(start.architecture if start else sizes, self._generator)
        if start is not None:
            self.policy.load_state_dict(start.state_dict())
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
        self.update = 0

    def run(self) -> Iterator[PlacementReport]:
        """Train to the end, update by update."""
        while self.update < self.config.num_updates:
            yield self.step()

    def recalibrate(self, corrections: Corrections) -> None:
        """Judge plans with other factors from now on; they are no part of a snapshot."""
        self._worlds.recalibrate(corrections)

    def state(self) -> dict[str, object]:
        """Snapshot for `save_checkpoint`; also what `load_placement` reads."""
        return {
            **placement_payload(self.policy),
            **self._identity(),
            "update": self.update,
            "worlds": self._worlds.state(),
            "generator": self._generator.get_state(),
            "optimiser": self._optimiser.state_dict(),
        }

    def load_state(self, state: Mapping[str, Any], *, source: Path) -> None:
        """Before any update, continue a snapshot of an equal training; ``source`` is its file.

        Raises
        ------
        CheckpointError
            If it is none, or of another training.
        """
        policy = placement_from_payload(state, source=source)
        try:
            update = update_of(state, most=self.config.num_updates)
            require_same(state, self._identity())
            self.policy.load_state_dict(policy.state_dict())
            self._optimiser.load_state_dict(state["optimiser"])
            self._generator.set_state(state["generator"])
            self._worlds.load_state(state["worlds"])
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"checkpoint {source}: {error}") from error
        self.update = update

    def _identity(self) -> dict[str, object]:
        """Settings that must agree before a snapshot can be continued."""
        return {
            "training_seed": self.seed,
            "training": asdict(self.config),
            "architecture": placement_payload(self.policy)["architecture"],
        }

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
        centred = rollout.rewards - rollout.rewards.mean(dim=1, keepdim=True)
        advantages = centred / (rollout.rewards.std(dim=1, keepdim=True) + _LEAST_SPREAD)
        log_ratio = _log_ratio(log_probs, rollout.log_probs)
        is_outside = (log_ratio.exp() - 1.0).abs() > config.clip_range
        clipped = is_outside.float().mean()
        loss = self._clipped(log_ratio, advantages) - entropy_weight * entropies.mean()

        logits = heads.depth_logits(rollout.networks, encoded, rollout.orders).log_softmax(-1)
        own = rollout.depths.unsqueeze(-1)
        expected = (logits.exp().detach() * rollout.by_depth).sum(dim=-1)
        depth_gain = rollout.by_depth.gather(-1, own).squeeze(-1) - expected
        log_ratio = _log_ratio(logits.gather(-1, own).squeeze(-1), old[0])
        depth_entropy = -(logits.exp() * logits).sum(dim=-1).mean()
        depth_loss = self._clipped(log_ratio, _scaled(depth_gain)) - entropy_weight * depth_entropy
        loss = loss + config.depth_weight * depth_loss

        tilts = heads.tilts(encoded, rollout.orders)
        log_ratio = _log_ratio(heads.tilt_log_probs(tilts, rollout.tilts, rollout.orders), old[1])
        loss = loss + config.tilt_weight * self._clipped(log_ratio, _scaled(rollout.gains))

        errors = heads.values(encoded) - rollout.rewards.mean(dim=1)
        loss = loss + config.value_coefficient * errors.square().mean()
        if config.imitation and rollout.found is not None:
            known, _ = log_probs_of(rollout.networks, scores, rollout.found, rollout.most_stages)
            is_better = rollout.found_rewards > rollout.rewards.mean(dim=1) + 1e-4
            loss = loss - config.imitation * (known.squeeze(1) * is_better).mean()
        figures = torch.stack((loss, entropies.mean(), clipped)).detach().double()
        return loss, figures

    def _clipped(self, log_ratio: Tensor, advantages: Tensor) -> Tensor:
        return clipped_policy_loss(log_ratio, advantages, self.config.clip_range)


def _log_ratio(now: Tensor, then: Tensor) -> Tensor:
    return (now - then).clamp(-_MOST_LOG_RATIO, _MOST_LOG_RATIO)


def _scaled(gains: Tensor) -> Tensor:
    """Gains over their spread in the whole batch."""
    return gains / (gains.std() + 1e-3)
