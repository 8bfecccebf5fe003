"""Waits of passes where GPUs share sequences (context parallelism) or experts.

**Context.** Each of ``c`` GPUs has ``1 / c`` of the tokens. Keys and values of its part go round a
ring while it attends to those it has, a block a step [1]_. Forward ``c - 1`` steps hide behind a
block each. Backward the gradients of keys and values go round as well, a step behind them, and
reach their owner after the last block.

**Experts.** Each of ``e`` GPUs has ``1 / e`` of the routed experts of every sparse layer. Tokens go
to their experts and back by two all-to-alls forward, and their gradients by two backward [2]_.
Nothing hides them, unless kernels work on another microbatch meanwhile: then what is longer than a
layer's passes on the GPU is waited for, half of it in each direction. The fullest GPU has
``expert_skew`` times the mean of the tokens, and so of the work. GPUs of a tensor group each have a
part of every expert, so each sends all tokens of its copy; where experts are whole it sends those
that sequence parallelism leaves it.

What is recomputed is exchanged once more: attention with ``selective`` or ``full`` recomputation,
experts with ``full``.

References
----------
.. [1] H. Liu, M. Zaharia and P. Abbeel, "Ring attention with blockwise transformers for
   near-infinite context", ICLR'24, section 3.
.. [2] D. Lepikhin et al., "GShard: Scaling giant models with conditional computation and
   automatic sharding", ICLR'21, section 3.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from des.costs.layer_products import Spread, layer_work
from des.costs.layer_times import layer_seconds, product_s, speed_of
from des.costs.layer_work import spread_of
from des.costs.message_times import correct_inside
from des.costs.node_collectives import group_all_to_all_s, group_shift_s
from des.costs.node_groups import block_group, expert_group
from des.job.layer_sizes import LayerSizes, own_layer_sizes
from des.job.precision import Precision
from des.job.workload import ModelShape
from des.plan.corrections import Corrections
from des.plan.parallelism import Parallelism
from des.plan.placement import Stage
from des.schedules import Pass
from des.world.domain import Domain


class LayerWaits(NamedTuple):
    """Time by which passes of a layer last longer. [s]"""

    forward: float
    input_gradient: float
    weight_gradient: float


class RingWaits(NamedTuple):
    """Time for which attention waits for blocks of keys and values, and of their gradients. [s]"""

    forward: float
    backward: float


def ring_waits_s(
    count: int, shift_s: float, forward_s: float, backward_s: float | None = None
) -> RingWaits:
    """Time that attention over a ring waits for. [s]

    Parameters
    ----------
    count
        GPUs of the ring.
    shift_s
        Time in which all send a block of keys and values, or of their gradients, to the next GPU.
    forward_s, backward_s
        Work on one block (default of the backward pass: twice that of the forward pass).

    Notes
    -----
    Forward ``(c - 1) max(0, shift - forward)``. Backward a block's keys and values travel while it
    is worked on, and its gradients during the next one: the first and the last step have one of
    both, those between have both, and after the last one the gradients go home.

    Examples
    --------
    >>> ring_waits_s(4, 3.0, 2.0), ring_waits_s(4, 2.0, 2.0), ring_waits_s(1, 9.0, 1.0)
    (RingWaits(forward=3.0, backward=7.0), RingWaits(forward=0.0, backward=2.0), \
RingWaits(forward=0.0, backward=0.0))
    """
    if count == 1:
        return RingWaits(0.0, 0.0)
    work_s = 2.0 * forward_s if backward_s is None else backward_s
    ends_s = 2.0 * max(0.0, shift_s - work_s) + shift_s
    return RingWaits(
        forward=(count - 1) * max(0.0, shift_s - forward_s),
        backward=(count - 2) * max(0.0, 2.0 * shift_s - work_s) + ends_s,
    )


def copy_waits_s(
    shape: ModelShape,
    domain: Domain,
    parallelism: Parallelism,
    stage: Stage,
    *,
    corrections: Corrections,
    rate_flops_per_s: float,
    precision: Precision = "bf16",
) -> dict[Pass, float]:
    """Time by which passes of a stage last longer as copies share sequences or experts. [s]"""
    inside = correct_inside(domain, corrections)
    every = _waits_of_layers(shape, inside, parallelism, rate_flops_per_s, precision)
    forward, inputs, weights = (
        sum(each) for each in zip(*every[stage.first_layer :][: stage.num_layers], strict=True)
    )
    return {"F": forward, "B": inputs + weights, "D": inputs, "W": weights}


@lru_cache(maxsize=4096)
def _waits_of_layers(
    shape: ModelShape,
    inside: Domain,
    parallelism: Parallelism,
    rate_flops_per_s: float,
    precision: Precision,
) -> tuple[LayerWaits, ...]:
    """Waits of each layer of a workload; where these are others than the model's, on average."""
    known: dict[bool, LayerWaits] = {}
    own: list[LayerWaits] = []
    for layer in range(shape.architecture.num_layers):
        kind = shape.architecture.is_sparse(layer)
        if kind not in known:
            known[kind] = _waits_of_layer(
                shape,
                layer,
                inside,
                parallelism,
                rate_flops_per_s=rate_flops_per_s,
                precision=precision,
            )
        own.append(known[kind])
    if shape.num_layers == len(own):
        return tuple(own)
    mean = LayerWaits(*(sum(each) / shape.num_layers for each in zip(*own, strict=True)))
    return (mean,) * shape.num_layers


