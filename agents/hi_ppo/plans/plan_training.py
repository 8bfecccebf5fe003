"""Training of the plan policy by proximal policy optimisation with groups as baselines."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.plans.group_pointer import trace_log_probs
from agents.hi_ppo.plans.plan_checkpoint import plan_policy_from_payload, plan_policy_payload
from agents.hi_ppo.plans.plan_config import PlanConfig
from agents.hi_ppo.plans.plan_policy import PlanPolicy
from agents.hi_ppo.plans.plan_rollouts import NetworkBatches, PlanRollout, collect_plans
from agents.hi_ppo.plans.plan_worlds import PlanNetworks
from agents.hi_ppo.plans.sketch_judge import SKETCH_SCHEDULES
from agents.ppo.annealing import cosine_annealing
from agents.ppo.checkpoint import CheckpointError
from agents.ppo.policy_update import PolicyUpdate, whole_batch
from agents.ppo.ppo_loss import clipped_policy_loss
from agents.ppo.training_state import require_same, update_of
from des.base.checks import require_seed

_LEAST_SPREAD = 0.01
_MOST_LOG_RATIO = 10.0
_FIGURES = ("loss", "entropy", "clipped_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """One update of the training.

    Attributes
    ----------
    most_domains
        Domains of the largest network of the update.
    mean_cost, best_cost, found_cost
        Mean over networks of the logarithm of step times over that of even work on all domains
        without a network: drawn groups, the best of them, what the look-ahead found from them.
    schedule_regret
        Excess cost of the schedules chosen at random over the best ones, in logarithms.
    """

    update: int
    most_domains: int
    mean_cost: float
    best_cost: float
    found_cost: float
    schedule_regret: float
    entropy: float
    clipped_fraction: float
    loss: float


class PlanTrainer:
    """Trains one plan policy; equal seeds and sources give equal weights.

    Groups are credited with their reward under their best schedule less the mean over the groups
    drawn for the same network, over their spread; a schedule with its reward less what the policy
    expects over all of them. With ``imitation`` the best groups that a look-ahead found from the
    drawn ones are made likelier too, where they are better than the drawn ones' mean.
    """

    def __init__(
        self,
        source: PlanNetworks,
        *,
        seed: int,
        architecture: PlacementArchitecture | None = None,
        config: PlanConfig | None = None,
    ) -> None:
        require_seed("plan trainer", "seed", seed)
        self.seed, self.config = seed, config or PlanConfig()
        self._generator = torch.Generator().manual_seed(seed)
        self._networks = NetworkBatches(source, self.config, np.random.default_rng(seed))
        self.policy = PlanPolicy(
            architecture or PlacementArchitecture(), SKETCH_SCHEDULES, self._generator
        )
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

    def run(self) -> Iterator[PlanReport]:
        """Train to the end, update by update."""
        while self.update < self.config.num_updates:
            yield self.step()

    def state(self) -> dict[str, object]:
        """Snapshot for `save_checkpoint`; also what `load_plan_policy` reads."""
        return {
            **plan_policy_payload(self.policy),
            **self._identity(),
            "update": self.update,
            "networks": self._networks.state(),
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
        policy = plan_policy_from_payload(state, source=source)
        try:
            update = update_of(state, most=self.config.num_updates)
            require_same(state, self._identity())
            self.policy.load_state_dict(policy.state_dict())
            self._optimiser.load_state_dict(state["optimiser"])
            self._generator.set_state(state["generator"])
            self._networks.load_state(state["networks"])
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"checkpoint {source}: {error}") from error
        self.update = update

    def _identity(self) -> dict[str, object]:
        """Settings that must agree before a snapshot can be continued."""
        return {
            "training_seed": self.seed,
            "training": asdict(self.config),
            "architecture": asdict(self.policy.architecture),
        }

    def step(self) -> PlanReport:
        """Make one update."""
        worlds = self._networks.drawn()
        rollout = collect_plans(
            self.policy, worlds, self.config, self._generator, self._networks.rng
        )
        outcome = self._policy_update.descend(
            rollout, index=self.update, progress=self.update / self.config.num_updates
        )
        self.update += 1
        chosen = rollout.by_schedule.gather(-1, rollout.schedules.unsqueeze(-1)).squeeze(-1)
        return PlanReport(
            update=self.update,
            most_domains=max(world.num_domains for world in worlds),
            mean_cost=-rollout.rewards.mean().item(),
            best_cost=-rollout.rewards.amax(dim=1).mean().item(),
            found_cost=-rollout.found_rewards.mean().item(),
            schedule_regret=(rollout.rewards - chosen).mean().item(),
            **outcome.figures,
        )

    def _loss(self, rollout: PlanRollout, entropy_weight: float) -> tuple[Tensor, Tensor]:
        config = self.config
        encoded, scores = self.policy(rollout.networks)
        log_probs, entropies = trace_log_probs(scores, rollout.traces)
        centred = rollout.rewards - rollout.rewards.mean(dim=1, keepdim=True)
        advantages = centred / (rollout.rewards.std(dim=1, keepdim=True) + _LEAST_SPREAD)
        log_ratio = _log_ratio(log_probs, rollout.traces.log_probs)
        clipped = ((log_ratio.exp() - 1.0).abs() > config.clip_range).float().mean()
        loss = clipped_policy_loss(log_ratio, advantages, config.clip_range)
        loss = loss - entropy_weight * entropies.mean()

        logits = self.policy.schedule_logits(rollout.networks, encoded, rollout.traces)
        of_schedules = logits.log_softmax(dim=-1)
        own = rollout.schedules.unsqueeze(-1)
        expected = (of_schedules.exp().detach() * rollout.by_schedule).sum(dim=-1)
        gain = rollout.by_schedule.gather(-1, own).squeeze(-1) - expected
        log_ratio = _log_ratio(
            of_schedules.gather(-1, own).squeeze(-1), rollout.old_schedule_log_probs
        )
        schedule_loss = clipped_policy_loss(
            log_ratio, gain / (gain.std() + _LEAST_SPREAD), config.clip_range
        )
        entropy = -(of_schedules.exp() * of_schedules).sum(dim=-1).mean()
        loss = loss + config.schedule_weight * (schedule_loss - entropy_weight * entropy)
        if config.imitation and rollout.found is not None:
            known, _ = trace_log_probs(scores, rollout.found)
            is_better = rollout.found_rewards > rollout.rewards.mean(dim=1) + 1e-4
            loss = loss - config.imitation * (known.squeeze(1) * is_better).mean()
        figures = torch.stack((loss, entropies.mean(), clipped)).detach().double()
        return loss, figures


def _log_ratio(now: Tensor, then: Tensor) -> Tensor:
    return (now - then).clamp(-_MOST_LOG_RATIO, _MOST_LOG_RATIO)
