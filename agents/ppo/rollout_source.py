"""Rollout sources: logical workers, each with an environment and its own randomness.

Results depend on the seed and on the number of logical workers, not on where these are.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.ppo.batch_step import BatchStep
from agents.ppo.networks import ActorCritic
from agents.ppo.normaliser import ObservationMoments
from agents.ppo.rollout import BatchedEnvironment, Rollout

_SAMPLING_STREAM, _ENVIRONMENT_STREAM = 0, 1


def environment_seed(seed: int, worker: int) -> int:
    """Seed within [0, 2**63) for the environment of a logical worker.

    Examples
    --------
    >>> environment_seed(0, 1) == environment_seed(0, 1)
    True
    >>> len({environment_seed(seed, worker) for seed in range(3) for worker in range(3)})
    9
    """
    return _derive_seed(seed, worker, _ENVIRONMENT_STREAM)


def _derive_seed(seed: int, worker: int, stream: int) -> int:
    (entry,) = np.random.SeedSequence((seed, worker, stream)).generate_state(1, np.uint64)
    return int(entry) >> 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Buffers:
    """Tensors of a rollout of T steps; see `Rollout`.

    What the network makes is on its device, what the environment returns on the processor.
    ``cut_values`` (T, N) hold the values of what truncated episodes reached, elsewhere anything.
    """

    inputs: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    cut_values: Tensor
    rewards: Tensor
    terminated: Tensor
    truncated: Tensor

    @classmethod
    def empty(
        cls, num_steps: int, environment: BatchedEnvironment, device: torch.device
    ) -> "_Buffers":
        shape = (num_steps, environment.num_envs)
        num_components = len(environment.action_sizes)
        return cls(
            inputs=torch.empty(*shape, environment.observation_size, device=device),
            actions=torch.empty(*shape, num_components, dtype=torch.int64, device=device),
            log_probs=torch.empty(shape, device=device),
            values=torch.empty(shape, device=device),
            cut_values=torch.zeros(shape, device=device),
            rewards=torch.empty(shape),
            terminated=torch.empty(shape, dtype=torch.bool),
            truncated=torch.empty(shape, dtype=torch.bool),
        )


class RolloutWorker:
    """One logical worker: an environment, a generator to sample actions with, observations.

    Parameters
    ----------
    environment
        Environment to act in; it is reset. Its randomness is its own, see `environment_seed`.
    seed, worker
        Of the sampling.
    device
        Device of the network that `collect` is given.
    """

    def __init__(
        self,
        environment: BatchedEnvironment,
        *,
        seed: int,
        worker: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        self.environment = environment
        self._device = torch.device(device)
        self._sampling = torch.Generator(self._device)
        self._sampling.manual_seed(_derive_seed(seed, worker, _SAMPLING_STREAM))
        self._observations = torch.from_numpy(environment.reset())
        self._buffers: _Buffers | None = None

    def first_moments(self) -> ObservationMoments:
        """Moments of the observations to act on next."""
        return ObservationMoments.of(self._observations)

    @torch.no_grad()
    def collect(
        self,
        network: ActorCritic,
        num_steps: int,
        should_stop: Callable[[], bool] | None = None,
    ) -> Rollout:
        """Let the policy act for ``num_steps`` steps, or until ``should_stop`` says so after one.

        The tensors are overwritten by the next call.
        """
        buffers = self._buffers_of(num_steps)
        moments: list[ObservationMoments] = []
        totals: dict[str, npt.NDArray[np.float64]] = {}
        for t in range(num_steps):
            inputs = network.normaliser(self._observations.to(self._device), out=buffers.inputs[t])
            actions, buffers.log_probs[t], buffers.values[t] = network.act(inputs, self._sampling)
            buffers.actions[t] = actions
            step = self.environment.step(actions.cpu().numpy())
            self._record(t, step, network, buffers)
            moments.append(ObservationMoments.of(self._observations))
            for name, values in step.metrics.items():
                totals[name] = totals.get(name, 0.0) + values
            if should_stop is not None and should_stop():
                break
        return self._rollout(network, buffers, moments, totals)

    def state(self) -> dict[str, object]:
        """Snapshot from which a worker of any seed redoes exactly the next rollout."""
        return {
            "environment": copy.deepcopy(self.environment.state()),
            "sampling": self._sampling.get_state(),
            "observations": self._observations.clone(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state`` returned, in an environment of the same kind and size.

        Raises
        ------
        ValueError
            If the observations are not such environments'.
        """
        observations = state["observations"]
        shape = tuple(self._observations.shape)
        if observations.shape != shape or not observations.isfinite().all():
            raise ValueError(f"rollout worker: observations must be finite, {shape}")
        self.environment.load_state(state["environment"])
        self._sampling.set_state(state["sampling"])
        self._observations = observations.clone()

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()

    def _buffers_of(self, num_steps: int) -> _Buffers:
        if self._buffers is None or len(self._buffers.rewards) != num_steps:
            self._buffers = _Buffers.empty(num_steps, self.environment, self._device)
        return self._buffers

    def _record(self, t: int, step: BatchStep, network: ActorCritic, buffers: _Buffers) -> None:
        """Keep what step t has returned."""
        if step.observations.shape != self._observations.shape:  # would be broadcast silently
            raise ValueError(
                f"environment: step must return observations shaped "
                f"{tuple(self._observations.shape)}, got {step.observations.shape}"
            )
        self._observations = torch.from_numpy(step.observations)
        buffers.rewards[t] = torch.from_numpy(step.rewards)
        buffers.terminated[t] = torch.from_numpy(step.terminated)
        buffers.truncated[t] = torch.from_numpy(step.truncated)
        if step.truncated.any():
            rows = torch.from_numpy(step.truncated).to(self._device)
            reached = torch.from_numpy(step.final_observations[step.truncated])
            buffers.cut_values[t, rows] = network.value(reached.to(self._device))

    def _rollout(
        self,
        network: ActorCritic,
        buffers: _Buffers,
        moments: list[ObservationMoments],
        totals: Mapping[str, npt.NDArray[np.float64]],
    ) -> Rollout:
        """Put together what as many steps have left as there are moments."""
        steps = slice(len(moments))
        values, truncated = buffers.values[steps], buffers.truncated[steps].to(self._device)
        last_values = network.value(self._observations.to(self._device))
        following = torch.cat((values[1:], last_values.unsqueeze(0)))
        return Rollout(
            inputs=buffers.inputs[steps],
            actions=buffers.actions[steps],
            log_probs=buffers.log_probs[steps],
            values=values,
            next_values=torch.where(truncated, buffers.cut_values[steps], following),
            rewards=buffers.rewards[steps].to(self._device),
            terminated=buffers.terminated[steps].to(self._device),
            truncated=truncated,
            moments=ObservationMoments.of_equal_batches(moments),
            metrics={name: float(total.mean()) / len(moments) for name, total in totals.items()},
        )


