"""Models and GPUs of round figures for tests of layer times."""

from dataclasses import replace

from des import Domain, Topology, Workload
from des.costs.layer_times import GpuSpeed
from des.job.architecture import Architecture
from des.job.models import build_workload
from des.job.workload import ModelShape
from des.world.kernel_figures import KernelFigures

UNIT_KERNELS = KernelFigures(
    matmul_efficiency=0.5, memory_efficiency=0.5, layer_launch_s=0.0, iteration_overhead_s=0.0
)
UNIT_GPU = GpuSpeed(2.0, 2.0, UNIT_KERNELS)
"""1 FLOP and 1 byte a second."""

TINY = Architecture(
    name="tiny", num_layers=4, hidden_size=8, num_heads=2, num_key_value_heads=2, ffn_size=32,
    vocabulary_size=16, gated_ffn=False, tied_embeddings=True, num_positions=4,
)  # fmt: skip
GATED = replace(TINY, name="gated", num_key_value_heads=1, gated_ffn=True, num_positions=0)


def shape_of(architecture: Architecture = TINY, recomputation: str = "none") -> ModelShape:
    """Two sequences of four tokens."""
    return tiny_job(architecture, recomputation).shape


def tiny_job(
    architecture: Architecture = TINY, recomputation: str = "none", num_layers: int | None = None
) -> Workload:
    """Six microbatches of two sequences of four tokens."""
    return build_workload(
        architecture,
        num_layers=num_layers,
        num_microbatches=6,
        microbatch_size=2,
        sequence_length=4,
        recomputation=recomputation,
    )


def with_kernels(topology: Topology, kernels: KernelFigures, *places: int) -> Topology:
    """The world with layer times from shapes in some domains."""
    domains: list[Domain] = list(topology.domains)
    for place in places:
        domains[place % len(domains)] = replace(domains[place % len(domains)], kernels=kernels)
    return replace(topology, domains=tuple(domains))
