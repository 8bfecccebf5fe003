"""Experience from a batched environment, and the advantages that follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.batch_step import BatchStep
from agents.networks import ActorCritic


class BatchedEnvironment(Protocol):
    """N environments stepped together; an environment whose episode ends restarts itself.

    ``state`` returns plain content (None, bool, int, float, str, list, tuple, dict, tensor), from
    which ``load_state`` continues exactly, random numbers included.
    """

    @property
    def num_envs(self) -> int:
        """Environments in the batch, N."""

    @property
    def observation_size(self) -> int:
        """Entries of one observation, D."""

    @property
    def action_sizes(self) -> tuple[int, ...]:
        """Number of choices of every action component, A of them."""

    @property
    def ordinal_starts(self) -> tuple[float | None, ...]:
        """For each ordered component, the share of its range to start at; else None."""

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin new episodes and return their first observations (N, D)."""

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions (N, A)."""

    def state(self) -> dict[str, object]:
        """Everything that ``load_state`` needs to continue from here."""

    def load_state(self, state: dict[str, object]) -> None:
        """Continue from what ``state`` returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """T steps of N environments.

    ``observations`` (T + 1, N, D) are those acted on, then the ones the next rollout starts from;
    ``actions`` are (T, N, A), ``final_observations`` (T, N, D), every other tensor (T, N).
    ``metrics`` are means over steps and environments.
    """

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    rewards: Tensor
    final_observations: Tensor
    terminated: Tensor
    truncated: Tensor
    metrics: Mapping[str, float]


@torch.no_grad()
def collect(
    environment: BatchedEnvironment,
    network: ActorCritic,
    observations: Tensor,
    *,
    num_steps: int,
    generator: torch.Generator,
) -> Rollout:
    """Let the policy act for ``num_steps`` steps, beginning at ``observations`` (N, D)."""
    num_envs, observation_size = observations.shape
    shape = (num_steps, num_envs)
    metrics: dict[str, float] = {}
    rollout = Rollout(
        observations=torch.empty(num_steps + 1, num_envs, observation_size),
        actions=torch.empty(*shape, len(environment.action_sizes), dtype=torch.int64),
        log_probs=torch.empty(shape),
        rewards=torch.empty(shape),
        final_observations=torch.empty(*shape, observation_size),
        terminated=torch.empty(shape, dtype=torch.bool),
        truncated=torch.empty(shape, dtype=torch.bool),
        metrics=metrics,
    )
    rollout.observations[0] = observations
    for t in range(num_steps):
        rollout.actions[t], rollout.log_probs[t] = network.act(rollout.observations[t], generator)
        step = environment.step(rollout.actions[t].numpy().copy())
        if step.observations.shape != observations.shape:  # would be broadcast silently
            raise ValueError(
                f"environment: step must return observations shaped {tuple(observations.shape)}, "
                f"got {step.observations.shape}"
            )
        rollout.observations[t + 1] = torch.from_numpy(step.observations)
        rollout.rewards[t] = torch.from_numpy(step.rewards)
        rollout.final_observations[t] = torch.from_numpy(step.final_observations)
        rollout.terminated[t] = torch.from_numpy(step.terminated)
        rollout.truncated[t] = torch.from_numpy(step.truncated)
        for name, values in step.metrics.items():
            metrics[name] = metrics.get(name, 0.0) + float(values.mean()) / num_steps
    return rollout


def gae(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    terminated: Tensor,
    ended: Tensor,
    *,
    discount: float,
    trace_decay: float,
) -> Tensor:
    """Generalised advantages [1]_, all shaped (T, N): T steps, N environments.

    ``next_values[t]`` values the state reached by step t, before any reset. ``terminated`` zeroes
    it; ``ended`` (terminated or truncated) cuts the trace: a time limit does not end the task.

    References
    ----------
    .. [1] J. Schulman, P. Moritz, S. Levine, M. Jordan and P. Abbeel, "High-dimensional continuous
       control using generalized advantage estimation", ICLR 2016.

    Examples
    --------
    >>> column = lambda *entries: torch.tensor(entries).unsqueeze(1)
    >>> never = column(False, False)
    >>> advantages = gae(
    ...     column(1.0, 2.0), column(0.0, 0.0), column(0.0, 8.0), never, never,
    ...     discount=0.5, trace_decay=1.0,
    ... )
    >>> advantages.squeeze(1).tolist()
    [4.0, 6.0]
    """
    errors = rewards + discount * next_values * ~terminated - values
    advantages = torch.empty_like(errors)
    following = torch.zeros_like(errors[0])
    for t in reversed(range(len(errors))):
        following = errors[t] + discount * trace_decay * following * ~ended[t]
        advantages[t] = following
    return advantages


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """A rollout as a bag of B = T * N decisions, with what they turned out to be worth."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor
    returns: Tensor

    def __getitem__(self, rows: Tensor) -> Self:
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@torch.no_grad()
def judge(
    rollout: Rollout, network: ActorCritic, *, discount: float, trace_decay: float
) -> Experience:
    """Value every decision of a rollout, with ``returns - advantages`` the critic's values."""
    observations = rollout.observations[:-1].flatten(0, 1)
    values = network.value(observations).view_as(rollout.rewards)
    advantages = gae(
        rollout.rewards,
        values,
        network.value(rollout.final_observations.flatten(0, 1)).view_as(values),
        rollout.terminated,
        rollout.terminated | rollout.truncated,
        discount=discount,
        trace_decay=trace_decay,
    )
    return Experience(
        observations=observations,
        actions=rollout.actions.flatten(0, 1),
        log_probs=rollout.log_probs.flatten(),
        advantages=advantages.flatten(),
        returns=(advantages + values).flatten(),
    )
