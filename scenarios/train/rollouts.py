"""Rollout workers of a training: this process, or actors of Ray."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.task import PlacementTask
from agents.ppo.rollout import RolloutSource
from agents.ppo.rollout_source import LocalRollouts, environment_seed
from des.base.checks import require_count
from scenarios.frame.ray_extra import ray_module


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnvironments:
    """Makes the environments of the logical workers, which share ``num_envs`` evenly.

    ``num_threads`` is what each environment simulates on; results are the same for any.
    """

    task: PlacementTask
    num_envs: int
    num_workers: int
    seed: int
    num_threads: int

    def __post_init__(self) -> None:
        require_count("rollouts", "num_workers", self.num_workers, self.num_envs)

    def __call__(self, worker: int) -> BatchedPlacementEnv:
        """Make the environment of one logical worker."""
        size, num_larger = divmod(self.num_envs, self.num_workers)
        return BatchedPlacementEnv(
            self.task,
            num_envs=size + (worker < num_larger),
            seed=environment_seed(self.seed, worker),
            num_workers=self.num_threads,
        )


@contextmanager
def make_rollouts(
    task: PlacementTask,
    *,
    num_envs: int,
    num_workers: int,
    seed: int,
    num_processes: int,
    device: str = "cpu",
    ray: str | None = None,
    preempt_share: float | None = None,
) -> Iterator[RolloutSource]:
    """Give the rollouts of a training; they are closed at the end, and a Ray of our own with them.

    Parameters
    ----------
    num_envs
        Environments, all logical workers together.
    num_workers
        Logical workers. Results depend on it, but not on who they run on.
    num_processes
        Resources of this machine: threads without Ray, actors on a Ray that is started here.
        A running cluster is used as far as it has CPUs.
    device
        Device on which the policy acts; actors of Ray act on their processors.
    ray
        None: no Ray. Else see `scenarios.frame.ray_session.ray_session`.
    preempt_share
        See `agents.ppo.ray_rollouts.RayRollouts`; only with ``ray``.

    Raises
    ------
    ValueError
        If ray is requested and not installed, or there is no cluster at the address.
    """
    environments = WorkerEnvironments(
        task=task,
        num_envs=num_envs,
        num_workers=num_workers,
        seed=seed,
        num_threads=num_processes if ray is None else 1,
    )
    if ray is None:
        if preempt_share is not None:
            raise ValueError(f"rollouts: preempt_share needs ray, got {preempt_share!r} without")
        several = [environments(worker) for worker in range(num_workers)]
        with closing(LocalRollouts(several, seed=seed, device=device)) as rollouts:
            yield rollouts
        return
    session = ray_module("scenarios.frame.ray_session").ray_session
    with session(ray, num_cpus=min(num_workers, num_processes)) as num_cpus:
        actors = ray_module("agents.ppo.ray_rollouts").RayRollouts(
            environments,
            num_workers=num_workers,
            num_actors=max(1, min(num_workers, num_cpus)),
            seed=seed,
            preempt_share=preempt_share,
        )
        with closing(actors):
            yield actors
