"""Worlds of whole numbers, in which much happens at the same time, and traces of measured links."""

from dataclasses import replace
from functools import cache
from itertools import permutations

from hypothesis import strategies as st
from sending import Steps, transports
from sharing import gpus, parallel_plans

from des import (
    Corrections,
    Layer,
    Link,
    Movement,
    Placement,
    Plan,
    Replay,
    Topology,
    Transport,
    Workload,
)
from des.dynamics import LinkSeries

FLEXIBLE_SCHEDULES = ("deep_1f1b", "deep_1f1b_2x", "greedy", "greedy_2x", "zb_auto", "zb_auto_2x")
"""Schedules that look at the pipeline and can be made for any."""


@cache
@st.composite
def even_topologies(draw: st.DrawFn) -> Topology:
    """Two to four domains of four GPUs of 1 FLOP/s, few different links, some of them missing.

    The domains of a ring are always joined, so each reaches each other.
    """
    num_domains = draw(st.integers(2, 4))
    inner = (draw(st.sampled_from([1.0, 1e300])), draw(st.sampled_from([0.0, 1.0])))
    bandwidths = draw(st.sampled_from([[1.0], [1.0, 2.0], [1e300]]))
    latencies_s = draw(st.sampled_from([[0.0], [1.0], [0.0, 1.0]]))
    is_ring = draw(st.booleans())
    return Topology.of(
        [gpus(name, 4, inner) for name in "ABCD"[:num_domains]],
        [
            Link(
                source="ABCD"[source],
                target="ABCD"[target],
                bandwidth_bytes_per_s=draw(st.sampled_from(bandwidths)),
                latency_s=draw(st.sampled_from(latencies_s)),
            )
            for source, target in permutations(range(num_domains), 2)
            if not is_ring or (target - source) % num_domains in (1, num_domains - 1)
        ],
    )


@cache
@st.composite
def even_workloads(draw: st.DrawFn) -> Workload:
    """Layers of whole seconds on one GPU, many of them equal; some passes take no time."""
    kinds = draw(st.sampled_from([[(4.0, 4.0, 4.0)], [(4.0, 4.0, 0.0), (8.0, 4.0, 4.0)]]))
    layers = [draw(st.sampled_from(kinds)) for _ in range(draw(st.integers(3, 8)))]
    return Workload(
        name="even",
        layers=tuple(
            Layer(
                forward_flops=forward,
                input_gradient_flops=input_gradient,
                weight_gradient_flops=weight_gradient,
                num_parameters=draw(st.sampled_from([1.0, 4.0])),
                activation_bytes=1.0,
                weight_input_bytes=1.0,
            )
            for forward, input_gradient, weight_gradient in layers
        ),
        num_microbatches=draw(st.integers(2, 8)),
        tokens_per_microbatch=1,
        message_bytes=draw(st.sampled_from([0.0, 1.0, 2.0])),
    )


@cache
@st.composite
def even_steps(draw: st.DrawFn, *, is_down_at_last: bool = False) -> Steps:
    """Links that slow down, fail and come back at whole seconds, or fail for ever."""
    starts_s = sorted(draw(st.sets(st.integers(1, 40), max_size=6)))
    factor = st.sampled_from([0.0, 0.5, 1.0, 2.0])
    steps = [(float(start_s), draw(factor), draw(factor)) for start_s in starts_s]
    last = 0.0 if is_down_at_last else draw(st.sampled_from([0.5, 1.0]))
    return Steps(steps=((0.0, 1.0, 1.0), *steps, (41.0, last, 1.0)))


@cache
def even_movements() -> st.SearchStrategy[Movement]:
    """Movements by such steps, which start at whole seconds."""
    steps = even_steps() | even_steps() | even_steps(is_down_at_last=True)
    return st.builds(Movement, law=steps, seed=st.just(0), start_s=st.integers(0, 20).map(float))


@cache
def even_transports() -> st.SearchStrategy[Transport]:
    """Any rules, with windows as large as a message."""
    windows = st.none() | st.sampled_from([1.0, 2.0])
    return transports(flows_per_pair=st.just(1), window_bytes=windows)


@cache
@st.composite
def even_worlds(draw: st.DrawFn) -> Topology:
    """Such domains and links, which stand still or move, under any rules."""
    return replace(
        draw(even_topologies()),
        transport=draw(even_transports()),
        movement=draw(st.none() | even_movements()),
    )


@cache
def even_corrections() -> st.SearchStrategy[Corrections]:
    """None, overheads of a second, and links inside domains of half the speed or twice as far."""
    return st.builds(
        Corrections,
        message_overhead_s=st.sampled_from([0.0, 1.0]),
        intra_bandwidth_factor=st.sampled_from([1.0, 0.5]),
        intra_latency_factor=st.sampled_from([1.0, 2.0]),
    )


@st.composite
def loops(draw: st.DrawFn, topology: Topology, workload: Workload) -> Plan:
    """Placements that go round the first domains, whose stages interleave on their devices."""
    num_domains = draw(st.integers(2, min(topology.num_domains, workload.num_layers // 2)))
    num_rounds = draw(st.integers(2, workload.num_layers // num_domains))
    count = num_domains * num_rounds
    stages = [layer * count // workload.num_layers for layer in range(workload.num_layers)]
    return Plan(
        placement=Placement(domain_of_layer=tuple(stage % num_domains for stage in stages)),
        schedule=draw(st.sampled_from(["interleaved_1f1b", "1f1b", "zb_auto", "greedy"])),
    )


@st.composite
def any_plans(draw: st.DrawFn, topology: Topology, workload: Workload) -> Plan:
    """Plans of one or several replicas, with GPUs that share layers or not, under any schedule."""
    if topology.num_domains > 1 and workload.num_layers > 3 and draw(st.integers(0, 3)) == 0:
        return draw(loops(topology, workload))
    plan = draw(parallel_plans(topology, workload))
    if draw(st.integers(0, 2)) == 0:
        return replace(plan, schedule=draw(st.sampled_from(FLEXIBLE_SCHEDULES)))
    return plan


@st.composite
def replays(draw: st.DrawFn, topology: Topology) -> Movement:
    """Traces of all links, some of which end before the iteration does; latencies stand still."""
    gaps_s = draw(st.lists(st.floats(0.1, 60.0), max_size=6))
    times_s = tuple(sum(gaps_s[:end]) for end in range(len(gaps_s) + 1))
    factor = st.just(0.0) | st.floats(0.1, 2.0)
    series = tuple(
        LinkSeries(
            source=link.source,
            target=link.target,
            times_s=times_s,
            bandwidths_bytes_per_s=(
                *(draw(factor) * link.bandwidth_bytes_per_s for _ in gaps_s),
                draw(st.floats(0.1, 2.0)) * link.bandwidth_bytes_per_s,
            ),
            latencies_s=(link.latency_s,) * len(times_s),
        )
        for link in topology.links
    )
    law = Replay(name="trace", series=series, holds_last=draw(st.booleans()))
    return Movement(law=law, seed=0)
