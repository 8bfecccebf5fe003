"""Times of layers from the sizes of their matrices, a GPU's data sheet and its kernels' figures."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from des.costs.layer_products import (
    NO_SPREAD,
    LayerWork,
    MatrixProduct,
    Spread,
    head_work,
    layer_work,
)
from des.devices.gpu_kinds import GPU_KINDS
from des.job.architecture import Architecture
from des.job.precision import ELEMENT_BYTES, Precision
from des.job.transformer import ACTIVATION_BYTES
from des.job.workload import ModelShape
from des.world.domain import Domain
from des.world.kernel_figures import KernelFigures
from des.world.layer_profiles import LayerProfile

_LAYER_KERNELS = 20.0
"""Kernels of the forward pass of a dense layer, which the host launches in ``layer_launch_s``; as
many in its input gradient, half in its weight gradient. Megatron-LM's: 4 linear products with 2
biases, 2 of attention with a transposition and a softmax, 3 dropouts, 2 norms, 2 residual
additions, an activation, 2 sums over the tensor group.
"""

_ROUTER_KERNELS = 31.0
"""Further kernels where tokens are routed to experts, forward and for the input gradient [1]_.

.. [1] X. Yao et al., "Optimizing DeepSeek-V3 training performance on NVIDIA GB200 NVL72", NVIDIA,
   Megatron-LM, ``docs/discussions``, 2025, section 2.1.4: 31 kernels after fusion, 72 before.
"""


class PassSeconds(NamedTuple):
    """Times of the passes of a layer over one microbatch. [s]"""

    forward: float
    input_gradient: float
    weight_gradient: float
    recomputation: float


class LowPrecision(NamedTuple):
    """Peak of products of linear layers in fewer than 16 bits, and the size of their factors."""

    peak_flops_per_s: float
    element_bytes: float

    @property
    def num_reads(self) -> float:
        """Times that a tensor is read to be converted."""
        return 2.0 if self.element_bytes == ELEMENT_BYTES["nvfp4"] else 1.0


class GpuSpeed(NamedTuple):
    """Figures of a GPU from which times of kernels are made, and measured times of its layers."""

    peak_flops_per_s: float
    memory_bandwidth_bytes_per_s: float
    kernels: KernelFigures
    profile: LayerProfile | None = None
    low: LowPrecision | None = None


def product_s(product: MatrixProduct, gpu: GpuSpeed) -> float:
    """Time of a matrix product on one GPU: that of its FLOPs or of its memory traffic. [s]"""
    peak, num_bytes = gpu.peak_flops_per_s, product.moved_bytes
    if gpu.low is not None and not product.in_bf16:
        peak, num_bytes = gpu.low.peak_flops_per_s, product.moved_with(gpu.low.element_bytes)
    return max(product.flops / (peak * gpu.kernels.matmul_efficiency), moving_s(num_bytes, gpu))


def conversion_s(work: LayerWork, gpu: GpuSpeed) -> tuple[float, float]:
    """Time in which inputs of linear layers, and gradients of outputs, become low precision. [s]

    Each is read in BF16 and written twice, as rows and as columns, since two of the three passes
    multiply by it; NVFP4 has a scale of the whole tensor, for whose largest element it is read
    before. Weights are converted once an iteration, which is not counted.
    """
    if gpu.low is None:
        return 0.0, 0.0
    element_bytes = gpu.low.num_reads * ACTIVATION_BYTES + 2.0 * gpu.low.element_bytes
    linear = [one for one in work.weights if not one.in_bf16]
    inputs = sum(one.repeats * one.rows * one.inner for one in linear)
    gradients = sum(one.repeats * one.rows * one.columns for one in linear)
    return moving_s(element_bytes * inputs, gpu), moving_s(element_bytes * gradients, gpu)


def moving_s(num_bytes: float, gpu: GpuSpeed) -> float:
    """Time of kernels that only read and write. [s]"""
    return num_bytes / (gpu.memory_bandwidth_bytes_per_s * gpu.kernels.memory_efficiency)


def work_s(work: LayerWork, gpu: GpuSpeed) -> PassSeconds:
    """Times that a GPU takes for a forward pass and for both gradients of some work. [s]

    Both factors of an attention product have a gradient, which the input gradient needs. Gradients
    move twice what the forward pass moves, and place as much.
    """

    def all_s(products: Iterable[MatrixProduct]) -> float:
        return sum(product_s(one, gpu) for one in products)

    moved_s, placed_s = moving_s(work.moved_bytes, gpu), moving_s(work.placed_bytes, gpu)
    inputs_s, gradients_s = conversion_s(work, gpu)
    both = (side for one in work.attention for side in (one.of_left, one.of_right))
    return PassSeconds(
        forward=all_s(work.weights + work.attention) + moved_s + placed_s + inputs_s,
        input_gradient=all_s(one.of_left for one in work.weights)
        + all_s(both)
        + 2.0 * moved_s
        + placed_s
        + gradients_s,
        weight_gradient=all_s(one.of_right for one in work.weights),
        recomputation=0.0,
    )


def layer_seconds(
    shape: ModelShape,
    gpu: GpuSpeed,
    *,
    tensor: int,
    data: int,
    exchange_s: float,
    spread: Spread = NO_SPREAD,
    layer: int = 0,
) -> PassSeconds:
    """Times of a layer, by its index, on a device of ``tensor`` x ``data`` GPUs. [s]

    Parameters
    ----------
    tensor, data
        GPUs that share every layer, and replicas that share every microbatch.
    exchange_s
        Time in which the GPUs that share a layer sum up its results, in one pass. It is waited for,
        and hidden only where the host is slower than all that the GPUs do.
    spread
        Further GPUs of the device that share sequences or experts, and whether the group divides
        norms and residual additions.
    """
    work = layer_work(
        shape.architecture,
        batch_size=shape.batch_size / data,
        sequence=shape.sequence,
        tensor=tensor,
        scores=shape.attention_kernel == "plain",
        spread=spread,
        layer=layer,
    )
    if shape.attention_kernel == "flash" and shape.architecture.window_of(layer) is None:
        share = gpu.kernels.attention_share
        done = (one._replace(repeats=share * one.repeats) for one in work.attention)
        work = replace(work, attention=tuple(done))
    gpu_s, launch_s = work_s(work, gpu), _launches_s(shape.architecture, gpu, spread, layer)
    forward_s = max(gpu_s.forward + exchange_s, launch_s.forward)
    again_s = 0.0
    if shape.recomputation == "full":
        again_s = forward_s
    elif shape.recomputation == "selective":
        again_s = sum(product_s(one, gpu) for one in work.attention)
        again_s += moving_s(work.score_bytes, gpu)
    return PassSeconds(
        forward=forward_s,
        input_gradient=max(gpu_s.input_gradient + exchange_s, launch_s.input_gradient),
        weight_gradient=max(gpu_s.weight_gradient, launch_s.weight_gradient),
        recomputation=again_s,
    )


def _launches_s(
    architecture: Architecture, gpu: GpuSpeed, spread: Spread, layer: int
) -> PassSeconds:
    """Times in which the host launches the kernels of passes that no CUDA graph holds. [s]

    Of each expert on a GPU two products, and in fewer than 16 bits two conversions before those of
    the forward pass and of the input gradient: grouped products are a kernel an expert [1]_.
    """
    common, routed, experts = _LAYER_KERNELS, 0.0, architecture.experts
    whole, converted = 0.0, 1.0 if gpu.low is None else 2.0
    if experts is not None and architecture.is_sparse(layer):
        routed, whole = _ROUTER_KERNELS, 2.0 * experts.num_experts / spread.expert
    if gpu.kernels.graphs != "none":
        common = routed = 0.0
    if gpu.kernels.graphs == "full":
        whole = 0.0
    one_s = gpu.kernels.layer_launch_s / _LAYER_KERNELS
    forward_s = (common + routed + converted * whole) * one_s
    return PassSeconds(forward_s, forward_s, (0.5 * common + whole) * one_s, 0.0)


def head_seconds(shape: ModelShape, gpu: GpuSpeed, *, tensor: int, data: int) -> PassSeconds:
    """Times of the output head and the loss, on top of the last layer's. [s]"""
    batch_size = shape.batch_size / data
    work = head_work(
        shape.architecture, batch_size=batch_size, sequence=shape.sequence, tensor=tensor
    )
    return work_s(work, gpu)


