"""Problems of planners, by hand and drawn, and the best of all placements."""

import dataclasses
from itertools import combinations, pairwise, permutations

import numpy as np
from hypothesis import strategies as st
from strategies import (
    STATIC_SCHEDULES,
    corrections,
    topologies,
    unit_domain,
    unit_workload,
    workloads,
    world,
)

from agents.decision.problem import PlanningProblem
from des import Placement, Topology, Workload
from des.job.transformer import BYTES_PER_PARAMETER

EQUAL_LAYERS = unit_workload([(1, 2)] * 6, num_microbatches=8, message_bytes=1.0)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def problem(topology: Topology, workload: Workload = EQUAL_LAYERS, **changes) -> PlanningProblem:
    return PlanningProblem(topology=topology, workload=workload, **changes)


def speeds(*flops_per_s: float, latency_s: float = 0.0) -> Topology:
    """Domains of these speeds, all joined by links of that latency."""
    names = "ABCDEFGH"[: len(flops_per_s)]
    ends = ["".join(pair) for pair in permutations(names, 2)]
    topology = world(names, dict.fromkeys(ends, (1e300, latency_s)))
    domains = [
        unit_domain(name, flops_per_s=speed) for name, speed in zip(names, flops_per_s, strict=True)
    ]
    return Topology.of(domains, topology.links)


def contiguous_placements(num_domains: int, num_layers: int) -> list[Placement]:
    return [
        Placement.contiguous(order, [end - start for start, end in pairwise((0, *cut, num_layers))])
        for num_stages in range(1, min(num_domains, num_layers) + 1)
        for order in permutations(range(num_domains), num_stages)
        for cut in combinations(range(1, num_layers), num_stages - 1)
    ]


@st.composite
def problems(draw: st.DrawFn) -> PlanningProblem:
    """One epoch of a small world, mostly with memory for but a part of the job in each domain."""
    topology = draw(topologies(max_domains=3))
    workload = draw(workloads(num_layers=draw(st.integers(1, 5)), max_microbatches=4))
    seed, share = draw(st.integers(0, 2**32)), draw(st.sampled_from([0.7, 0.9, 2.0]))
    job_bytes = BYTES_PER_PARAMETER * sum(workload.num_parameters) + (
        workload.num_microbatches * sum(workload.activation_bytes)
    )
    domains = tuple(
        dataclasses.replace(domain, gpu_memory_bytes=(1 + share * job_bytes) / domain.num_gpus)
        for domain in topology.domains
    )
    now = dataclasses.replace(topology, domains=domains)
    return PlanningProblem(
        topology=now.draw_epoch(np.random.default_rng(seed)),
        workload=workload,
        schedule=draw(st.sampled_from(STATIC_SCHEDULES)),
        corrections=draw(corrections()),
    )
