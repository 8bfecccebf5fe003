"""Use that the kernels of a training framework make of a GPU."""

from dataclasses import dataclass
from typing import Literal, get_args

from des.base.checks import require_fraction, require_non_negative, require_one_of

GraphScope = Literal["none", "partial", "full"]
"""Kernels that the host launches as CUDA graphs: none, all but those of routed experts, or all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFigures:
    """Use that the kernels of a training framework make of a GPU.

    Parameters
    ----------
    matmul_efficiency
        Fraction of the peak that matrix products reach.
    memory_efficiency
        Fraction of the memory's bandwidth that kernels reach which only read and write.
    layer_launch_s
        Time the host takes to launch the kernels of a layer's forward pass: no pass is shorter,
        however small the layer. [s]
    iteration_overhead_s
        Time of an iteration that is neither computing nor a message. [s]
    attention_share
        Share of its products that fused attention without a window does; 1/2 where it skips blocks
        that a causal mask hides.
    graphs
        Kernels that need no launch of their own, as CUDA graphs hold them.
    hides_all_to_alls
        All-to-alls of experts pass while the GPU works on another microbatch.
    """

    matmul_efficiency: float
    memory_efficiency: float
    layer_launch_s: float
    iteration_overhead_s: float
    attention_share: float = 1.0
    graphs: GraphScope = "none"
    hides_all_to_alls: bool = False

    def __post_init__(self) -> None:
        owner = "kernel figures"
        require_fraction(owner, "matmul_efficiency", self.matmul_efficiency)
        require_fraction(owner, "memory_efficiency", self.memory_efficiency)
        require_fraction(owner, "attention_share", self.attention_share)
        for field in ("layer_launch_s", "iteration_overhead_s"):
            require_non_negative(owner, field, getattr(self, field))
        require_one_of(owner, "graphs", self.graphs, get_args(GraphScope))


FITTED_KERNELS = KernelFigures(
    matmul_efficiency=0.801,
    memory_efficiency=0.683,
    layer_launch_s=0.945e-3,
    iteration_overhead_s=13.7e-3,
)
"""Figures of Megatron-DeepSpeed on A100 GPUs: `python -m calibration kernels` on the 128 measured
iterations of vTrain that come with `scenarios.reproduce`. For other GPUs they are a guess.
"""
