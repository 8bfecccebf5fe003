"""Shipped samplers, small ones, and how even a figure is over cases."""

from collections import Counter
from dataclasses import replace

from strategies import plan

from calibration.cases.settings import PolicyPlans, WorkloadFamily
from des import STEADY, build_workload, read_topology
from des.worlds import EAST_CENTRAL_WEST

SHIPPED = read_topology(EAST_CENTRAL_WEST)
STEADY_SHIPPED = replace(SHIPPED, dynamics=STEADY)
SMALL = WorkloadFamily(
    models=("llama2_7b",),
    num_layers=8,
    num_microbatches=(8, 8),
    microbatch_sizes=(1,),
    sequence_lengths=(2048,),
    schedules=("1f1b",),
)

WORKLOAD = build_workload("llama2_7b", num_layers=6, num_microbatches=8)


def counts_of(values):
    """Return how often each value comes, most often first."""
    return sorted(Counter(values).values(), reverse=True)


def policy_of(*placements, weights=None):
    """What a policy does that chooses these placements."""
    return PolicyPlans(
        workload=WORKLOAD,
        plans=tuple(plan(*each, schedule="zb_h1") for each in placements),
        weights=weights or (1.0,) * len(placements),
    )
