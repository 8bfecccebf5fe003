"""Proximal policy optimisation (Schulman et al., arXiv:1707.06347) on rollouts from any source."""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.ppo.checkpoint import CheckpointError
from agents.ppo.networks import NetworkArchitecture, network_of
from agents.ppo.policy_update import PolicyUpdate, ShuffledParts
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.ppo_loss import FIGURES, Objective
from agents.ppo.rollout import (
    BatchedEnvironment,
    Experience,
    Rollout,
    RolloutSource,
    experience_of,
    some_actions,
)
from agents.ppo.rollout_source import LocalRollouts
from agents.ppo.trained_policy import network_payload, tensors_of
from des.base.checks import require_count


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """One rollout of every worker and the optimisation that followed.

    ``step_count`` counts environment steps so far, ``rollout_steps`` those of this update, and
    ``update_index`` is 0 for the first one. ``metrics`` are the environment's, averaged over the
    rollouts; losses, entropy, divergence and clip fraction are averaged over minibatches.
    ``explained_variance`` is of the values before the update: 1 is a perfect critic, 0 no better
    than a constant; NaN if the returns do not vary.
    """

    step_count: int
    rollout_steps: int
    update_index: int
    mean_reward: float
    metrics: Mapping[str, float]
    policy_loss: float
    value_loss: float
    entropy: float
    approximate_kl: float
    clip_fraction: float
    explained_variance: float
    learning_rate: float


