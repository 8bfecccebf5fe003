"""Training of the plan policy by proximal policy optimisation with groups as baselines."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.group_loss import group_loss, imitation_loss, judged_choice_loss
from agents.hi_ppo.plans.group_pointer import trace_log_probs
from agents.hi_ppo.plans.plan_checkpoint import plan_policy_from_payload, plan_policy_payload
from agents.hi_ppo.plans.plan_config import PlanConfig
from agents.hi_ppo.plans.plan_policy import PlanPolicy
from agents.hi_ppo.plans.plan_rollouts import NetworkBatches, PlanRollout, collect_plans
from agents.hi_ppo.plans.plan_worlds import PlanNetworks
from agents.hi_ppo.plans.sketch_judge import SKETCH_SCHEDULES
from agents.ppo.annealing import cosine_annealing
from agents.ppo.policy_update import PolicyUpdate, whole_batch
from agents.ppo.training_state import Part, Snapshot
from des.base.checks import require_seed

_LEAST_SPREAD = 0.01
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
        self._snapshot = Snapshot(
            num_updates=self.config.num_updates,
            identity={
                "training_seed": seed,
                "training": asdict(self.config),
                "architecture": asdict(self.policy.architecture),
            },
            parts={
                "networks": Part(self._networks.state, self._networks.load_state),
                "generator": Part(self._generator.get_state, self._generator.set_state),
                "optimiser": Part(self._optimiser.state_dict, self._optimiser.load_state_dict),
            },
        )
        self.update = 0

    def state(self) -> dict[str, object]:
        """Snapshot for `save_checkpoint`; also what `load_plan_policy` reads."""
        return plan_policy_payload(self.policy) | self._snapshot.state(self.update)

    def load_state(self, state: Mapping[str, Any], *, source: Path) -> None:
        """Before any update, continue a snapshot of an equal training; ``source`` is its file.

        Raises
        ------
        CheckpointError
            If it is none, or of another training.
        """
        weights = plan_policy_from_payload(state, source=source).state_dict()
        self.update = self._snapshot.load(
            state, source=source, restore=lambda: self.policy.load_state_dict(weights)
        )

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
        loss, clipped = group_loss(
            log_probs, rollout.traces.log_probs, rollout.rewards, config.clip_range
        )
        loss = loss - entropy_weight * entropies.mean()
        logits = self.policy.schedule_logits(rollout.networks, encoded, rollout.traces)
        schedule_loss, entropy = judged_choice_loss(
            logits.log_softmax(dim=-1),
            rollout.schedules,
            rollout.old_schedule_log_probs,
            rollout.by_schedule,
            clip_range=config.clip_range,
            least_spread=_LEAST_SPREAD,
        )
        loss = loss + config.schedule_weight * (schedule_loss - entropy_weight * entropy)
        if config.imitation and rollout.found is not None:
            known, _ = trace_log_probs(scores, rollout.found)
            loss = loss + config.imitation * imitation_loss(
                known, rollout.found_rewards, rollout.rewards
            )
        figures = torch.stack((loss, entropies.mean(), clipped)).detach().double()
        return loss, figures
