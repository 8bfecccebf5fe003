"""Proximal policy optimisation (Schulman et al., arXiv:1707.06347) of a batched environment."""

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agents.checkpoint import CheckpointError, network_payload
from agents.networks import ActorCritic, Architecture
from agents.ppo_config import PPOConfig
from agents.rollout import BatchedEnvironment, Experience, collect, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """One rollout and the optimisation that followed it.

    ``step_count`` counts environment steps so far, ``update_index`` is 0 for the first update.
    ``metrics`` are the environment's, averaged over the rollout; losses, entropy, divergence and
    clip fraction are averaged over minibatches. ``explained_variance`` is of the values before the
    update: 1 is a perfect critic, 0 no better than a constant; NaN if the returns do not vary.
    """

    step_count: int
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


def use_torch_threads(num_threads: int) -> None:
    """Let torch compute on that many threads: one is fastest for networks of this size."""
    torch.set_num_threads(num_threads)


def clipped_policy_loss(log_ratio: Tensor, advantages: Tensor, clip_range: float) -> Tensor:
    """Pessimistic surrogate: no gain from moving a probability by more than the clip range.

    Equation 7 of Schulman et al. (arXiv:1707.06347), negated.

    Examples
    --------
    >>> float(clipped_policy_loss(torch.tensor([2.0]).log(), torch.tensor([10.0]), 0.5))
    -15.0
    """
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
    return -torch.minimum(ratio * advantages, clipped * advantages).mean()