class PPOTrainer:
    """Alternate between collecting rollouts and optimising the policy on them.

    Randomness of the first weights and of the shuffling come from ``seed``; workers have their
    own. Observations are normalised by what was seen before the current rollouts.
    """

    def __init__(
        self,
        rollouts: RolloutSource,
        config: PPOConfig,
        seed: int,
        total_steps: int,
        *,
        candidate_size: int = 0,
    ) -> None:
        self.steps_per_update = rollouts.num_envs * config.num_steps
        if config.num_minibatches > self.steps_per_update:
            raise ValueError(
                f"PPO: num_minibatches must be at most num_envs * num_steps = "
                f"{self.steps_per_update}, got {config.num_minibatches}"
            )
        if total_steps < 1:
            raise ValueError(f"PPO: total_steps must be at least 1, got {total_steps}")
        self.config, self.seed, self.total_steps = config, seed, total_steps
        self.step_count, self.update_count = 0, 0
        self.rollouts = rollouts
        self._last_actions: list[Tensor] = []
        self._device = torch.device(config.device)
        initialisation, shuffling = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self.network = network_of(
            NetworkArchitecture(
                observation_size=rollouts.observation_size,
                action_sizes=rollouts.action_sizes,
                ordinal_starts=rollouts.ordinal_starts,
                hidden_sizes=config.hidden_sizes,
                precision=config.precision,
                candidate_size=candidate_size,
            ),
            torch.Generator().manual_seed(int(initialisation)),
        ).to(self._device)
        self._shuffling = torch.Generator(self._device).manual_seed(int(shuffling))
        self._optimiser = torch.optim.Adam(
            self.network.parameters(), lr=config.learning_rate, eps=1e-5, fused=True
        )
        self._policy_update = PolicyUpdate(
            config=config,
            optimiser=self._optimiser,
            loss=self._loss,
            figure_names=FIGURES,
            minibatches=ShuffledParts(
                num_minibatches=config.num_minibatches, generator=self._shuffling
            ),
            norm_margin=0.0,
            target_kl=config.target_kl,
        )
        for moments in rollouts.first_moments():
            self.network.normaliser.merge(moments)

    @classmethod
    def local(
        cls,
        environment: BatchedEnvironment,
        config: PPOConfig,
        seed: int,
        total_steps: int,
        *,
        candidate_size: int = 0,
    ) -> Self:
        """Train on one environment in this process."""
        rollouts = LocalRollouts([environment], seed=seed, device=config.device)
        return cls(rollouts, config, seed, total_steps, candidate_size=candidate_size)

    @property
    def finished(self) -> bool:
        """Whether all ``total_steps`` are done."""
        return self.step_count >= self.total_steps

    def update(self) -> UpdateReport:
        """Collect one rollout of every worker and optimise on them.

        Raises
        ------
        RuntimeError
            If training is finished, or a gradient was not finite: the weights are then useless.
        """
        if self.finished:
            raise RuntimeError(f"PPO: all {self.total_steps} steps are done")
        self._last_actions = []  # about to be overwritten
        rollouts = self.rollouts.collect(self.network, self.config.num_steps)
        experience = experience_of(
            rollouts,
            discount=self.config.discount,
            trace_decay=self.config.trace_decay,
            device=self._device,
        )
        outcome = self._policy_update.descend(
            _with_normalised_advantages(experience)
            if self.config.normalise_advantages
            else experience,
            index=self.update_count,
            progress=self.step_count / self.total_steps,
        )
        for rollout in rollouts:
            self.network.normaliser.merge(rollout.moments)
        self.step_count += len(experience)
        self.update_count += 1
        self._last_actions = [rollout.actions for rollout in rollouts]
        return UpdateReport(
            step_count=self.step_count,
            rollout_steps=len(experience),
            update_index=self.update_count - 1,
            mean_reward=sum(float(part.rewards.sum()) for part in rollouts) / len(experience),
            metrics=_joint_metrics(rollouts),
            explained_variance=_explained_variance(experience),
            learning_rate=outcome.learning_rate,
            **outcome.figures,
        )

    def recent_actions(self, most: int) -> npt.NDArray[np.int64]:
        """Copies of up to ``most`` actions (M, A), spread evenly over those of the last `update`.

        Those of all workers count, as `agents.ppo.rollout.evenly_spread` picks them.

        Raises
        ------
        RuntimeError
            If there has been no update, or none since a state was loaded or an update failed.
        """
        require_count("PPO", "most", most)
        if not self._last_actions:
            raise RuntimeError("PPO: update must be called first, for there to be recent actions")
        return some_actions(self._last_actions, most)

    def state(self) -> dict[str, Any]:
        """Snapshot for ``save_checkpoint``; ``load_state`` continues from it exactly."""
        of_learner = {
            **self._identity(),
            "step_count": self.step_count,
            "update_count": self.update_count,
            "policy": network_payload(self.network),
            "optimiser": self._optimiser.state_dict(),
            "shuffling": self._shuffling.get_state(),
        }
        return {**copy.deepcopy(of_learner), "rollouts": self.rollouts.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue where another trainer of the same identity took a snapshot.

        Raises
        ------
        CheckpointError
            If a part is missing, or belongs to another configuration or environment.
        """
        missing = sorted(self.state().keys() - state.keys())
        if missing:
            raise CheckpointError(f"trainer state: must be a PPOTrainer.state(), got no {missing}")
        for field, expected in self._identity().items():
            if state[field] != expected:
                raise CheckpointError(
                    f"trainer state: {field} must be {expected!r}, got {state[field]!r}"
                )
        try:
            self._restore(tensors_of(copy.deepcopy(dict(state))))
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise CheckpointError(
                "trainer state: content must be that of this trainer, "
                f"got {type(error).__name__}: {reason[:200]}"
            ) from error

    def _restore(self, state: dict[str, Any]) -> None:
        parameters = state["policy"]["parameters"]
        if not all(parameter.isfinite().all() for parameter in parameters.values()):
            raise ValueError("the policy's parameters must be finite")
        self.network.load_state_dict(parameters)
        self._optimiser.load_state_dict(state["optimiser"])
        self._shuffling.set_state(state["shuffling"])
        self.rollouts.load_state(state["rollouts"])
        self.step_count, self.update_count = state["step_count"], state["update_count"]
        self._last_actions = []  # those of another past

    def _identity(self) -> dict[str, object]:
        """Settings that must agree before a snapshot can be continued."""
        return {
            "config": asdict(self.config),
            "seed": self.seed,
            "total_steps": self.total_steps,
            "num_workers": self.rollouts.num_workers,
            "num_envs": self.rollouts.num_envs,
            "architecture": self.network.architecture.plain(),
        }

    def _loss(self, batch: Experience, entropy_coefficient: float) -> tuple[Tensor, Tensor]:
        policy, values = self.network(batch.inputs)
        log_probs, entropies = policy.log_prob_and_entropy(batch.actions)
        objective = Objective(
            clip_range=self.config.clip_range,
            value_coefficient=self.config.value_coefficient,
            entropy_coefficient=entropy_coefficient,
        )
        return objective.loss(
            log_probs,
            entropies,
            values,
            old_log_probs=batch.log_probs,
            advantages=batch.advantages,
            returns=batch.returns,
        )


def _with_normalised_advantages(experience: Experience) -> Experience:
    advantages = experience.advantages
    deviation = advantages.std(correction=0)
    normalised = (advantages - advantages.mean()) / (deviation + 1e-8)
    return replace(experience, advantages=normalised)


def _explained_variance(experience: Experience) -> float:
    """Share of the variance of the returns that the values explain; NaN if there is none."""
    variance = float(experience.returns.var(correction=0))
    residual = float(experience.advantages.var(correction=0))  # returns - values
    return 1 - residual / variance if variance > 0 else math.nan


def _joint_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Means over the decisions of all rollouts."""
    num_decisions = sum(rollout.num_decisions for rollout in rollouts)
    return {
        name: sum(part.metrics[name] * part.num_decisions for part in rollouts) / num_decisions
        for name in rollouts[0].metrics
    }
