"""Rollout of a policy, the advantages computed from it, and samples of recent actions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.ppo.batch_step import BatchStep
from agents.ppo.networks import ActorCritic
from agents.ppo.normaliser import ObservationMoments
from agents.ppo.policy_update import TensorRows


class Environments(Protocol):
    """N environments that can be stopped and continued, in one batch or in several."""

    @property
    def num_envs(self) -> int:
        """Number of all environments, N."""

    @property
    def observation_size(self) -> int:
        """Entries of one observation, D."""

    @property
    def action_sizes(self) -> tuple[int, ...]:
        """Number of choices of every action component, A of them."""

    @property
    def ordinal_starts(self) -> tuple[float | None, ...]:
        """Start of each ordered component, as a share of its range; else None."""

    def state(self) -> dict[str, object]:
        """Everything that ``load_state`` needs to continue from here, as plain content."""

    def close(self) -> None:
        """End what was started; it is not used any more."""


class BatchedEnvironment(Environments, Protocol):
    """N environments stepped together; an environment whose episode ends restarts itself.

    ``state`` returns plain content (None, bool, int, float, str, list, tuple, dict, tensor), from
    which ``load_state`` continues exactly, random numbers included.
    """

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin new episodes and return their first observations (N, D)."""

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions (N, A)."""

    def load_state(self, state: dict[str, object]) -> None:
        """Continue from what ``state`` returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """T steps of N environments, as the policy met and judged them.

    ``inputs`` (T, N, D) are the observations acted on, as the network's normaliser standardised
    them; ``actions`` are (T, N, A), every other tensor is (T, N). ``values`` are the network's of
    what was acted on, ``next_values`` of what the step reached, before any reset. ``moments`` are
    those of the raw observations that followed, ``metrics`` means over steps and environments.
    """

    inputs: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    next_values: Tensor
    rewards: Tensor
    terminated: Tensor
    truncated: Tensor
    moments: ObservationMoments
    metrics: Mapping[str, float]

    @property
    def num_decisions(self) -> int:
        """Steps of all environments, T * N."""
        return self.rewards.numel()


class RolloutSource(Environments, Protocol):
    """One or more logical workers that let a policy act, each with environments of its own.

    ``state`` returns ``{"workers": [...]}``, the `RolloutWorker.state` of each in order: so a run
    can continue with another kind of source.
    """

    @property
    def num_workers(self) -> int:
        """Logical workers, W."""

    def first_moments(self) -> Sequence[ObservationMoments]:
        """Moments of the observations that each worker would act on next, in order."""

    def collect(self, network: ActorCritic, num_steps: int) -> Sequence[Rollout]:
        """Let the policy act for up to ``num_steps`` steps; a rollout per worker, in order.

        Their tensors may be overwritten by the next call.
        """

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state`` returned."""


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
    advantages = rewards + discount * next_values * ~terminated - values
    for t in reversed(range(len(advantages) - 1)):
        advantages[t] += discount * trace_decay * advantages[t + 1] * ~ended[t]
    return advantages


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience(TensorRows):
    """A bag of B decisions, with what they turned out to be worth; see `Rollout`."""

    inputs: Tensor
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor
    returns: Tensor


def experience_of(
    rollouts: Sequence[Rollout], *, discount: float, trace_decay: float, device: torch.device
) -> Experience:
    """Join rollouts, of any lengths, into a bag on a device; ``returns - advantages`` are values.

    What comes from a single rollout on that device is not copied.
    """
    bags = [_bag(rollout, discount, trace_decay) for rollout in rollouts]
    if len(bags) == 1:
        (joined,) = bags
    else:
        joined = {name: torch.cat([bag[name] for bag in bags]) for name in bags[0]}
    return Experience(**{name: part.to(device, non_blocking=True) for name, part in joined.items()})


def _bag(rollout: Rollout, discount: float, trace_decay: float) -> dict[str, Tensor]:
    advantages = gae(
        rollout.rewards,
        rollout.values,
        rollout.next_values,
        rollout.terminated,
        rollout.terminated | rollout.truncated,
        discount=discount,
        trace_decay=trace_decay,
    )
    return {
        "inputs": rollout.inputs.flatten(0, 1),
        "actions": rollout.actions.flatten(0, 1),
        "log_probs": rollout.log_probs.flatten(),
        "advantages": advantages.flatten(),
        "returns": (advantages + rollout.values).flatten(),
    }


_GOLDEN = 2_654_435_769
"""The golden ratio's fraction times 2**32: its multiples fill the unit interval evenly."""


def evenly_spread(num_items: int, most: int) -> npt.NDArray[np.int64]:
    """Positions of up to ``most`` of ``num_items`` items in a row, ascending, each once.

    The row is cut into as many equal runs, and one of each is taken: in each at another place, as
    equal steps could fall in with a period of the items and miss most of what there is.

    Examples
    --------
    >>> evenly_spread(10, 4).tolist()
    [0, 3, 5, 9]
    >>> evenly_spread(3, 4).tolist()
    [0, 1, 2]
    """
    num_runs = min(num_items, most)
    numbers = np.arange(num_runs)
    bounds = np.arange(num_runs + 1) * num_items // max(num_runs, 1)
    places = numbers * _GOLDEN % 2**32
    return bounds[:-1] + (np.diff(bounds) * places >> 32)


def some_actions(parts: Sequence[Tensor], most: int) -> npt.NDArray[np.int64]:
    """Copies of up to ``most`` actions (M, A), spread evenly over rollouts joined in order.

    Parameters
    ----------
    parts
        Actions (T, N, A) of each rollout, T steps of N environments, which may differ in both. They
        are not copied as a whole.
    most
        If there are no more decisions, all of them are returned.
    """
    rows = [part.flatten(0, 1) for part in parts]
    ends = np.cumsum([len(part) for part in rows])
    chosen = evenly_spread(int(ends[-1]), most)
    shares = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    taken = [
        part[torch.from_numpy(share - (end - len(part))).to(part.device)].cpu()
        for part, share, end in zip(rows, shares, ends, strict=True)
    ]
    actions: npt.NDArray[np.int64] = torch.cat(taken).numpy()
    return actions
