"""Times of layers from the sizes of their matrices, a GPU's data sheet and its kernels' figures."""

from collections.abc import Iterable
from typing import NamedTuple

from des.costs.layer_products import (
    NO_SPREAD,
    LayerWork,
    MatrixProduct,
    Spread,
    head_work,
    layer_work,
)
from des.job.workload import ModelShape
from des.world.domain import Domain
from des.world.kernel_figures import KernelFigures
from des.world.layer_profiles import LayerProfile

_LAUNCHES = {"forward": 1.0, "input_gradient": 1.0, "weight_gradient": 0.5}
"""Launches of each pass of a layer, in those of its forward pass."""


class PassSeconds(NamedTuple):
    """Times of the passes of a layer over one microbatch. [s]"""

    forward: float
    input_gradient: float
    weight_gradient: float
    recomputation: float


class GpuSpeed(NamedTuple):
    """Figures of a GPU from which times of kernels are made, and measured times of its layers."""

    peak_flops_per_s: float
    memory_bandwidth_bytes_per_s: float
    kernels: KernelFigures
    profile: LayerProfile | None = None


def product_s(product: MatrixProduct, gpu: GpuSpeed) -> float:
    """Time of a matrix product on one GPU: that of its FLOPs or of its memory traffic. [s]"""
    rate = gpu.peak_flops_per_s * gpu.kernels.matmul_efficiency
    return max(product.flops / rate, moving_s(product.moved_bytes, gpu))


def moving_s(num_bytes: float, gpu: GpuSpeed) -> float:
    """Time of kernels that only read and write. [s]"""
    return num_bytes / (gpu.memory_bandwidth_bytes_per_s * gpu.kernels.memory_efficiency)


def work_s(work: LayerWork, gpu: GpuSpeed) -> PassSeconds:
    """Times that a GPU takes for a forward pass and for both gradients of some work. [s]

    Both factors of an attention product have a gradient, which the input gradient needs. Gradients
    move twice what the forward pass moves.
    """

    def all_s(products: Iterable[MatrixProduct]) -> float:
        return sum(product_s(one, gpu) for one in products)

    moved_s = moving_s(work.moved_bytes, gpu)
    both = (side for one in work.attention for side in (one.of_left, one.of_right))
    return PassSeconds(
        forward=all_s(work.weights + work.attention) + moved_s,
        input_gradient=all_s(one.of_left for one in work.weights) + all_s(both) + 2.0 * moved_s,
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
    gpu_s, launch_s = work_s(work, gpu), gpu.kernels.layer_launch_s
    forward_s = max(gpu_s.forward + exchange_s, _LAUNCHES["forward"] * launch_s)
    again_s = 0.0
    if shape.recomputation == "full":
        again_s = forward_s
    elif shape.recomputation == "selective":
        again_s = sum(product_s(one, gpu) for one in work.attention)
        again_s += moving_s(work.score_bytes, gpu)
    return PassSeconds(
        forward=forward_s,
        input_gradient=max(
            gpu_s.input_gradient + exchange_s, _LAUNCHES["input_gradient"] * launch_s
        ),
        weight_gradient=max(gpu_s.weight_gradient, _LAUNCHES["weight_gradient"] * launch_s),
        recomputation=again_s,
    )


def head_seconds(shape: ModelShape, gpu: GpuSpeed, *, tensor: int, data: int) -> PassSeconds:
    """Times of the output head and the loss, on top of the last layer's. [s]"""
    batch_size = shape.batch_size / data
    work = head_work(
        shape.architecture, batch_size=batch_size, sequence=shape.sequence, tensor=tensor
    )
    return work_s(work, gpu)


def speed_of(domain: Domain) -> GpuSpeed | None:
    """Speed of a domain's GPUs; None where times of layers follow from FLOPs alone."""
    if domain.kernels is None:
        return None
    return GpuSpeed(
        domain.gpu_peak_flops_per_s,
        domain.gpu_memory_bandwidth_bytes_per_s,
        domain.kernels,
        domain.profile,
    )
