"""Worlds of 1 FLOP/s and 1 byte, in which passes and messages take the times that are given."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from des import (
    Domain,
    IterationResult,
    Layer,
    Link,
    Placement,
    Plan,
    Topology,
    Transport,
    Workload,
    simulate,
)
from des.schedules import Orders, Pipeline

FREE_BANDWIDTH_BYTES_PER_S = 1e300
"""Bandwidth at which the time of any message vanishes in a float."""
Ways = Mapping[tuple[int, int], tuple[float, float]]
"""Transfer of a byte and latency from one device to another, by their numbers. [s]"""


def unit_domain(name: str, *, memory_bytes: float = 1.0) -> Domain:
    """One GPU of 1 FLOP/s that reaches its peak."""
    return Domain(
        name=name,
        num_gpus=1,
        gpu_peak_flops_per_s=1.0,
        gpu_memory_bytes=memory_bytes,
        gpu_memory_bandwidth_bytes_per_s=1.0,
        attainable_fraction=1.0,
        intra_bandwidth_bytes_per_s=1.0,
        intra_latency_s=0.0,
    )


def unit_topology(num_devices: int, ways: Ways, *, memory_bytes: float = 1.0) -> Topology:
    """Devices of 1 FLOP/s, linked where there are ways."""
    names = [f"stage {number}" for number in range(num_devices)]
    return Topology.of(
        [unit_domain(name, memory_bytes=memory_bytes) for name in names],
        [
            Link(
                source=names[source],
                target=names[target],
                bandwidth_bytes_per_s=1.0 / transfer_s
                if transfer_s
                else FREE_BANDWIDTH_BYTES_PER_S,
                latency_s=latency_s,
            )
            for (source, target), (transfer_s, latency_s) in ways.items()
        ],
    )


def unit_layer(
    forward_s: float,
    input_gradient_s: float,
    weight_gradient_s: float,
    activation_bytes: float = 0.0,
    weight_input_bytes: float = 0.0,
) -> Layer:
    """A layer whose passes take these times at 1 FLOP/s."""
    return Layer(
        forward_flops=forward_s,
        input_gradient_flops=input_gradient_s,
        weight_gradient_flops=weight_gradient_s,
        num_parameters=0.0,
        activation_bytes=activation_bytes,
        weight_input_bytes=weight_input_bytes,
    )


def unit_workload(
    name: str, layers: Iterable[Layer], num_microbatches: int, *, message_bytes: float = 1.0
) -> Workload:
    """Layers in a row, with messages of one byte between them."""
    return Workload(
        name=name,
        layers=tuple(layers),
        num_microbatches=num_microbatches,
        tokens_per_microbatch=1,
        message_bytes=message_bytes,
    )


def simulate_stages(
    orders: Orders, pipeline: Pipeline, *, senders_wait: bool = False
) -> IterationResult:
    """Simulate an iteration of a pipeline whose borders are latencies alone.

    ``senders_wait`` says whether a device that sends does nothing until the message has arrived.
    """
    stages = zip(
        pipeline.forward_s,
        pipeline.input_gradient_s,
        pipeline.weight_gradient_s,
        pipeline.activation_bytes,
        pipeline.weight_input_bytes,
        strict=True,
    )
    ways = {}
    for stage, (here, there) in enumerate(pairwise(pipeline.device_of_stage)):
        ways[here, there] = 0.0, pipeline.down[stage].latency_s
        ways[there, here] = 0.0, pipeline.up[stage].latency_s
    transport = Transport(endpoints="blocking" if senders_wait else "overlapped")
    return simulate(
        replace(unit_topology(pipeline.num_devices, ways), transport=transport),
        unit_workload(
            "stages as layers",
            [unit_layer(*stage) for stage in stages],
            pipeline.num_microbatches,
            message_bytes=0.0,
        ),
        Plan(placement=Placement(domain_of_layer=pipeline.device_of_stage)),
        orders=orders,
    )
