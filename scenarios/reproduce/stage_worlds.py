"""Pipelines in numbers as worlds of one GPU a device, in which the engine runs given orders."""

from dataclasses import replace
from itertools import pairwise

from des import (
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
from scenarios.reproduce.unit_world import unit_domain


def simulate_stages(
    orders: Orders, pipeline: Pipeline, *, senders_wait: bool = False
) -> IterationResult:
    """Simulate an iteration of a pipeline whose borders are latencies alone.

    ``senders_wait`` says whether a device that sends does nothing until the message has arrived.
    """
    workload = Workload(
        name="stages as layers",
        layers=tuple(_layer(stage, pipeline) for stage in range(pipeline.num_stages)),
        num_microbatches=pipeline.num_microbatches,
        tokens_per_microbatch=1,
        message_bytes=0.0,
    )
    plan = Plan(placement=Placement(domain_of_layer=pipeline.device_of_stage))
    transport = Transport(endpoints="blocking" if senders_wait else "overlapped")
    topology = replace(_topology(pipeline), transport=transport)
    return simulate(topology, workload, plan, orders=orders)


def _layer(stage: int, pipeline: Pipeline) -> Layer:
    """A stage as a layer, on devices of 1 FLOP/s."""
    return Layer(
        forward_flops=pipeline.forward_s[stage],
        input_gradient_flops=pipeline.input_gradient_s[stage],
        weight_gradient_flops=pipeline.weight_gradient_s[stage],
        num_parameters=0.0,
        activation_bytes=pipeline.activation_bytes[stage],
        weight_input_bytes=pipeline.weight_input_bytes[stage],
    )


def _topology(pipeline: Pipeline) -> Topology:
    """Devices as domains of 1 FLOP/s, with a link wherever the pipeline has a hop."""
    latency_s = {}
    for stage, (here, there) in enumerate(pairwise(pipeline.device_of_stage)):
        latency_s[here, there] = pipeline.down[stage].latency_s
        latency_s[there, here] = pipeline.up[stage].latency_s
    return Topology.of(
        [unit_domain(str(device)) for device in range(pipeline.num_devices)],
        [
            Link(source=str(here), target=str(there), bandwidth_bytes_per_s=1.0, latency_s=delay_s)
            for (here, there), delay_s in latency_s.items()
        ],
    )
