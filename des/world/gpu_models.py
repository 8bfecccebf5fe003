"""GPU models by name: published figures of each, and how well its kernels use them."""

from dataclasses import dataclass
from types import MappingProxyType

from des.base.checks import require_fraction, require_non_negative


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """Data sheet of a GPU: dense 16-bit peak without sparsity, memory and its bandwidth."""

    name: str
    peak_flops_per_s: float
    memory_bytes: float
    memory_bandwidth_bytes_per_s: float
    source: str


_MODELS = (
    GpuModel(
        name="v100_32", peak_flops_per_s=125e12, memory_bytes=32e9,
        memory_bandwidth_bytes_per_s=900e9,
        source="NVIDIA V100 data sheet (January 2020), SXM2",
    ),
    GpuModel(
        name="a100_40", peak_flops_per_s=312e12, memory_bytes=40e9,
        memory_bandwidth_bytes_per_s=1555e9,
        source="NVIDIA A100 data sheet (June 2021), 40 GB SXM",
    ),
    GpuModel(
        name="a100_80", peak_flops_per_s=312e12, memory_bytes=80e9,
        memory_bandwidth_bytes_per_s=2039e9,
        source="NVIDIA A100 data sheet (June 2021), 80 GB SXM",
    ),
    GpuModel(
        name="h100", peak_flops_per_s=989.5e12, memory_bytes=80e9,
        memory_bandwidth_bytes_per_s=3350e9,
        source="NVIDIA H100 data sheet, SXM; half of the 1,979 TFLOP/s with sparsity",
    ),
    GpuModel(
        name="h200", peak_flops_per_s=989.5e12, memory_bytes=141e9,
        memory_bandwidth_bytes_per_s=4800e9,
        source="NVIDIA H200 data sheet, SXM; half of the 1,979 TFLOP/s with sparsity",
    ),
    GpuModel(
        name="gh200", peak_flops_per_s=990e12, memory_bytes=96e9,
        memory_bandwidth_bytes_per_s=4000e9,
        source="NVIDIA GH200 data sheet, 96 GB HBM3; half of the figure with sparsity",
    ),
    GpuModel(
        name="mi300x", peak_flops_per_s=1307.4e12, memory_bytes=192e9,
        memory_bandwidth_bytes_per_s=5300e9,
        source="AMD Instinct MI300X data sheet (2023), BF16 without sparsity",
    ),
    GpuModel(
        name="east_west_120", peak_flops_per_s=120e12, memory_bytes=80e9,
        memory_bandwidth_bytes_per_s=1600e9,
        source="the GPU of the world East-Central-West; no product",
    ),
)  # fmt: skip

GPU_MODELS = MappingProxyType({model.name: model for model in _MODELS})
"""GPU models by name, as the key ``gpu`` of a topology file takes them."""


def gpu_model_named(domain: str, name: str) -> GpuModel:
    """Look up the GPU model of a domain.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those there are.
    """
    model = GPU_MODELS.get(name)
    if model is None:
        known = ", ".join(GPU_MODELS)
        raise ValueError(f"domain {domain}: gpu must be one of {known}; got {name!r}")
    return model


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
    """

    matmul_efficiency: float
    memory_efficiency: float
    layer_launch_s: float
    iteration_overhead_s: float

    def __post_init__(self) -> None:
        owner = "kernel figures"
        require_fraction(owner, "matmul_efficiency", self.matmul_efficiency)
        require_fraction(owner, "memory_efficiency", self.memory_efficiency)
        for field in ("layer_launch_s", "iteration_overhead_s"):
            require_non_negative(owner, field, getattr(self, field))


FITTED_KERNELS = KernelFigures(
    matmul_efficiency=0.801,
    memory_efficiency=0.683,
    layer_launch_s=0.945e-3,
    iteration_overhead_s=13.7e-3,
)
"""Figures of Megatron-DeepSpeed on A100 GPUs: `python -m calibration kernels` on the 128 measured
iterations of vTrain that come with `scenarios.reproduce`. For other GPUs they are a guess.
"""
