"""Time of an iteration after its last gradient: the optimiser's step, and what frameworks add."""

from collections.abc import Sequence
from functools import lru_cache

from des.costs.bound_stages import BoundStage, by_device, runs_of
from des.costs.copy_collectives import shared_expert_parameters
from des.costs.layer_times import speed_of
from des.costs.memory import device_parameters
from des.job.transformer import OPTIMISER_BYTES, WEIGHT_BYTES
from des.job.workload import Workload
from des.plan.corrections import Corrections
from des.plan.parallelism import Parallelism
from des.world.domain import Domain


def optimiser_step_bytes(gradient_bytes: int) -> int:
    """Traffic of mixed-precision Adam per parameter. [bytes]

    States are read and written, the gradient read, the weight written.
    """
    return 2 * OPTIMISER_BYTES + gradient_bytes + WEIGHT_BYTES


@lru_cache(maxsize=1024)
def update_figures(
    gradient_bytes: int,
    domain: Domain,
    parallelism: Parallelism | None,
    corrections: Corrections,
) -> tuple[float, float]:
    """Time that a device updates one parameter for, and overhead of an iteration. [s]

    Both are 0 where times of layers follow from FLOPs: an attainable fraction is that of whole
    iterations.
    """
    gpu = speed_of(domain)
    if gpu is None:
        return 0.0, 0.0
    num_shares = domain.num_gpus
    if parallelism is not None:
        is_sharded = parallelism.shards("optimiser")
        num_shares = parallelism.gpus_per_device if is_sharded else parallelism.tensor
    bandwidth = gpu.memory_bandwidth_bytes_per_s * gpu.kernels.memory_efficiency
    slowdown = corrections.compute_time_factor / domain.attainable_fraction
    parameter_s = optimiser_step_bytes(gradient_bytes) / (bandwidth * num_shares) * slowdown
    return parameter_s, gpu.kernels.iteration_overhead_s * slowdown


def update_s(workload: Workload, stages: Sequence[BoundStage], corrections: Corrections) -> float:
    """Time from the last gradient to the end of an iteration. [s]

    All devices update at the same time, as clipping needs the norm of all gradients first; the
    slowest counts. Where R replicas share the optimiser's state, each updates 1/R of its layers.
    """
    if all(one.domain.kernels is None for one in stages):
        return 0.0
    longest_s = 0.0
    for own in by_device(stages).values():
        first, others = own[0], 0.0
        parameter_s, overhead_s = update_figures(
            workload.gradient_bytes, first.domain, first.parallelism, corrections
        )
        shared = first.parallelism
        if shared is not None and not shared.shards("optimiser"):
            routed = shared_expert_parameters(workload, runs_of(own), shared)
            others = routed * (1.0 - shared.tensor / shared.expert_parts)
        updated = (device_parameters(workload, own) - others) / first.optimiser_shards
        longest_s = max(longest_s, updated * parameter_s + overhead_s)
    return longest_s
