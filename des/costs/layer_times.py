"""Times of layers from the sizes of their matrices, a GPU's data sheet and its kernels' figures."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from des.costs.layer_products import LayerWork, MatrixProduct, head_work, layer_work
from des.job.workload import ModelShape, Workload
from des.plan.parallelism import Parallelism
from des.world.domain import Domain
from des.world.gpu_models import KernelFigures

_LAUNCHES = {"forward": 1.0, "input_gradient": 1.0, "weight_gradient": 0.5}
"""Launches of each pass of a layer, in those of its forward pass."""


class PassSeconds(NamedTuple):
    """Times of the passes of a layer over one microbatch. [s]"""

    forward: float
    input_gradient: float
    weight_gradient: float
    recomputation: float


class GpuSpeed(NamedTuple):
    """Figures of a GPU from which times of kernels are made."""

    peak_flops_per_s: float
    memory_bandwidth_bytes_per_s: float
    kernels: KernelFigures


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
    """
    work = layer_work(
        shape.architecture,
        batch_size=shape.batch_size / data,
        sequence=shape.sequence,
        tensor=tensor,
        scores=shape.recomputation != "flash",
        layer=layer,
    )
    gpu_s, launch_s = work_s(work, gpu), gpu.kernels.layer_launch_s
    forward_s = max(gpu_s.forward + exchange_s, _LAUNCHES["forward"] * launch_s)
    again_s = 0.0
    if shape.recomputation == "full":
        again_s = forward_s
    elif shape.recomputation == "selective":
        again_s = sum(product_s(one, gpu) for one in work.attention)
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


class WorkBefore(NamedTuple):
    """Work over all layers before each one, by the pass; the last item is all. [FLOP]

    A device does it at its attainable rate. Where times come from shapes it is what the peak would
    do in the same time, so that ``attainable_fraction`` is the share of that speed the job has.
    """

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    input_gradient: tuple[float, ...]
    weight_gradient: tuple[float, ...]


def speed_of(domain: Domain) -> GpuSpeed | None:
    """Speed of a domain's GPUs; None where times of layers follow from FLOPs alone."""
    if domain.kernels is None:
        return None
    return GpuSpeed(
        domain.gpu_peak_flops_per_s, domain.gpu_memory_bandwidth_bytes_per_s, domain.kernels
    )


def work_before(
    workload: Workload,
    domain: Domain,
    parallelism: Parallelism | None = None,
    *,
    exchange_s: float = 0.0,
) -> WorkBefore:
    """Work of a workload's layers on one device of a domain, as its layer times have it. [FLOP]

    Without a parallelism the device is all GPUs of the domain, which lose nothing to sharing: each
    works on whole layers, and on its part of the microbatches. Where times come from shapes they
    include ``exchange_s`` a layer and pass, see `layer_seconds`.

    Raises
    ------
    ValueError
        If times come from shapes that the workload does not have.
    """
    gpu = speed_of(domain)
    if gpu is None:
        sums = workload.sums_before
        return WorkBefore(
            forward=sums.forward_flops,
            backward=sums.backward_flops,
            input_gradient=sums.input_gradient_flops,
            weight_gradient=sums.weight_gradient_flops,
        )
    if workload.shape is None:
        raise ValueError(
            f"domain {domain.name}: layer_times must be fraction for workload {workload.name}, "
            "the sizes of whose matrices are not known; got shapes"
        )
    shared = parallelism or Parallelism()
    return _work_from_shapes(
        workload.shape, gpu, tensor=shared.tensor, data=shared.data, exchange_s=exchange_s
    )


def least_work_before(workload: Workload, domains: Sequence[Domain]) -> WorkBefore:
    """Work of which no domain's device has less, layer by layer; see `work_before`. [FLOP]"""
    found = {work_before(workload, domain) for domain in domains}
    if len(found) == 1:
        return found.pop()
    columns = (
        [min(layers) for layers in zip(*(_of_layers(one) for one in each), strict=True)]
        for each in zip(*found, strict=True)
    )
    return WorkBefore(*(tuple(accumulate(column, initial=0.0)) for column in columns))


def _of_layers(sums_before: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(sums_before)]


@lru_cache(maxsize=4096)
def _work_from_shapes(
    shape: ModelShape, gpu: GpuSpeed, *, tensor: int, data: int, exchange_s: float
) -> WorkBefore:
    """Turn times of layers on one GPU of a device into work of all its GPUs."""
    architecture = shape.architecture
    sizes = {"tensor": tensor, "data": data}
    own: list[PassSeconds] = []
    known: dict[bool, PassSeconds] = {}
    for layer in range(architecture.num_layers):
        kind = architecture.is_sparse(layer)
        if kind not in known:
            known[kind] = layer_seconds(shape, gpu, exchange_s=exchange_s, layer=layer, **sizes)
        own.append(known[kind])
    head = head_seconds(shape, gpu, **sizes)
    own[-1] = PassSeconds(*(a + b for a, b in zip(own[-1], head, strict=True)))
    if shape.num_layers != len(own):
        whole = [sum(each) / shape.num_layers for each in zip(*own, strict=True)]
        own = [PassSeconds(*whole)] * shape.num_layers
    rate = tensor * data * gpu.peak_flops_per_s
    columns = (
        [one.forward for one in own],
        [one.recomputation + one.input_gradient + one.weight_gradient for one in own],
        [one.recomputation + one.input_gradient for one in own],
        [one.weight_gradient for one in own],
    )
    return WorkBefore(
        *(tuple(accumulate((rate * each for each in column), initial=0.0)) for column in columns)
    )
