"""Cases for tests of execution traces: drawn worlds under schedules that any of them allows."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, permutations

from hypothesis import strategies as st
from strategies import (
    placements,
    single_visit_placements,
    topologies,
    unit_workload,
    workloads,
    world,
)

from astra_sim import RunResult
from astra_sim.run.simulate import simulate as run
from calibration.cases.case import PlacementCase
from calibration.reference.astra_config import (
    Backend,
    network_config,
    network_options,
    system_config,
)
from calibration.reference.chakra_trace import TraceSet
from des import GradientExchange, Parallelism, Placement, Plan, Topology, Transport

ENDPOINTS = ("overlapped", "one_in_flight")
SCHEDULES = ("gpipe", "1f1b", "zb_h1", "zb_auto", "interleaved_1f1b")
NS_PER_S = 1e9
MANY_CHUNKS = 10**6


@st.composite
def pipelines(
    draw: st.DrawFn,
    *,
    endpoints: Sequence[str] = ENDPOINTS,
    fully: bool | None = None,
    schedules: Sequence[str] = SCHEDULES,
) -> PlacementCase:
    """One pipeline over 2 to 5 domains, which come back as often as the schedule allows."""
    topology = draw(topologies(min_domains=2, max_domains=5, fully=fully))
    topology = replace(topology, transport=Transport(endpoints=draw(st.sampled_from(endpoints))))
    schedule = draw(st.sampled_from(schedules))
    num_domains = topology.num_domains
    if schedule == "interleaved_1f1b":
        used = draw(st.permutations(range(num_domains)))[: draw(st.integers(2, num_domains))]
        turns = tuple(used) * draw(st.integers(2, 3))
        placement = Placement(domain_of_layer=turns)
        num_microbatches = len(used) * draw(st.integers(1, 2))
    else:
        num_layers = draw(st.integers(2, 8))
        pattern = draw(st.sampled_from([placements, single_visit_placements]))
        placement = draw(pattern(num_domains, num_layers))
        num_microbatches = draw(st.integers(2, 8))
    workload = draw(workloads(num_layers=len(placement.domain_of_layer)))
    workload = replace(
        workload,
        num_microbatches=num_microbatches,
        message_bytes=draw(st.floats(1e3, 1e8)),
    )
    return PlacementCase(
        topology=topology, workload=workload, plan=Plan(placement=placement, schedule=schedule)
    )


@st.composite
def even_pipelines(draw: st.DrawFn, *, endpoints: Sequence[str] = ENDPOINTS) -> PlacementCase:
    """Whole numbers of seconds on equal domains and links, so that much happens at one time."""
    num_domains = draw(st.integers(2, 4))
    pairs = ["".join(pair) for pair in permutations("ABCD"[:num_domains], 2)]
    link = 1e8, draw(st.sampled_from([0.0, 0.5, 1.0]))
    topology = world("ABCD"[:num_domains], dict.fromkeys(pairs, link))
    topology = replace(topology, transport=Transport(endpoints=draw(st.sampled_from(endpoints))))
    num_layers = draw(st.integers(2, 8))
    workload = unit_workload(
        [(draw(st.sampled_from([1.0, 2.0])), 2.0)] * num_layers,
        num_microbatches=draw(st.integers(2, 8)),
        message_bytes=draw(st.sampled_from([1e8, 5e8])),
    )
    return PlacementCase(
        topology=topology,
        workload=workload,
        plan=Plan(
            placement=draw(placements(num_domains, num_layers)),
            schedule=draw(st.sampled_from(["gpipe", "1f1b", "zb_h1"])),
        ),
    )


def parallelisms(num_gpus: int, *, longest_row: int) -> st.SearchStrategy[Parallelism]:
    """How some of the GPUs of a domain share its layers."""
    most = range(1, num_gpus + 1)
    ways = [
        Parallelism(tensor=tensor, data=data, pipeline=row)
        for tensor in most
        for data in most
        for row in range(1, min(num_gpus, longest_row) + 1)
        if tensor * data * row <= num_gpus
    ]
    return st.sampled_from(ways)


@st.composite
def shared(draw: st.DrawFn, cases: st.SearchStrategy[PlacementCase]) -> PlacementCase:
    """The same at granularity ``gpu``, in domains of four GPUs that share the layers."""
    case = draw(cases)
    domains = tuple(
        replace(
            domain,
            num_gpus=4,
            intra_bandwidth_bytes_per_s=1e11,
            intra_latency_s=1e-6,
            gpu_memory_bandwidth_bytes_per_s=2e12,
        )
        for domain in case.topology.domains
    )
    longest_row = min(stage.num_layers for stage in case.plan.placement.stages)
    if case.plan.replicas or case.plan.schedule == "interleaved_1f1b":
        longest_row = 1
    ways = [draw(parallelisms(4, longest_row=longest_row)) for _ in domains]
    return replace(
        case,
        topology=replace(case.topology, domains=domains),
        plan=replace(case.plan, parallelism=tuple(ways)),
        granularity="gpu",
    )


@st.composite
def _runs(draw: st.DrawFn, domains: Sequence[int], num_layers: int) -> Placement:
    """Layers in runs over all given domains, or as many as there are layers."""
    used = domains[:num_layers]
    cut = st.integers(1, num_layers - 1)
    cuts = draw(st.lists(cut, min_size=len(used) - 1, max_size=len(used) - 1, unique=True))
    borders = [0, *sorted(cuts), num_layers]
    return Placement.contiguous(used, [end - start for start, end in pairwise(borders)])


@st.composite
def replicated(
    draw: st.DrawFn, *, endpoints: Sequence[str] = ("overlapped",), fully: bool | None = True
) -> PlacementCase:
    """Two or three replicas, each on domains of its own, and their buckets of gradients."""
    topology: Topology = draw(topologies(min_domains=3, max_domains=5, fully=fully))
    topology = replace(topology, transport=Transport(endpoints=draw(st.sampled_from(endpoints))))
    num_layers, num_replicas = draw(st.integers(2, 6)), draw(st.integers(2, 3))
    order = list(draw(st.permutations(range(topology.num_domains))))
    cuts = sorted(
        draw(
            st.lists(
                st.integers(1, len(order) - 1),
                min_size=num_replicas - 1,
                max_size=num_replicas - 1,
                unique=True,
            )
        )
    )
    parts = [order[first:last] for first, last in zip([0, *cuts], [*cuts, None], strict=True)]
    if num_replicas == topology.num_domains:
        parts.sort()  # an all-reduce over all NPUs goes in their order
    placed = [draw(_runs(part, num_layers)) for part in parts]
    workload = draw(workloads(num_layers=num_layers))
    layers = tuple(
        replace(layer, num_parameters=draw(st.floats(1e6, 1e8))) for layer in workload.layers
    )
    workload = replace(
        workload,
        layers=layers,
        num_microbatches=draw(st.integers(3, 6)),
        message_bytes=draw(st.floats(1e3, 1e8)),
    )
    exchange = GradientExchange(bucket_bytes=draw(st.sampled_from([None, 1e8])))
    plan = Plan(
        placement=placed[0],
        replicas=tuple(placed[1:]),
        exchange=exchange,
        schedule=draw(st.sampled_from(["gpipe", "1f1b"])),
    )
    return PlacementCase(topology=topology, workload=workload, plan=plan)


def engine(case: PlacementCase, traces: TraceSet, backend: Backend = "pairwise") -> RunResult:
    """Run the traces of a case."""
    return run(
        traces.traces,
        replace(system_config(case), active_chunks_per_dimension=MANY_CHUNKS),
        network_config(case, backend),
        groups=traces.groups,
        backend="unaware" if backend == "unaware" else "aware",
        options=network_options(case),
    )


def makespan_s(result: RunResult) -> float:
    """When the last NPU has finished."""
    return max(rank.finish_cycles for rank in result.ranks) / NS_PER_S