def speed_of(domain: Domain, precision: Precision = "bf16") -> GpuSpeed | None:
    """Speed of a domain's GPUs; None where times of layers follow from FLOPs alone.

    Raises
    ------
    ValueError
        If its GPUs lack the precision, or measured times are of another, see `low_precision_of`.
    """
    if domain.kernels is None:
        return None
    return GpuSpeed(
        domain.gpu_peak_flops_per_s,
        domain.gpu_memory_bandwidth_bytes_per_s,
        domain.kernels,
        domain.profile,
        low_precision_of(domain, precision),
    )


def low_precision_of(domain: Domain, precision: Precision) -> LowPrecision | None:
    """Figures of a precision on a domain's GPUs, whose peaks are as of their kind; None: BF16.

    Raises
    ------
    ValueError
        If the kind of GPU is not known or lacks the precision, or layer times are measured.
    """
    if precision == "bf16":
        return None
    kind = GPU_KINDS.get(domain.gpu_kind or "")
    if kind is None:
        raise ValueError(
            f"domain {domain.name}: precision must be bf16, as its peak in others is that of a "
            f"kind of GPU, which gpu would name; got {precision}"
        )
    if domain.profile is not None:
        raise ValueError(
            f"domain {domain.name}: precision must be bf16 with layer_times profile, whose points "
            f"say none; got {precision}"
        )
    factor = kind.peak_in(precision) / kind.peak_flops_per_s
    return LowPrecision(domain.gpu_peak_flops_per_s * factor, ELEMENT_BYTES[precision])
