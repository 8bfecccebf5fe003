"""The placement task of a size, and steps of its batched environment."""

from collections.abc import Callable

import numpy as np

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.env import make_task
from agents.flat.task import PlacementTask
from bench.worlds import LAWS, SEED, Size, job, mesh
from des import Placement


def placement_task(size: Size, law: str, num_domains: int | None = None) -> PlacementTask:
    """Make the task of one size, order and split points (default: a domain a stage)."""
    return make_task(
        topology=mesh(num_domains or size.num_stages, LAWS[law]),
        workload=job(size.num_microbatches),
        actions="order_split",
    )


def even_split(size: Size, task: PlacementTask) -> np.ndarray:
    """Return the action that gives the first domains, in order, as many layers each."""
    num_domains, num_layers = task.world.num_domains, task.workload.num_layers
    stages = Placement.even(size.num_stages, num_layers).stages
    ends = np.full(num_domains - 1, num_layers)
    ends[: size.num_stages] = np.cumsum([stage.num_layers for stage in stages])[: num_domains - 1]
    return np.concatenate([np.zeros(num_domains - 1, dtype=np.int64), ends])


def random_actions(task: PlacementTask, num_envs: int, num_steps: int = 16) -> np.ndarray:
    """Return actions (steps, N, A), the same each time."""
    sizes = np.array(task.codec.sizes)
    rng = np.random.default_rng(SEED)
    return rng.integers(sizes, size=(num_steps, num_envs, len(sizes)))


def stepping(
    task: PlacementTask, num_envs: int, num_threads: int, actions: np.ndarray
) -> Callable[[], object]:
    """Return a call that steps a batch with the next of some actions, (any, N, A)."""
    environment = BatchedPlacementEnv(task, num_envs=num_envs, seed=SEED, num_workers=num_threads)
    environment.reset()
    count = iter(range(2**62))
    return lambda: environment.step(actions[next(count) % len(actions)])
