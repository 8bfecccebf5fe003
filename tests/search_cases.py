"""Worlds and jobs to search, and the best of all plans by going through them."""

import dataclasses
from itertools import combinations, pairwise, permutations

import numpy as np
from hypothesis import strategies as st
from strategies import (
    topologies,
    unit_domain,
    unit_workload,
    workloads,
    world,
)

from agents.decision.depths import DEPTHS
from agents.judge.search_judge import Judge
from des import (
    NO_CORRECTIONS,
    InfeasiblePlacementError,
    Link,
    Placement,
    Plan,
    Topology,
    check_memory,
    simulate,
)
from des.compiled.many.steady import Plans
from des.job.transformer import BYTES_PER_PARAMETER

FEW = 30
MODEL_BYTES = 16.0
"""Model state of a parameter, of which `unit_workload` has one per layer."""


def all_plans(num_domains, num_layers, schedules):
    """Every contiguous placement under every schedule."""
    return [
        Plan(
            placement=Placement.contiguous(
                order, [end - start for start, end in pairwise((0, *cut, num_layers))]
            ),
            schedule=schedule,
        )
        for num_stages in range(1, min(num_domains, num_layers) + 1)
        for order in permutations(range(num_domains), num_stages)
        for cut in combinations(range(1, num_layers), num_stages - 1)
        for schedule in schedules
    ]


def fits(topology, workload, plan):
    try:
        check_memory(topology, workload, plan)
    except InfeasiblePlacementError:
        return False
    return True


def least_s(topology, workload, schedules=DEPTHS, found=NO_CORRECTIONS, simulator=simulate):
    """Least iteration time of all plans that fit, None if none does."""
    return min(
        (
            simulator(topology, workload, plan, found).makespan_s
            for plan in all_plans(topology.num_domains, workload.num_layers, schedules)
            if fits(topology, workload, plan)
        ),
        default=None,
    )


def with_memory(topology, bytes_of_domain):
    """Give domains memory, all their GPUs together."""
    domains = tuple(
        dataclasses.replace(domain, gpu_memory_bytes=num_bytes / domain.num_gpus)
        for domain, num_bytes in zip(topology.domains, bytes_of_domain, strict=True)
    )
    return dataclasses.replace(topology, domains=domains)


def drawn_case(seed, num_domains, num_layers):
    """Unequal domains, layers and links of which none is like another; memory is tight at times.

    A message takes about 0.1 to 10 times as long as an even stage's forward, and flies for up to
    as long again.
    """
    rng = np.random.default_rng(seed)
    names = "ABCDEFGHIJ"[:num_domains]
    forward_s = rng.uniform(0.5, 1.5, num_layers)
    ratio = np.exp(rng.uniform(np.log(0.1), np.log(10.0))) * num_layers / num_domains
    workload = unit_workload(
        [(one, 2.0 * one) for one in forward_s.tolist()],
        num_microbatches=int(rng.choice([4, 8, 16, 32])),
        message_bytes=1.0,
    )
    links = [
        Link(
            source=one,
            target=other,
            bandwidth_bytes_per_s=float(rng.lognormal(0.0, 0.5) / ratio),
            latency_s=float(rng.uniform(0.0, 1.0) * ratio),
        )
        for one, other in permutations(names, 2)
    ]
    job_bytes = num_layers * (MODEL_BYTES + workload.num_microbatches)
    share = rng.choice([0.5, 1.0, 10.0])
    domains = [
        unit_domain(
            name,
            flops_per_s=float(rng.uniform(0.5, 1.5)),
            memory_bytes=float(job_bytes * share * rng.uniform(0.5, 1.5)),
        )
        for name in names
    ]
    return Topology.of(domains, links), workload


def least_of_all_s(topology, workload):
    """Least iteration time by enumeration in compiled code, whose times are those of `simulate`."""
    judge = judge_of(topology, workload)
    num_layers, most = workload.num_layers, judge.most_stages
    least = np.inf
    for size in range(1, most + 1):
        cuts = np.array(list(combinations(range(1, num_layers), size - 1)), dtype=np.int32)
        ends = np.zeros((len(cuts), most), dtype=np.int32)
        ends[:, : size - 1], ends[:, size - 1] = cuts, num_layers
        orders = np.array(list(permutations(range(topology.num_domains), size)), dtype=np.int32)
        domains = np.zeros((len(orders), most), dtype=np.int32)
        domains[:, :size] = orders
        schedules = np.arange(len(DEPTHS), dtype=np.int32)
        num_ways = len(schedules) * len(ends)
        plans = Plans(
            num_stages=np.full(len(orders) * num_ways, size, dtype=np.int32),
            schedule=np.tile(np.repeat(schedules, len(ends)), len(orders)),
            domain=np.repeat(domains, num_ways, axis=0),
            end_layer=np.tile(ends, (len(orders) * len(schedules), 1)),
        )
        least = min(least, judge.scores(plans).min())
    return least


def judge_of(topology, workload):
    return Judge(
        topology,
        workload,
        NO_CORRECTIONS,
        schedules=DEPTHS,
        simulator=simulate,
        max_judged=None,
    )


@st.composite
def small_cases(draw):
    """A small world, relays included, mostly with memory for but a part of the job a domain."""
    topology = draw(topologies(max_domains=3))
    workload = draw(workloads(num_layers=draw(st.integers(1, 4)), max_microbatches=4))
    share = draw(st.sampled_from([0.5, 0.9, 10.0]))
    job_bytes = 1.0 + BYTES_PER_PARAMETER * sum(workload.num_parameters)
    job_bytes += workload.num_microbatches * sum(workload.activation_bytes)
    return with_memory(topology, [share * job_bytes] * topology.num_domains), workload


def joined(flops_per_s, *, bandwidth=1e300, latency_s=0.0, memory_bytes=1e30):
    """Domains of these speeds with equal links between all."""
    names = "ABCDEFGH"[: len(flops_per_s)]
    links = world(names, {a + b: (bandwidth, latency_s) for a, b in permutations(names, 2)}).links
    domains = [
        unit_domain(name, flops_per_s=speed, memory_bytes=memory_bytes)
        for name, speed in zip(names, flops_per_s, strict=True)
    ]
    return Topology.of(domains, links)
