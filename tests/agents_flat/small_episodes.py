"""Four unit layers on two domains: standing and moving links, and actions of a small batch."""

import numpy as np
from strategies import unit_workload, world

from des import UniformLaw

NUM_ENVS, EPOCHS, NUM_LAYERS = 3, 3, 4
LINKS = {"AB": (8.0, 0.25), "BA": (2.0, 0.5)}
JOB = unit_workload([(1, 2)] * NUM_LAYERS, num_microbatches=2, message_bytes=4.0)
PAIR = world("AB", LINKS, dynamics=UniformLaw(bandwidth_fluctuation=0.25, latency_jitter=0.5))

MOVING = {
    "topology": world(
        "AB", LINKS, dynamics=UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0)
    ),
    "workload": JOB,
    "epochs_per_episode": EPOCHS,
}
STEADY = MOVING | {"topology": world("AB", LINKS)}


def some_actions(num_steps: int) -> np.ndarray:
    """Actions shaped (num_steps, N, A)."""
    return np.random.default_rng(0).integers(2, size=(num_steps, NUM_ENVS, NUM_LAYERS))


def play(env, num_steps: int) -> list[tuple]:
    """Results of some steps of a vector environment."""
    return [env.step(actions) for actions in some_actions(num_steps)]
