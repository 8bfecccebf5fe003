"""Buckets of gradients that are summed up after a step."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from des.job.transformer import GRADIENT_BYTES, WEIGHT_BYTES
from des.job.workload import Workload
from des.plan.parallelism import Parallelism
from des.plan.placement import Stage
from des.plan.plan import Plan
from des.plan.synchronisation import Synchronisation, fragments_due


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Layers whose gradients are summed up together.

    ``stages`` holds the stage of each replica that has them; ``between_domains`` says whether the
    sum goes over the WAN, or stays within the one domain of each. What the GPUs of a device have to
    sum up among themselves is ``part`` of the exchange; or comes ``first``, as changes of
    parameters are known only after it; or is ``done`` already. An exchange ``after_step`` starts
    when all replicas have ended the step, their update included. Where the optimiser is sharded
    over the replicas, ``half`` is the part of a ring all-reduce that the exchange is: gradients are
    scattered, or new weights gathered.
    """

    first_layer: int
    num_layers: int
    num_bytes: float
    stages: tuple[int, ...]
    between_domains: bool
    inside: Literal["part", "first", "done"] = "part"
    after_step: bool = False
    half: Literal["scatter", "gather"] | None = None


def parameters_of(workload: Workload, first_layer: int, num_layers: int) -> float:
    """Parameters of layers in a row, rounded once, however large the others are.

    Examples
    --------
    >>> from des.job.workload import Layer
    >>> passes = dict(forward_flops=1.0, input_gradient_flops=1.0, weight_gradient_flops=1.0)
    >>> large, small = (
    ...     Layer(num_parameters=count, activation_bytes=0.0, weight_input_bytes=0.0, **passes)
    ...     for count in (1e9, 0.0177)
    ... )
    >>> job = Workload(
    ...     name="", layers=(large, small), num_microbatches=1, tokens_per_microbatch=1,
    ...     message_bytes=0.0,
    ... )
    >>> parameters_of(job, 1, 1)
    0.0177
    """
    return math.fsum(workload.num_parameters[first_layer : first_layer + num_layers])


def buckets_of(workload: Workload, plan: Plan, step: int) -> tuple[Bucket, ...]:
    """Exchanges that belong to a step, last layers first; those after it come last.

    Replicas within a device sum up their gradients after every step. What is due between domains
    includes that; what overlaps the next steps is not among them, see `buckets_behind`.
    """
    due, mode, exchange = frozenset[int](), plan.synchronisation, plan.exchange
    if plan.replicas and mode.overlap_steps == 0:
        due = _layers_due(workload, mode, step)
    limit, stages = exchange.bucket_bytes, plan.stages
    if exchange.sharded:
        return _sharded(
            workload, tuple(_between(workload, stages, mode, limit, due=due, inside="part"))
        )
    summed = [one for one in stages if sums_inside(plan.parallelism_of(one.domain))]
    if not mode.behind_backward:
        late = _between(workload, stages, mode, limit, due=due, inside="done")
        after = (replace(bucket, after_step=True) for bucket in late)
        return (*_within(workload, summed, limit, frozenset()), *after)
    inside: Literal["part", "first"] = "part" if mode.steps_between == 1 else "first"
    return (
        *_between(workload, stages, mode, limit, due=due, inside=inside),
        *_within(workload, summed, limit, due),
    )


def _sharded(workload: Workload, buckets: Sequence[Bucket]) -> tuple[Bucket, ...]:
    """Scatter the gradients of buckets, and gather their new weights after the step."""
    scattered = (replace(bucket, half="scatter") for bucket in buckets)
    gathered = (
        replace(
            bucket,
            num_bytes=WEIGHT_BYTES * parameters_of(workload, bucket.first_layer, bucket.num_layers),
            inside="done",
            after_step=True,
            half="gather",
        )
        for bucket in buckets
    )
    return (*scattered, *gathered)


def buckets_behind(workload: Workload, plan: Plan, step: int) -> tuple[Bucket, ...]:
    """Exchanges that start after a step and that the next steps do not wait for."""
    mode, limit = plan.synchronisation, plan.exchange.bucket_bytes
    if not plan.replicas or mode.overlap_steps == 0:
        return ()
    due = _layers_due(workload, mode, step)
    return tuple(_between(workload, plan.stages, mode, limit, due=due, inside="done"))


def sums_inside(parallelism: Parallelism | None) -> bool:
    """Whether GPUs of a device sum up gradients after the passes.

    They do not where they shard the weights: passes scatter gradients and gather weights.
    """
    return not (parallelism is None or parallelism.copies == 1 or parallelism.shards("parameters"))


def _layers_due(workload: Workload, mode: Synchronisation, step: int) -> frozenset[int]:
    fragments = fragments_due(mode, step, workload.num_layers)
    return frozenset(layer for fragment in fragments for layer in fragment.layers)


def _between(
    workload: Workload,
    stages: Sequence[Stage],
    mode: Synchronisation,
    limit: float | None,
    *,
    due: frozenset[int],
    inside: Literal["part", "first", "done"],
) -> Iterator[Bucket]:
    """Buckets of layers that each replica holds in one stage."""
    if not due:
        return
    holders: list[list[int]] = [[] for _ in range(workload.num_layers)]
    for stage in stages:
        for layer in range(workload.num_layers)[stage.layers]:
            holders[layer].append(stage.index)
    for layers in _runs(sorted(due), holders, workload, limit):
        parameters = parameters_of(workload, layers[0], len(layers))
        yield Bucket(
            first_layer=layers[0],
            num_layers=len(layers),
            num_bytes=parameters * bits_on_wire(workload, mode) / 8.0,
            stages=tuple(holders[layers[0]]),
            between_domains=True,
            inside=inside,
        )


def bits_on_wire(workload: Workload, mode: Synchronisation) -> float:
    """Bits of a value between domains; those of a mode are for gradients of 16 bits.

    Changes of parameters after several steps have the bits of the mode, whatever gradients have.
    """
    if mode.steps_between > 1:
        return mode.bits_per_value
    return mode.bits_per_value * (workload.gradient_bytes / GRADIENT_BYTES)


def _within(
    workload: Workload, stages: Sequence[Stage], limit: float | None, due: frozenset[int]
) -> Iterator[Bucket]:
    """Buckets of layers whose replicas are all inside one device."""
    for stage in stages:
        layers = [layer for layer in range(workload.num_layers)[stage.layers] if layer not in due]
        holders = [[stage.index]] * workload.num_layers
        for run in _runs(layers, holders, workload, limit):
            yield Bucket(
                first_layer=run[0],
                num_layers=len(run),
                num_bytes=workload.gradient_bytes * parameters_of(workload, run[0], len(run)),
                stages=(stage.index,),
                between_domains=False,
            )


def _runs(
    layers: Sequence[int],
    holders: Sequence[Sequence[int]],
    workload: Workload,
    limit: float | None,
) -> Iterator[list[int]]:
    """Consecutive layers of equal holders, last ones first, no more than fit into a bucket."""
    run: list[int] = []
    run_bytes = 0.0
    for layer in reversed(layers):
        own_bytes = workload.gradient_bytes * workload.num_parameters[layer]
        goes_on = run and layer == run[0] - 1 and list(holders[layer]) == list(holders[run[0]])
        if not goes_on or (limit is not None and run_bytes + own_bytes > limit):
            if run:
                yield run
            run, run_bytes = [], 0.0
        run.insert(0, layer)
        run_bytes += own_bytes
    if run:
        yield run
