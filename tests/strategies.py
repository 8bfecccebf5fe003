"""Worlds and workloads for tests: builders for hand cases, Hypothesis generators for the rest.

The builders default to figures of 1, so that a hand-computed case reads as its own arithmetic. The
generators draw figures of a realistic order of magnitude: seconds of work, megabytes of messages.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, permutations

import numpy as np
from drawn_figures import DOMAIN_FIGURES, LINK_FIGURES, layers, whole
from hypothesis import strategies as st
from law_strategies import dynamics, none_or

from des import (
    SCHEDULES,
    Corrections,
    Domain,
    Layer,
    Link,
    Placement,
    Plan,
    Topology,
    UniformLaw,
    Workload,
)
from des.dynamics import Law
from des.schedules import is_static

ALLOWED_SCHEDULES = re.escape(
    "schedule: must be one of gpipe, 1f1b[_2x], deep_1f1b[_2x], interleaved_1f1b[_2x], zb_h1[_2x], "
    "zb_h2, zb_auto[_2x], greedy[_2x], exact[_2x]; got"
)
"""Refusal of every unknown schedule, as a pattern."""

STATIC_SCHEDULES = tuple(name for name in sorted(SCHEDULES) if is_static(name))
"""Schedules that can be made for any placement; others look at devices, times and memory."""

FREE_BANDWIDTH_BYTES_PER_S = 1e300
"""So fast that any message takes no time that a float could tell from none."""


def unit_domain(name: str, *, flops_per_s: float = 1.0, memory_bytes: float = 1e30) -> Domain:
    """One domain of one GPU that reaches its peak, of 1 FLOP/s by default."""
    return Domain(
        name=name,
        num_gpus=1,
        gpu_peak_flops_per_s=flops_per_s,
        gpu_memory_bytes=memory_bytes,
        gpu_memory_bandwidth_bytes_per_s=1.0,
        attainable_fraction=1.0,
        intra_bandwidth_bytes_per_s=1.0,
        intra_latency_s=0.0,
    )


def world(
    names: str, links: dict[str, tuple[float, float]], *, dynamics: Law | None = None
) -> Topology:
    """Domains named by one letter each and links such as ``{"AB": (bytes per second, latency)}``.

    Each entry of ``links`` is one direction.
    """
    return Topology.of(
        [unit_domain(name) for name in names],
        [
            Link(source=ends[0], target=ends[1], bandwidth_bytes_per_s=bandwidth, latency_s=latency)
            for ends, (bandwidth, latency) in links.items()
        ],
        dynamics or UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.0),
    )


def free_world(num_domains: int) -> Topology:
    """Domains of 1 FLOP/s, all joined directly by links that cost nothing."""
    names = "ABCDEFGHIJKLMNOP"[:num_domains]
    ends = ["".join(pair) for pair in permutations(names, 2)]
    return world(names, dict.fromkeys(ends, (FREE_BANDWIDTH_BYTES_PER_S, 0.0)))


def unit_workload(
    passes_s: Sequence[tuple[float, float]], *, num_microbatches: int, message_bytes: float = 0.0
) -> Workload:
    """One layer for each (forward, backward) time on a domain of 1 FLOP/s."""
    return Workload(
        name="unit",
        layers=tuple(
            Layer(
                forward_flops=forward,
                input_gradient_flops=backward / 2,
                weight_gradient_flops=backward / 2,
                num_parameters=1.0,
                activation_bytes=1.0,
                weight_input_bytes=1.0,
            )
            for forward, backward in passes_s
        ),
        num_microbatches=num_microbatches,
        tokens_per_microbatch=1,
        message_bytes=message_bytes,
    )


def unit_links(count: int) -> list[Link]:
    """Links of 1 byte/s and 1 s."""
    return [
        Link(source=f"a{index}", target=f"b{index}", bandwidth_bytes_per_s=1.0, latency_s=1.0)
        for index in range(count)
    ]


def bandwidth_factors(law: Law, seed: int, num_links: int, times_s: Iterable[float]) -> np.ndarray:
    """Factors on all links at times, shaped (times, links)."""
    path = law.path(unit_links(num_links), seed)
    return np.array(
        [
            [path.piece_at(link, time_s).bandwidth_factor for link in range(num_links)]
            for time_s in times_s
        ]
    )


def plan(*domain_of_layer: int, schedule: str = "1f1b") -> Plan:
    """Plan that puts layer ``i`` on ``domain_of_layer[i]``."""
    return Plan(placement=Placement(domain_of_layer=domain_of_layer), schedule=schedule)


@cache
@st.composite
def topologies(
    draw: st.DrawFn, *, min_domains: int = 1, max_domains: int = 4, fully: bool | None = None
) -> Topology:
    """Domains of which each reaches each other, over links with own figures in each direction.

    ``fully`` connected worlds have a direct link for every ordered pair. Others have those of a
    random tree and a random choice of further directions, so some routes have several hops. None
    means either.
    """
    num_domains = draw(st.integers(min_domains, max_domains))
    names = [f"domain{index}" for index in range(num_domains)]
    pairs = set(permutations(range(num_domains), 2))
    if not (draw(st.booleans()) if fully is None else fully):
        parents = [draw(st.integers(0, child - 1)) for child in range(1, num_domains)]
        tree = set(enumerate(parents, start=1))
        tree |= {(parent, child) for child, parent in tree}
        further = sorted(pairs - tree)
        pairs = tree | {pair for pair in further if draw(st.booleans())}
    return Topology.of(
        [Domain(name=name, **draw(DOMAIN_FIGURES)) for name in names],
        [
            Link(source=names[source], target=names[target], **draw(LINK_FIGURES))
            for source, target in sorted(pairs)
        ],
        draw(dynamics()),
    )


@st.composite
def priced_topologies(
    draw: st.DrawFn, *, min_domains: int = 1, fully: bool | None = None
) -> Topology:
    """The same worlds with a price for every GPU and every direction of a link."""
    world = draw(topologies(min_domains=min_domains, fully=fully))
    return replace(
        world,
        domains=tuple(
            replace(domain, gpu_price_usd_per_hour=draw(none_or(0.01, 10.0)))
            for domain in world.domains
        ),
        links=tuple(
            replace(link, price_usd_per_gb=draw(none_or(1e-4, 0.2))) for link in world.links
        ),
    )


@cache
@st.composite
def workloads(
    draw: st.DrawFn, *, num_layers: int | None = None, max_microbatches: int = 8
) -> Workload:
    """A workload of unequal layers, 2 to 8 by default; messages may be empty."""
    count = draw(st.integers(2, 8)) if num_layers is None else num_layers
    return Workload(
        name="drawn",
        layers=tuple(draw(layers()) for _ in range(count)),
        num_microbatches=draw(st.integers(1, max_microbatches)),
        tokens_per_microbatch=draw(st.integers(1, 4096)),
        message_bytes=draw(whole(0, 10**8)),
    )


@cache
def placements(num_domains: int, num_layers: int) -> st.SearchStrategy[Placement]:
    """Any pattern: domains may be left out and come back."""
    domain = st.integers(0, num_domains - 1)
    domain_of_layer = st.lists(domain, min_size=num_layers, max_size=num_layers)
    return domain_of_layer.map(lambda found: Placement(domain_of_layer=tuple(found)))


@cache
@st.composite
def single_visit_placements(draw: st.DrawFn, num_domains: int, num_layers: int) -> Placement:
    """Patterns that visit a domain at most once, so that no two stages share one."""
    order = draw(st.permutations(range(num_domains)))
    num_stages = draw(st.integers(1, min(num_domains, num_layers)))
    cut = st.integers(1, num_layers - 1) if num_layers > 1 else st.nothing()
    cuts = draw(st.lists(cut, min_size=num_stages - 1, max_size=num_stages - 1, unique=True))
    borders = [0, *sorted(cuts), num_layers]
    counts = [end - start for start, end in pairwise(borders)]
    return Placement.contiguous(order[:num_stages], counts)


@cache
@st.composite
def plans(
    draw: st.DrawFn, num_domains: int, num_layers: int, *, single_visit: bool = False
) -> Plan:
    """A placement of any pattern (or of single visits) under any schedule."""
    pattern = single_visit_placements if single_visit else placements
    return Plan(
        placement=draw(pattern(num_domains, num_layers)),
        schedule=draw(st.sampled_from(STATIC_SCHEDULES)),
    )


@cache
@st.composite
def cases(
    draw: st.DrawFn,
    *,
    min_domains: int = 1,
    fully: bool | None = None,
    single_visit: bool = False,
) -> tuple[Topology, Workload, Plan]:
    """All that `des.simulate` needs: a world, a workload and a plan that matches both."""
    topology = draw(topologies(min_domains=min_domains, fully=fully))
    workload = draw(workloads())
    chosen = draw(plans(topology.num_domains, workload.num_layers, single_visit=single_visit))
    return topology, workload, chosen


@cache
def corrections() -> st.SearchStrategy[Corrections]:
    """Correction factors within a factor of 4 and overheads of up to 10 ms."""
    factor = st.floats(0.25, 4.0)
    return st.builds(
        Corrections,
        compute_time_factor=factor,
        intra_bandwidth_factor=factor,
        intra_latency_factor=factor,
        wan_bandwidth_factor=factor,
        wan_latency_factor=factor,
        message_overhead_s=none_or(1e-7, 0.01),
    )
