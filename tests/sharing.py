"""Plans whose GPUs share layers, and replicas: builders for hand cases, Hypothesis generators."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import pairwise, permutations
from typing import Literal, get_args

from hypothesis import strategies as st
from strategies import (
    STATIC_SCHEDULES,
    placements,
    single_visit_placements,
    topologies,
    unit_domain,
    unit_workload,
    workloads,
    world,
)

from des import (
    EVERY_STEP,
    DiLoCo,
    Domain,
    GradientExchange,
    IterationResult,
    Parallelism,
    Placement,
    Plan,
    Topology,
    Transfer,
    Transport,
    Workload,
    simulate,
)
from des.plan.parallelism import Sharding
from des.plan.synchronisation import Synchronisation, agree_every_step

FREE = (1e300, 0.0)
"""Bandwidth and latency of a link that takes no time."""

MODES = (
    EVERY_STEP,
    DiLoCo(steps_between=2),
    DiLoCo(steps_between=2, behind_backward=False, outer_state="cpu"),
)

MOST_DEVICES = 8
"""Devices in a row of a domain that holds no layers."""

FEW = 40
"""Examples of a test that simulates more than a handful of passes in each."""


def gpus(name: str, num_gpus: int, inner: tuple[float, float] = FREE) -> Domain:
    """GPUs of 1 FLOP/s each, joined inside by links of (bytes per second, latency)."""
    bandwidth, latency_s = inner
    return replace(
        unit_domain(name),
        num_gpus=num_gpus,
        intra_bandwidth_bytes_per_s=bandwidth,
        intra_latency_s=latency_s,
    )


def with_parameters(workload: Workload, num_parameters: float) -> Workload:
    """The same work on layers of this number of parameters each."""
    layers = tuple(replace(layer, num_parameters=num_parameters) for layer in workload.layers)
    return replace(workload, layers=layers)


def simulate_alone(
    domain: Domain,
    workload: Workload,
    *,
    schedule: str = "1f1b",
    sharing: Literal["fifo", "none"] = "fifo",
    simulator: Callable[..., IterationResult] = simulate,
    **parallelism: int | str,
) -> IterationResult:
    """Simulate all layers on one domain whose GPUs share them."""
    chosen = Plan(
        placement=Placement(domain_of_layer=(0,) * workload.num_layers),
        schedule=schedule,
        parallelism=(Parallelism(**parallelism),),  # type: ignore[arg-type]
    )
    alone = replace(Topology.of([domain], []), transport=Transport(sharing=sharing))
    return simulator(alone, workload, chosen)


def equal_world(
    num_domains: int,
    *,
    link: tuple[float, float] = FREE,
    inner: tuple[float, float] = FREE,
    num_gpus: int = 1,
) -> Topology:
    """Equal domains A, B, ..., each joined to each by links of (bytes per second, latency)."""
    names = "ABCDEFGH"[:num_domains]
    ends = ["".join(pair) for pair in permutations(names, 2)]
    domains = [gpus(name, num_gpus, inner) for name in names]
    return Topology.of(domains, world(names, dict.fromkeys(ends, link)).links)


def replicas(*placements: Iterable[int], **fields: object) -> Plan:
    """Plan of pipelines over the domains of each layer."""
    first, *others = (Placement(domain_of_layer=tuple(one)) for one in placements)
    return Plan(placement=first, replicas=tuple(others), **fields)


def model(num_layers: int, num_microbatches: int, num_parameters: float) -> Workload:
    """Layers of 1 s forward, 2 s backward."""
    workload = unit_workload([(1, 2)] * num_layers, num_microbatches=num_microbatches)
    return with_parameters(workload, num_parameters)


def sums(result: IterationResult) -> list[Transfer]:
    """Transfers that belong to sums of gradients."""
    moves = (move for move in result.transfers if move.kind == "G")
    return sorted(moves, key=lambda move: (move.link, move.start_s))


_WAYS_TO_SHARE = st.fixed_dictionaries(
    {
        "sharding": st.sampled_from(get_args(Sharding)),
        "sequence_parallel": st.booleans(),
        "chunk_order": st.sampled_from(["loop", "wave"]),
    }
)


@cache
@st.composite
def parallelisms(
    draw: st.DrawFn, num_gpus: int, *, max_devices: int, max_chunks: int = 1
) -> Parallelism:
    """Any way for ``num_gpus`` GPUs to share layers, with at most ``max_devices`` in a row.

    Devices of several chunks count once a chunk.
    """
    tensor = draw(st.integers(1, num_gpus))
    data = draw(st.integers(1, num_gpus // tensor))
    pipeline = draw(st.integers(1, min(max_devices, num_gpus // (tensor * data))))
    most = min(max_chunks, max_devices // pipeline) if pipeline > 1 else 1
    return Parallelism(
        tensor=tensor,
        data=data,
        pipeline=pipeline,
        chunks=draw(st.integers(1, most)),
        **draw(_WAYS_TO_SHARE),
    )


def shortest_runs(layouts: Iterable[Placement], topology: Topology) -> list[int]:
    """Fewest layers in a row that each domain holds; many where it holds none."""
    found = [MOST_DEVICES] * topology.num_domains
    for stage in (stage for layout in layouts for stage in layout.stages):
        found[stage.domain] = min(found[stage.domain], stage.num_layers)
    return found


@cache
@st.composite
def shares(draw: st.DrawFn, num_replicas: int, num_microbatches: int) -> tuple[int, ...]:
    """Microbatches of each replica, at least one; or none, for an even split."""
    if draw(st.booleans()):
        return ()
    cuts = st.sets(
        st.integers(1, num_microbatches - 1), min_size=num_replicas - 1, max_size=num_replicas - 1
    )
    ends = [0, *sorted(draw(cuts) if num_replicas > 1 else []), num_microbatches]
    return tuple(end - start for start, end in pairwise(ends))


@cache
@st.composite
def trees(draw: st.DrawFn, num_replicas: int) -> tuple[int, ...]:
    """An earlier replica above each one but the first."""
    return tuple(draw(st.integers(0, place)) for place in range(num_replicas - 1))


@cache
@st.composite
def exchanges(
    draw: st.DrawFn,
    num_replicas: int,
    mode: Synchronisation,
    bucket_bytes: st.SearchStrategy[float | None],
) -> GradientExchange:
    """Rings and trees, and rings over which the optimiser is sharded where that may be."""
    overlapped, limit = draw(st.booleans()), draw(bucket_bytes)
    if num_replicas > 1 and agree_every_step(mode) and draw(st.booleans()):
        return GradientExchange(overlapped=overlapped, bucket_bytes=limit, sharded=True)
    tree = draw(st.just(()) | trees(num_replicas))
    return GradientExchange(overlapped=overlapped, bucket_bytes=limit, tree=tree)


_BUCKETS_BYTES = st.none() | st.floats(1e6, 4e9)
_REST_OF_PLANS = st.fixed_dictionaries(
    {
        "schedule": st.sampled_from(STATIC_SCHEDULES),
        "synchronisation": st.sampled_from(MODES),
        "activation_compression": st.sampled_from([1.0, 4.0]),
    }
)


@st.composite
def parallel_plans(
    draw: st.DrawFn,
    topology: Topology,
    workload: Workload,
    *,
    single_visit: bool = False,
    max_replicas: int = 3,
) -> Plan:
    """Plans whose domains share layers among their GPUs or do not, of one or several replicas.

    The schedule is one that needs no look at the pipeline, so that it can be made for any.
    """
    num_replicas = draw(
        st.integers(1, min(max_replicas, topology.num_domains, workload.num_microbatches))
    )
    order = draw(st.permutations(range(topology.num_domains)))
    pattern, layouts = single_visit_placements if single_visit else placements, []
    for own in (order[replica::num_replicas] for replica in range(num_replicas)):
        drawn = draw(pattern(len(own), workload.num_layers))
        layouts.append(Placement(domain_of_layer=tuple(own[i] for i in drawn.domain_of_layer)))
    chunks = 1 if single_visit else 3
    shared = tuple(
        draw(parallelisms(domain.num_gpus, max_devices=most, max_chunks=chunks))
        for domain, most in zip(topology.domains, shortest_runs(layouts, topology), strict=True)
    )
    is_shared, counts = draw(st.booleans()), draw(shares(num_replicas, workload.num_microbatches))
    rest = draw(_REST_OF_PLANS)
    return Plan(
        placement=layouts[0],
        parallelism=shared if is_shared else (),
        replicas=tuple(layouts[1:]),
        shares=counts,
        exchange=draw(exchanges(num_replicas, rest["synchronisation"], _BUCKETS_BYTES)),
        **rest,
    )


@cache
@st.composite
def parallel_cases(
    draw: st.DrawFn,
    *,
    min_domains: int = 1,
    fully: bool | None = None,
    single_visit: bool = False,
    max_replicas: int = 3,
) -> tuple[Topology, Workload, Plan]:
    """All that `des.simulate` needs, with GPUs that share layers, and replicas."""
    topology = draw(topologies(min_domains=min_domains, fully=fully))
    workload = draw(workloads())
    plans = parallel_plans(topology, workload, single_visit=single_visit, max_replicas=max_replicas)
    return topology, workload, draw(plans)
