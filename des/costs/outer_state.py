"""Memory of DiLoCo's outer optimiser."""

from des.costs.copy_collectives import HeldParameters
from des.plan.parallelism import Parallelism
from des.plan.plan import Plan

OUTER_STATE_BYTES = 8
"""Outer momentum, and the parameters as they were last synchronised, 4 bytes each [1]_. [bytes]

.. [1] A. Douillard et al., "DiLoCo: Distributed low-communication training of language models",
   arXiv 2311.08105, 2023, algorithm 1 (Nesterov momentum on the change since the last exchange).
"""


INNER_MOMENTS_BYTES = 8
"""First and second moment of the inner optimiser, Adam, 4 bytes each. [bytes]"""


def has_outer_state(plan: Plan) -> bool:
    """Whether the replicas of a plan have an outer optimiser, whichever memory holds its state."""
    return bool(plan.replicas) and plan.synchronisation.steps_between > 1


def holds_outer_state(plan: Plan) -> bool:
    """Whether GPUs hold the outer optimiser's state, which may be in the memory of the hosts."""
    return has_outer_state(plan) and plan.synchronisation.outer_state != "cpu"


def outer_state_bytes(held: HeldParameters, parallelism: Parallelism | None) -> float:
    """State of the outer optimiser that a device holds, all its GPUs together. [bytes]

    One for each copy of the weights, or one for all where they shard the optimiser.
    """
    shared = parallelism or Parallelism()
    if shared.shards("optimiser"):
        return OUTER_STATE_BYTES * (held.common + held.experts)
    of_experts = shared.expert_copies * held.experts
    return OUTER_STATE_BYTES * (shared.copies * held.common + of_experts)