class Trainer:
    """Alternate between collecting a rollout and optimising the policy on it.

    Randomness of the policy and of the shuffling come from ``seed``; the environment has its own.
    Observations are normalised by what was seen before the current rollout.
    """

    def __init__(
        self, environment: BatchedEnvironment, config: PPOConfig, seed: int, total_steps: int
    ) -> None:
        self.steps_per_update = environment.num_envs * config.num_steps
        if config.num_minibatches > self.steps_per_update:
            raise ValueError(
                f"PPO: num_minibatches must be at most num_envs * num_steps = "
                f"{self.steps_per_update}, got {config.num_minibatches}"
            )
        if total_steps < 1:
            raise ValueError(f"PPO: total_steps must be at least 1, got {total_steps}")
        self.config, self.seed, self.total_steps = config, seed, total_steps
        self.step_count, self.update_count = 0, 0
        self.environment = environment
        initialisation, self._sampling, self._shuffling = _generators(seed, 3)
        self.network = ActorCritic(
            Architecture(
                observation_size=environment.observation_size,
                action_sizes=environment.action_sizes,
                ordinal_starts=environment.ordinal_starts,
                hidden_sizes=config.hidden_sizes,
            ),
            initialisation,
        )
        self._optimiser = torch.optim.Adam(
            self.network.parameters(), lr=config.learning_rate, eps=1e-5
        )
        self._observations = torch.from_numpy(environment.reset())
        self.network.normaliser.update(self._observations)

    @property
    def finished(self) -> bool:
        """Whether all ``total_steps`` are done."""
        return self.step_count >= self.total_steps

    def update(self) -> UpdateReport:
        """Collect one rollout and optimise on it; ``RuntimeError`` once finished."""
        if self.finished:
            raise RuntimeError(f"PPO: all {self.total_steps} steps are done")
        config, progress = self.config, self.step_count / self.total_steps
        learning_rate = _line(config.learning_rate, config.final_learning_rate, progress)
        for group in self._optimiser.param_groups:
            group["lr"] = learning_rate
        rollout = collect(
            self.environment,
            self.network,
            self._observations,
            num_steps=config.num_steps,
            generator=self._sampling,
        )
        experience = judge(
            rollout, self.network, discount=config.discount, trace_decay=config.trace_decay
        )
        policy_loss, value_loss, entropy, approximate_kl, clip_fraction = self._optimise(
            experience,
            _line(config.entropy_coefficient, config.final_entropy_coefficient, progress),
        )
        self.network.normaliser.update(rollout.observations[1:].flatten(0, 1))
        self._observations = rollout.observations[-1].clone()
        self.step_count += self.steps_per_update
        self.update_count += 1
        return UpdateReport(
            step_count=self.step_count,
            update_index=self.update_count - 1,
            mean_reward=float(rollout.rewards.mean()),
            metrics=rollout.metrics,
            policy_loss=policy_loss,
            value_loss=value_loss,
            entropy=entropy,
            approximate_kl=approximate_kl,
            clip_fraction=clip_fraction,
            explained_variance=_explained_variance(experience),
            learning_rate=learning_rate,
        )

    def state(self) -> dict[str, Any]:
        """Snapshot for ``save_checkpoint``; ``load_state`` continues from it exactly."""
        state = {
            **self._identity(),
            "step_count": self.step_count,
            "update_count": self.update_count,
            "policy": network_payload(self.network),
            "optimiser": self._optimiser.state_dict(),
            "sampling": self._sampling.get_state(),
            "shuffling": self._shuffling.get_state(),
            "observations": self._observations,
            "environment": self.environment.state(),
        }
        return copy.deepcopy(state)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue where another trainer of the same identity took a snapshot.

        Raises
        ------
        CheckpointError
            If a part is missing, or belongs to another configuration or environment.
        """
        missing = sorted(self.state().keys() - state.keys())
        if missing:
            raise CheckpointError(f"trainer state: must be a Trainer.state(), got no {missing}")
        for field, expected in self._identity().items():
            if state[field] != expected:
                raise CheckpointError(
                    f"trainer state: {field} must be {expected!r}, got {state[field]!r}"
                )
        try:
            self._restore(copy.deepcopy(dict(state)))
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise CheckpointError(
                "trainer state: content must be that of this trainer, "
                f"got {type(error).__name__}: {reason[:200]}"
            ) from error

    def _restore(self, state: dict[str, Any]) -> None:
        observations = state["observations"]
        if observations.shape != self._observations.shape or not observations.isfinite().all():
            raise ValueError(f"observations must be finite, {tuple(self._observations.shape)}")
        parameters = state["policy"]["parameters"]
        if not all(parameter.isfinite().all() for parameter in parameters.values()):
            raise ValueError("the policy's parameters must be finite")
        self.network.load_state_dict(parameters)
        self._optimiser.load_state_dict(state["optimiser"])
        self._sampling.set_state(state["sampling"])
        self._shuffling.set_state(state["shuffling"])
        self._observations = observations
        self.environment.load_state(state["environment"])
        self.step_count, self.update_count = state["step_count"], state["update_count"]

    def _identity(self) -> dict[str, object]:
        """What must agree before a snapshot can be continued."""
        return {
            "config": asdict(self.config),
            "seed": self.seed,
            "total_steps": self.total_steps,
            "num_envs": self.environment.num_envs,
            "architecture": asdict(self.network.architecture),
        }

    def _optimise(self, experience: Experience, entropy_coefficient: float) -> list[float]:
        """Run the epochs of one update; means of what ``_descend`` returns."""
        if self.config.normalise_advantages:
            experience = _with_normalised_advantages(experience)
        measured: list[Tensor] = []
        for _ in range(self.config.num_epochs):
            order = torch.randperm(self.steps_per_update, generator=self._shuffling)
            minibatches = order.tensor_split(self.config.num_minibatches)
            epoch = [self._descend(experience[rows], entropy_coefficient) for rows in minibatches]
            measured += epoch
            divergence = float(torch.stack(epoch).mean(dim=0)[3])
            if self.config.target_kl is not None and divergence > self.config.target_kl:
                break
        means: list[float] = torch.stack(measured).mean(dim=0).tolist()
        return means

    def _descend(self, batch: Experience, entropy_coefficient: float) -> Tensor:
        """One gradient step; policy loss, value loss, entropy, divergence, clip fraction (5,)."""
        policy = self.network.policy(batch.observations)
        log_ratio = policy.log_prob(batch.actions) - batch.log_probs
        policy_loss = clipped_policy_loss(log_ratio, batch.advantages, self.config.clip_range)
        value_loss = (self.network.value(batch.observations) - batch.returns).square().mean() / 2
        entropy = policy.entropy().mean()
        loss = policy_loss + self.config.value_coefficient * value_loss
        loss = loss - entropy_coefficient * entropy
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(
            self.network.parameters(), self.config.max_gradient_norm, error_if_nonfinite=True
        )
        self._optimiser.step()
        # E[r - 1 - log r] is the divergence from the old policy, and never negative.
        log_ratio = log_ratio.detach()
        approximate_kl = (log_ratio.exp() - 1 - log_ratio).mean()
        clipped = ((log_ratio.exp() - 1).abs() > self.config.clip_range).float().mean()
        return torch.stack((policy_loss, value_loss, entropy, approximate_kl, clipped)).detach()


def _generators(seed: int, num_generators: int) -> list[torch.Generator]:
    """Independent streams that depend on the seed only."""
    seeds = np.random.SeedSequence(seed).generate_state(num_generators, np.uint64)
    return [torch.Generator().manual_seed(int(entry)) for entry in seeds]


def _line(first: float, final: float, progress: float) -> float:
    return first + (final - first) * progress


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
