"""Tasks whose factors change, and steps compared to the last bit."""

import dataclasses

import numpy as np

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.task import PlacementTask
from agents.flat.worlds import DrawnWorld, GivenWorld
from agents.ppo.batch_step import BatchStep
from des import Corrections, UniformLaw, build_workload, read_topology, simulate
from des.worlds import EAST_CENTRAL_WEST

SEED, NUM_ENVS, EPOCHS, NUM_BEFORE, NUM_STEPS = 11, 4, 3, 4, 9
"""Factors change in the middle of the second of three episodes."""
FACTORS = Corrections(
    compute_time_factor=1.3,
    intra_bandwidth_factor=0.7,
    intra_latency_factor=1.9,
    wan_bandwidth_factor=0.6,
    wan_latency_factor=1.7,
    message_overhead_s=0.003,
)
JOB = build_workload("llama2_70b", num_layers=8, num_microbatches=4)
LAW = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
MOVING = dataclasses.replace(LAW, update_interval_s=0.7)
DRAWN = PlacementTask(
    world=DrawnWorld(num_domains=3, dynamics=MOVING),
    workload=JOB,
    actions="order_split",
    epochs_per_episode=EPOCHS,
)
GIVEN = dataclasses.replace(
    DRAWN,
    world=GivenWorld(
        topology=dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=MOVING)
    ),
    actions="per_layer",
    iterations_per_epoch=2,
)
TASKS = {
    "drawn": DRAWN,
    "given": GIVEN,
    "greedy": dataclasses.replace(DRAWN, schedule="greedy_2x"),
    "greedy given": dataclasses.replace(GIVEN, schedule="greedy_2x"),
}
"""Compiled code does the first two, episodes in Python the others."""


def corrected(task: PlacementTask, factors: Corrections = FACTORS) -> PlacementTask:
    return dataclasses.replace(task, corrections=factors)


def batch(task: PlacementTask, num_workers: int = 1) -> BatchedPlacementEnv:
    return BatchedPlacementEnv(task, num_envs=NUM_ENVS, seed=SEED, num_workers=num_workers)


def some_actions(task: PlacementTask) -> np.ndarray:
    sizes = task.codec.sizes
    return np.random.default_rng(0).integers(sizes, size=(NUM_STEPS, NUM_ENVS, len(sizes)))


def play(env: BatchedPlacementEnv, actions: np.ndarray) -> list[BatchStep]:
    return [env.step(action) for action in actions]


def to_bytes(steps: list[BatchStep]) -> list[dict[str, object]]:
    """All that steps returned, to the last bit."""
    return [
        {
            "metrics": {name: values.tobytes() for name, values in step.metrics.items()},
            **{
                field.name: getattr(step, field.name).tobytes()
                for field in dataclasses.fields(step)
                if field.name != "metrics"
            },
        }
        for step in steps
    ]


def under(env: BatchedPlacementEnv, factors: Corrections) -> dict[str, object]:
    """State of an environment with other factors."""
    return {**env.state(), "corrections": factors.plain()}


def limited_simulator(topology, workload, plan, factors):
    """Simulate as the engine does, but nothing that computes more slowly than measured."""
    if factors.compute_time_factor > 1.2:
        raise ArithmeticError("simulator: out of its depth")
    return simulate(topology, workload, plan, factors)
