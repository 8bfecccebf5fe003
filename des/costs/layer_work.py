"""Work of layers on a device, as its times from shapes, a profile or FLOPs have it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from des.base.checks import prefixed_errors
from des.costs.layer_products import NO_SPREAD, Spread
from des.costs.layer_times import (
    GpuSpeed,
    PassSeconds,
    head_seconds,
    layer_seconds,
    low_precision_of,
    speed_of,
)
from des.costs.profiled_times import interpolate_passes, measured_end, name_layer
from des.job.transformer import linear_flops_per_token
from des.job.workload import ModelShape, Workload
from des.plan.parallelism import UNSHARED, Parallelism
from des.world.domain import Domain
from des.world.layer_profiles import LayerKind, LayerProfile, MeasuredPasses, PointPlace

_ENDS: tuple[tuple[int, LayerKind], ...] = ((0, "embedding"), (-1, "head"))
"""Layers that the ends of a model belong to."""


class WorkBefore(NamedTuple):
    """Work over all layers before each one, by the pass; the last item is all. [FLOP]

    A device does it at its attainable rate. Where times come from shapes or a profile it is what
    the peak would do in the same time, so that ``attainable_fraction`` is the share of that speed
    the job has.
    """

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    input_gradient: tuple[float, ...]
    weight_gradient: tuple[float, ...]


def spread_of(shared: Parallelism) -> Spread:
    """Spread of sequences and experts over the GPUs of a device."""
    return Spread(
        shared.context,
        shared.expert,
        shared.expert_skew,
        shared.sequence_parallel,
        shared.whole_experts,
    )


def own_layer_seconds(
    shape: ModelShape,
    gpu: GpuSpeed,
    *,
    tensor: int,
    data: int,
    exchange_s: float,
    spread: Spread = NO_SPREAD,
    layer: int,
) -> PassSeconds:
    """Times of a layer, see `layer_seconds`: measured where the GPU has a profile. [s]

    Exchanges are added to measured times, unless those include them. Selective recomputation takes
    the part of the forward pass that attention has by shapes.

    Raises
    ------
    ValueError
        If a profile lacks the layer or the place, or has to be spread and does not extrapolate.
    """
    sizes = {"tensor": tensor, "data": data, "layer": layer}
    shaped = layer_seconds(shape, gpu, exchange_s=exchange_s, spread=spread, **sizes)
    if gpu.profile is None:
        return shaped

    def by_shapes(place: PointPlace) -> MeasuredPasses:
        there = _shape_at(shape, place)
        found = layer_seconds(
            there,
            gpu,
            tensor=place.tensor,
            data=1,
            exchange_s=0.0,
            spread=Spread(sequence_parallel=spread.sequence_parallel),
            layer=layer,
        )
        return MeasuredPasses(*found[:3])

    place = PointPlace(tensor, shape.batch_size / data, shape.sequence)
    kind = name_layer(shape.architecture, layer)
    found = interpolate_passes(gpu.profile, kind, place, by_shapes)
    if spread.context > 1 or (spread.expert > 1 and kind.kind == "moe"):
        alone = by_shapes(place)
        parts = layer_seconds(shape, gpu, exchange_s=0.0, spread=spread, **sizes)
        found = _spread_over(gpu.profile, found, alone, MeasuredPasses(*parts[:3]))
    waited_s = 0.0 if gpu.profile.includes_exchanges else exchange_s
    again_s = 0.0
    if shape.recomputation == "full":
        again_s = found.forward + waited_s
    elif shape.recomputation == "selective":
        quiet_s = layer_seconds(shape, gpu, exchange_s=0.0, spread=spread, **sizes).forward
        again_s = shaped.recomputation * (found.forward / quiet_s)
    return PassSeconds(
        forward=found.forward + waited_s,
        input_gradient=found.input_gradient + waited_s,
        weight_gradient=found.weight_gradient,
        recomputation=again_s,
    )


def _spread_over(
    profile: LayerProfile, found: MeasuredPasses, alone: MeasuredPasses, parts: MeasuredPasses
) -> MeasuredPasses:
    """Scale times of a layer as shapes scale where its sequences or experts are shared. [s]"""
    if not profile.extrapolates:
        raise ValueError(
            f"profile {profile.name}: context and expert must be 1, as no point is of shared "
            "sequences or experts; extrapolate scales times as shapes do"
        )
    ratios = zip(found, parts, alone, strict=True)
    return MeasuredPasses(*(measured * here / there for measured, here, there in ratios))


def end_seconds(
    shape: ModelShape, gpu: GpuSpeed, kind: LayerKind, *, tensor: int, data: int
) -> PassSeconds:
    """Times of the head or the embedding, on top of their layer's: measured or from shapes. [s]

    Shapes have none for the embedding, and neither have profiles without points of it.
    """
    is_head, profile = kind == "head", gpu.profile
    if profile is None or not (profile.holds(kind) or (is_head and not profile.extrapolates)):
        if is_head:
            return head_seconds(shape, gpu, tensor=tensor, data=data)
        return PassSeconds(0.0, 0.0, 0.0, 0.0)

    def by_shapes(place: PointPlace) -> MeasuredPasses:
        there = _shape_at(shape, place)
        if is_head:
            return MeasuredPasses(*head_seconds(there, gpu, tensor=place.tensor, data=1)[:3])
        return MeasuredPasses(*[place.microbatch_size * place.sequence] * 3)

    place = PointPlace(tensor, shape.batch_size / data, shape.sequence)
    end = measured_end(shape.architecture, kind)
    return PassSeconds(*interpolate_passes(profile, end, place, by_shapes), recomputation=0.0)


def _shape_at(shape: ModelShape, place: PointPlace) -> ModelShape:
    return replace(shape, batch_size=place.microbatch_size, sequence=place.sequence)


def work_before(
    workload: Workload,
    domain: Domain,
    parallelism: Parallelism | None = None,
    *,
    exchange_s: float = 0.0,
) -> WorkBefore:
    """Work of a workload's layers on one device of a domain, as its layer times have it. [FLOP]

    Without a parallelism the device is all GPUs of the domain, which lose nothing to sharing: each
    works on whole layers, and on its part of the microbatches, and waits for no launch. Where times
    come from shapes or a profile they include ``exchange_s`` a layer and pass, see `layer_seconds`.

    Raises
    ------
    ValueError
        If times come from shapes that the workload does not have, a profile lacks a layer, or the
        GPUs the precision.
    """
    gpu = speed_of(domain, workload.precision)
    if gpu is None:
        low = low_precision_of(domain, workload.precision)
        ratio = 1.0 if low is None else low.peak_flops_per_s / domain.gpu_peak_flops_per_s
        return _work_from_flops(workload, ratio)
    if workload.shape is None:
        raise ValueError(
            f"domain {domain.name}: layer_times must be fraction for workload {workload.name}, "
            f"the sizes of whose matrices are not known; got {domain.source_of_layer_times}"
        )
    if parallelism is None:
        gpu = gpu._replace(kernels=replace(gpu.kernels, graphs="full"))
    shared = parallelism or UNSHARED
    with prefixed_errors(f"domain {domain.name}: "):
        return _work_from_shapes(
            workload.shape,
            gpu,
            tensor=shared.tensor,
            data=shared.data,
            exchange_s=exchange_s,
            spread=spread_of(shared),
        )


def _work_from_flops(workload: Workload, ratio: float) -> WorkBefore:
    """FLOPs of layers, those of linear ones divided by how many times faster they are done."""
    sums = workload.sums_before
    flops = WorkBefore(
        forward=sums.forward_flops,
        backward=sums.backward_flops,
        input_gradient=sums.input_gradient_flops,
        weight_gradient=sums.weight_gradient_flops,
    )
    if ratio == 1.0:
        return flops
    shape = workload.shape
    if shape is None:
        raise ValueError(
            f"workload {workload.name}: precision must be bf16 where sizes of matrices are not "
            f"known; got {workload.precision}"
        )
    tokens, own = shape.batch_size * shape.sequence, shape.architecture
    linear = [
        tokens * linear_flops_per_token(own, layer) * (1.0 - 1.0 / ratio)
        for layer in range(own.num_layers)
    ]
    if shape.num_layers != own.num_layers:
        linear = [sum(linear) / shape.num_layers] * shape.num_layers
    spared = list(accumulate(linear, initial=0.0))
    again = 1 if shape.recomputation == "full" else 0
    passes = zip(flops, (1, 2 + again, 1 + again, 1), strict=True)
    return WorkBefore(
        *(
            tuple(before - times * less for before, less in zip(each, spared, strict=True))
            for each, times in passes
        )
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
    shape: ModelShape,
    gpu: GpuSpeed,
    *,
    tensor: int,
    data: int,
    exchange_s: float,
    spread: Spread,
) -> WorkBefore:
    """Turn times of layers on one GPU of a device into work of all its GPUs."""
    architecture = shape.architecture
    sizes = {"tensor": tensor, "data": data}
    own: list[PassSeconds] = []
    known: dict[bool, PassSeconds] = {}
    for layer in range(architecture.num_layers):
        kind = architecture.is_sparse(layer)
        if kind not in known:
            known[kind] = own_layer_seconds(
                shape, gpu, exchange_s=exchange_s, spread=spread, layer=layer, **sizes
            )
        own.append(known[kind])
    for at, end in _ENDS:
        more = end_seconds(shape, gpu, end, tensor=tensor, data=data * spread.context)
        own[at] = PassSeconds(*(a + b for a, b in zip(own[at], more, strict=True)))
    if shape.num_layers != len(own):
        whole = [sum(each) / shape.num_layers for each in zip(*own, strict=True)]
        own = [PassSeconds(*whole)] * shape.num_layers
    rate = tensor * data * spread.context * gpu.peak_flops_per_s
    columns = (
        [one.forward for one in own],
        [one.recomputation + one.input_gradient + one.weight_gradient for one in own],
        [one.recomputation + one.input_gradient for one in own],
        [one.weight_gradient for one in own],
    )
    return WorkBefore(
        *(tuple(accumulate((rate * each for each in column), initial=0.0)) for column in columns)
    )
