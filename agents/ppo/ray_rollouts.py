"""Rollouts by actors of Ray, on this machine or on many; needs the extra ``ray``."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import ray
import torch
from torch import Tensor

from agents.ppo.networks import ActorCritic, NetworkArchitecture
from agents.ppo.normaliser import ObservationMoments
from agents.ppo.ray_actor_pool import Actor, ActorPool
from agents.ppo.rollout import BatchedEnvironment, Rollout
from agents.ppo.rollout_source import RolloutWorker
from des.base.checks import MOST_ITEMS, require_count, require_fraction

LEAST_SHARE = 0.25
"""Least share of its steps before a worker may be stopped early, as in [1] of `RayRollouts`."""

EnvironmentMaker = Callable[[int], BatchedEnvironment]
"""Makes the environment of a logical worker; is pickled, so no lambda of a script."""

_Policy = tuple[NetworkArchitecture, Mapping[str, np.ndarray]]
_Sizes = tuple[int, int, tuple[int, ...], tuple[float | None, ...]]


class _Order(NamedTuple):
    """A rollout to do: the how-manieth of all, its steps, and whether it is not waited for."""

    number: int
    num_steps: int
    is_late: bool


class RayRollouts:
    """Logical workers whose rollouts are done by actors, one CPU each; a `RolloutSource`.

    The learner knows the state of every logical worker after each rollout, and any actor can do
    any worker's next rollout from there. So results are the same for any number of actors, and
    equal to those of `LocalRollouts`; an actor that is lost costs only the rollout that it was at,
    which another one does again. An error raised by an environment is raised here, and leaves all
    workers where they were.

    With ``preempt_share``, results depend on timing: once that share of the workers has finished,
    the others stop early, after a quarter of their steps at the least [1]_.

    Ray must be initialised, and this package installed on all its machines.

    Parameters
    ----------
    make_environment
        Called in the actors, with the number of a logical worker.
    num_workers
        Logical workers; results depend on it.
    num_actors
        Processes, at most as many as logical workers.
    seed
        Of the actions that are drawn.
    preempt_share
        Within (0, 1]; None: everybody finishes.
    max_losses, timeout_s, start_timeout_s
        See `agents.ppo.ray_actor_pool.ActorPool`.

    References
    ----------
    .. [1] E. Wijmans et al., "DD-PPO: Learning near-perfect PointGoal navigators from 2.5 billion
       frames", ICLR 2020, section 3.
    """

    def __init__(
        self,
        make_environment: EnvironmentMaker,
        *,
        num_workers: int,
        num_actors: int,
        seed: int,
        preempt_share: float | None = None,
        max_losses: int = 10,
        timeout_s: float = 600.0,
        start_timeout_s: float = 300.0,
    ) -> None:
        require_count("rollouts on Ray", "num_workers", num_workers, MOST_ITEMS)
        require_count("rollouts on Ray", "num_actors", num_actors, num_workers)
        if preempt_share is not None:
            require_fraction("rollouts on Ray", "preempt_share", preempt_share)
        self.num_workers = num_workers
        self._preempt_share = preempt_share
        self._num_rollouts = 0
        self._crew = ActorPool(
            lambda: _REMOTE_HOST.remote(make_environment, seed),
            num_actors=num_actors,
            max_losses=max_losses,
            timeout_s=timeout_s,
            start_timeout_s=start_timeout_s,
        )
        try:
            begun = self._crew.run(lambda actor, worker: actor.begin.remote(worker), num_workers)
            self._take_sizes([sizes for sizes, _ in begun])
        except BaseException:
            self.close()
            raise
        self._states: list[dict[str, object]] = [state for _, state in begun]

    def first_moments(self) -> Sequence[ObservationMoments]:
        """Moments of each worker's present observations."""
        return self._crew.run(
            lambda actor, worker: actor.moments.remote(worker, self._states[worker]),
            self.num_workers,
        )

    def collect(self, network: ActorCritic, num_steps: int) -> Sequence[Rollout]:
        """One rollout of each worker, in order; shorter ones only with ``preempt_share``."""
        self._num_rollouts += 1
        number, is_late = self._num_rollouts, False
        policy = ray.put(_policy_of(network))
        share = math.inf if self._preempt_share is None else self._preempt_share
        enough = share * self.num_workers - 1e-9  # for shares such as 0.7, whose tenfold is above 7

        def ask(actor: Actor, worker: int) -> "ray.ObjectRef[Any]":
            order = _Order(number=number, num_steps=num_steps, is_late=is_late)
            answer: ray.ObjectRef[Any] = actor.collect.remote(
                worker, self._states[worker], policy, order
            )
            return answer

        def stop_others(num_done: int) -> None:
            nonlocal is_late
            if num_done >= enough and not is_late:
                is_late = True
                for actor in self._crew.at_work():
                    actor.stop.remote(number)

        done = self._crew.run(ask, self.num_workers, stop_others)
        self._states = [state for _, state in done]
        return [_unpack(packed) for packed, _ in done]

    def state(self) -> dict[str, object]:
        """Everything that `load_state` needs, as `LocalRollouts` has it."""
        return {"workers": list(self._states)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state`` of any source with as many workers returned."""
        states = state["workers"]
        if len(states) != self.num_workers:
            raise ValueError(
                f"rollouts on Ray: state must be of {self.num_workers} workers, got {len(states)}"
            )
        self._states = self._crew.run(
            lambda actor, worker: actor.load.remote(worker, states[worker]), self.num_workers
        )

    def close(self) -> None:
        """End the actors; Ray stays up."""
        self._crew.close()

    def _take_sizes(self, sizes: Sequence[_Sizes]) -> None:
        for worker, others in enumerate(sizes):
            if others[1:] != sizes[0][1:]:
                raise ValueError(
                    f"rollouts on Ray: environment of worker {worker} must have the sizes "
                    f"{sizes[0][1:]} of worker 0, got {others[1:]}"
                )
        self.num_envs = sum(num_envs for num_envs, *_ in sizes)
        _, self.observation_size, self.action_sizes, self.ordinal_starts = sizes[0]


class _Host:
    """Ray actor that runs any logical worker, from the state that the learner sends."""

    def __init__(self, make_environment: EnvironmentMaker, seed: int) -> None:
        torch.set_num_threads(1)
        self._make_environment, self._seed = make_environment, seed
        self._workers: dict[int, RolloutWorker] = {}
        self._network: ActorCritic | None = None
        self._stopped_number = 0

    def ping(self) -> None:
        """Answer once the actor has started."""

    def begin(self, worker: int) -> tuple[_Sizes, dict[str, object]]:
        self._workers[worker] = self._fresh(worker)
        environment = self._workers[worker].environment
        sizes = (
            environment.num_envs,
            environment.observation_size,
            environment.action_sizes,
            environment.ordinal_starts,
        )
        return sizes, self._workers[worker].state()

    def load(self, worker: int, state: Mapping[str, Any]) -> dict[str, object]:
        return self._at(worker, state).state()

    def moments(self, worker: int, state: Mapping[str, Any]) -> ObservationMoments:
        return self._at(worker, state).first_moments()

    def collect(
        self, worker: int, state: Mapping[str, Any], policy: _Policy, order: _Order
    ) -> tuple[dict[str, object], dict[str, object]]:
        """Do a rollout; also return the state after it."""
        here = self._at(worker, state)
        architecture, parameters = policy
        if self._network is None or self._network.architecture != architecture:
            self._network = ActorCritic(architecture, None)
        self._network.load_state_dict(
            {name: torch.from_numpy(array.copy()) for name, array in parameters.items()}
        )
        least_steps = math.ceil(LEAST_SHARE * order.num_steps)
        steps_done = itertools.count(1)

        def should_stop() -> bool:
            stopped = order.is_late or self._stopped_number >= order.number
            return next(steps_done) >= least_steps and stopped

        rollout = here.collect(self._network, order.num_steps, should_stop)
        return _pack(rollout), here.state()

    @ray.method(concurrency_group="control")
    def stop(self, number: int) -> None:
        """Let rollout ``number`` end early; comes in while it runs, or even before."""
        self._stopped_number = number

    def _at(self, worker: int, state: Mapping[str, Any]) -> RolloutWorker:
        if worker not in self._workers:
            self._workers[worker] = self._fresh(worker)
        self._workers[worker].load_state(state)
        return self._workers[worker]

    def _fresh(self, worker: int) -> RolloutWorker:
        return RolloutWorker(self._make_environment(worker), seed=self._seed, worker=worker)


_REMOTE_HOST = ray.remote(  # type: ignore[call-overload]  # it does not know concurrency_groups
    num_cpus=1,
    max_restarts=0,  # the pool replaces actors, because it knows their workers' states
    max_task_retries=0,
    concurrency_groups={"control": 1},
    scheduling_strategy="SPREAD",
)(_Host)


def _policy_of(network: ActorCritic) -> _Policy:
    parameters = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
    return network.architecture, parameters


def _pack(rollout: Rollout) -> dict[str, object]:
    """Tensors as arrays, which Ray sends without copying them into a pickle."""
    content = {one.name: getattr(rollout, one.name) for one in fields(rollout)}
    return {
        name: value.numpy() if isinstance(value, Tensor) else value
        for name, value in content.items()
    }


def _unpack(packed: Mapping[str, Any]) -> Rollout:
    """Undo `_pack`; what Ray received cannot be written to, hence the copies."""
    content: dict[str, Any] = {
        name: torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
        for name, value in packed.items()
    }
    return Rollout(**content)
