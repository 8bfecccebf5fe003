"""What one plan takes in the epochs of a draw, and what a change between two takes."""

import numpy as np

from agents.epochs import DecisionWorld
from agents.epochs.tables import held_topology
from des import NO_CORRECTIONS, Corrections, Plan, Topology, migration_s
from des.compiled.simulate import simulate_compiled


def time_of_change_s(
    world: DecisionWorld, topology: Topology, last: Plan | None, plan: Plan
) -> float:
    """Time of a change of plan; nothing before the first plan. [s]"""
    if last is None or plan == last:
        return 0.0
    costs = world.replacement
    return migration_s(
        topology,
        world.workload,
        last,
        plan,
        restart_s=costs.restart_s,
        pays_bytes=costs.pays_bytes,
    )


def iteration_times_s(
    world: DecisionWorld,
    draw_seed: int,
    plan: Plan,
    *,
    num_epochs: int | None = None,
    corrections: Corrections = NO_CORRECTIONS,
) -> np.ndarray:
    """Iteration time of one plan in every epoch of a draw, shaped (epochs,). [s]"""
    epochs = range(world.num_epochs if num_epochs is None else num_epochs)
    return np.array(
        [
            simulate_compiled(
                held_topology(world, draw_seed, epoch), world.workload, plan, corrections
            ).makespan_s
            for epoch in epochs
        ]
    )
