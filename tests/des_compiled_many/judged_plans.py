"""Plans drawn for a world, and the compiled judge of them."""

import dataclasses
from itertools import permutations

import numpy as np
from strategies import STATIC_SCHEDULES, unit_domain, world

from agents.judge.search_judge import Judge
from des import NO_CORRECTIONS, Topology, simulate
from des.compiled.many.steady import Plans

SCHEDULES = (*STATIC_SCHEDULES, "1f1b_0.5x", "1f1b_2x", "1f1b_2.5x", "1f1b_4x", "1f1b_8x")
"""All that can be judged in compiled code, with depths among them."""

RULES = [
    {},
    {"window_bytes": 1e6},
    {"sharing": "fair"},
    {"sharing": "none"},
    {"endpoints": "one_in_flight"},
    {"endpoints": "blocking"},
    {"half_duplex": True},
]


def judge_of(
    topology, workload, *, found=NO_CORRECTIONS, schedules=SCHEDULES, simulator=simulate, most=None
):
    return Judge(
        topology, workload, found, schedules=schedules, simulator=simulator, max_judged=most
    )


def drawn_plans(judge, seed, count):
    """Plans of any order, split and schedule, with one stage per domain."""
    rng = np.random.default_rng(seed)
    num_domains, most = judge.topology.num_domains, judge.most_stages
    num_layers = judge.workload.num_layers
    plans = Plans(
        num_stages=rng.integers(1, most + 1, count).astype(np.int32),
        schedule=rng.integers(0, len(judge.schedules), count).astype(np.int32),
        domain=np.array([rng.permutation(num_domains)[:most] for _ in range(count)], np.int32),
        end_layer=np.zeros((count, most), dtype=np.int32),
    )
    for row, num_stages in enumerate(plans.num_stages.tolist()):
        cuts = np.sort(rng.choice(num_layers - 1, num_stages - 1, replace=False) + 1)
        plans.end_layer[row, : num_stages - 1] = cuts
        plans.end_layer[row, num_stages - 1] = num_layers
    return plans


def with_ample_memory(topology):
    domains = tuple(
        dataclasses.replace(domain, gpu_memory_bytes=1e30) for domain in topology.domains
    )
    return dataclasses.replace(topology, domains=domains)


def unequal_world():
    """Three domains of 1, 2 and 3 FLOP/s with free links."""
    names = "ABC"
    links = world(names, {a + b: (1e300, 0.0) for a, b in permutations(names, 2)}).links
    domains = [
        unit_domain(name, flops_per_s=float(speed)) for speed, name in enumerate(names, start=1)
    ]
    return Topology.of(domains, links)