class LocalRollouts:
    """An `agents.ppo.rollout.RolloutSource` whose workers take turns in this process.

    Worker w has environment w.
    """

    def __init__(
        self,
        environments: Sequence[BatchedEnvironment],
        *,
        seed: int,
        device: str | torch.device = "cpu",
    ) -> None:
        self._workers = [
            RolloutWorker(environment, seed=seed, worker=worker, device=device)
            for worker, environment in enumerate(environments)
        ]
        if not self._workers:
            raise ValueError("local rollouts: environments must be at least one, got none")
        first = environments[0]
        self.observation_size, self.action_sizes = first.observation_size, first.action_sizes
        self.ordinal_starts = first.ordinal_starts

    @property
    def num_workers(self) -> int:
        """Logical workers, W."""
        return len(self._workers)

    @property
    def num_envs(self) -> int:
        """Environments of all workers together."""
        return sum(worker.environment.num_envs for worker in self._workers)

    def first_moments(self) -> list[ObservationMoments]:
        """Moments of the observations that each worker would act on next, in order."""
        return [worker.first_moments() for worker in self._workers]

    def collect(self, network: ActorCritic, num_steps: int) -> list[Rollout]:
        """Let the policy act for ``num_steps`` steps; a rollout per worker, in order."""
        return [worker.collect(network, num_steps) for worker in self._workers]

    def state(self) -> dict[str, object]:
        """Snapshots of all workers."""
        return {"workers": [worker.state() for worker in self._workers]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state`` returned; an error leaves all workers where they were.

        Raises
        ------
        ValueError
            If it is of another number of workers.
        """
        states = state["workers"]
        if len(states) != len(self._workers):
            raise ValueError(
                f"local rollouts: state must be of {len(self._workers)} workers, got {len(states)}"
            )
        before = [worker.state() for worker in self._workers]
        try:
            self._load(states)
        except BaseException:
            self._load(before)
            raise

    def close(self) -> None:
        """Close all environments."""
        for worker in self._workers:
            worker.close()

    def _load(self, states: Sequence[Mapping[str, Any]]) -> None:
        for worker, state in zip(self._workers, states, strict=True):
            worker.load_state(state)