def _waits_of_layer(
    shape: ModelShape,
    layer: int,
    inside: Domain,
    parallelism: Parallelism,
    *,
    rate_flops_per_s: float,
    precision: Precision,
) -> LayerWaits:
    sizes = own_layer_sizes(shape, layer)
    again = shape.recomputation
    ring = _ring_waits_s(shape, layer, inside, parallelism, rate_flops_per_s)
    forward_s = backward_s = weights_s = 0.0
    if sizes.routed_bytes and parallelism.expert > 1:
        senders = parallelism.copies * (parallelism.tensor if parallelism.whole_experts else 1)
        payload_bytes = parallelism.expert_skew * sizes.routed_bytes / senders
        group = expert_group(inside, parallelism)
        forward_s = backward_s = 2.0 * group_all_to_all_s(payload_bytes, group)
        if inside.kernels is not None and inside.kernels.hides_all_to_alls:
            busy_s = _busy_s(shape, layer, inside, parallelism, precision)
            busy_s *= parallelism.gpus_per_device * inside.gpu_peak_flops_per_s / rate_flops_per_s
            forward_s = backward_s = max(0.0, forward_s - busy_s / 2.0)
        if inside.kernels is None:  # times from shapes have it in their products
            weights_s = (parallelism.expert_skew - 1.0) * sizes.expert_flops / rate_flops_per_s
            forward_s, backward_s = forward_s + weights_s, backward_s + weights_s
    if again == "full":
        backward_s += forward_s
    if again in ("full", "selective"):
        backward_s += ring.forward
    return LayerWaits(ring.forward + forward_s, ring.backward + backward_s, weights_s)


def _busy_s(
    shape: ModelShape, layer: int, inside: Domain, parallelism: Parallelism, precision: Precision
) -> float:
    """Time that a GPU works on all passes of a layer, however long the host launches them. [s]"""
    gpu = speed_of(inside, precision)
    assert gpu is not None  # only kernels of a known GPU hide messages
    found = layer_seconds(
        shape,
        gpu._replace(kernels=replace(gpu.kernels, layer_launch_s=0.0)),
        tensor=parallelism.tensor,
        data=parallelism.data,
        exchange_s=0.0,
        spread=spread_of(parallelism),
        layer=layer,
    )
    return found.forward + found.input_gradient + found.weight_gradient


def _ring_waits_s(
    shape: ModelShape,
    layer: int,
    inside: Domain,
    parallelism: Parallelism,
    rate_flops_per_s: float,
) -> RingWaits:
    """Waits of a layer's attention; every GPU has the keys and values of one head at least."""
    count = parallelism.context
    if count == 1:
        return RingWaits(0.0, 0.0)
    sizes = own_layer_sizes(shape, layer)
    share = max(1.0 / parallelism.tensor, 1.0 / shape.architecture.num_key_value_heads)
    block_bytes = sizes.key_value_bytes / parallelism.copies * share
    ring = block_group(inside, parallelism, count, num_senders=1)
    shift_s = group_shift_s(block_bytes, ring)
    forward_s, backward_s = _attention_s(shape, layer, inside, parallelism, sizes)
    slowdown = parallelism.gpus_per_device * inside.gpu_peak_flops_per_s / rate_flops_per_s
    return ring_waits_s(count, shift_s, forward_s * slowdown / count, backward_s * slowdown / count)


def _attention_s(
    shape: ModelShape, layer: int, inside: Domain, parallelism: Parallelism, sizes: LayerSizes
) -> tuple[float, float]:
    """Time of a layer's attention forward and backward at the full speed of its GPUs. [s]"""
    gpu = speed_of(inside)
    if gpu is None:
        peak = parallelism.gpus_per_device * inside.gpu_peak_flops_per_s
        return sizes.attention_flops / peak, 2.0 * sizes.attention_flops / peak
    work = layer_work(
        shape.architecture,
        batch_size=shape.batch_size / parallelism.data,
        sequence=shape.sequence,
        tensor=parallelism.tensor,
        scores=False,
        spread=Spread(parallelism.context),
        layer=layer,
    )
    gradients = (side for one in work.attention for side in (one.of_left, one.of_right))
    return (
        sum(product_s(one, gpu) for one in work.attention),
        sum(product_s(one, gpu) for one in gradients),
    )
