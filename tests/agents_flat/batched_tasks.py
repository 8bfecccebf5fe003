"""Batches of a small task, and steps in them."""

import dataclasses

import numpy as np
from strategies import unit_workload

from agents.decision.simulator import Simulator
from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.task import PlacementTask
from agents.flat.worlds import DrawnWorld
from agents.ppo.batch_step import BatchStep
from des import UniformLaw, simulate

SEED, NUM_ENVS, NUM_LAYERS, EPOCHS = 17, 3, 4, 3


def task(simulator: Simulator = simulate, actions: str = "per_layer") -> PlacementTask:
    """Four layers on two domains whose links are drawn for each episode, and move."""
    return PlacementTask(
        world=DrawnWorld(
            num_domains=2, dynamics=UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
        ),
        workload=unit_workload([(1e14, 2e14)] * NUM_LAYERS, num_microbatches=2, message_bytes=1e8),
        actions=actions,
        epochs_per_episode=EPOCHS,
        simulator=simulator,
    )


def batch(given: PlacementTask | None = None, num_workers: int = 1) -> BatchedPlacementEnv:
    return BatchedPlacementEnv(
        given or task(), num_envs=NUM_ENVS, seed=SEED, num_workers=num_workers
    )


def some_actions(num_steps: int) -> np.ndarray:
    """Actions shaped (num_steps, N, A), without the fatal one."""
    actions = np.random.default_rng(0).integers(2, size=(num_steps, NUM_ENVS, NUM_LAYERS))
    actions[..., 0] = 0
    return actions


def play(env: BatchedPlacementEnv, actions: np.ndarray) -> list[BatchStep]:
    return [env.step(action) for action in actions]


def assert_equal_steps(some: list[BatchStep], others: list[BatchStep]) -> None:
    for one, other in zip(some, others, strict=True):
        for field in dataclasses.fields(BatchStep):
            np.testing.assert_equal(getattr(one, field.name), getattr(other, field.name))
