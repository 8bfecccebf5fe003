"""Worlds of joined domains, and problems on them."""

import numpy as np
from strategies import unit_domain, unit_workload, world

from agents.decision.problem import PlanningProblem
from des import Topology

FOUR_LAYERS = unit_workload([(1, 1)] * 4, num_microbatches=8, message_bytes=1.0)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def joined(
    rates: dict[str, float],
    *,
    speeds: tuple[float, ...] = (),
    memory_bytes: float = 1e30,
    latency_s: float = 0.0,
) -> Topology:
    """Links there and back of these bytes per second, such as ``{"AB": 2.0}``."""
    names = sorted(set("".join(rates)))
    both = {ends: (rate, latency_s) for ends, rate in rates.items()}
    both |= {ends[::-1]: figures for ends, figures in both.items()}
    domains = [
        unit_domain(name, flops_per_s=speed, memory_bytes=memory_bytes)
        for name, speed in zip(names, speeds or (1.0,) * len(names), strict=True)
    ]
    return Topology.of(domains, world("".join(names), both).links)


def problem(topology: Topology, workload=FOUR_LAYERS, **changes) -> PlanningProblem:
    return PlanningProblem(topology=topology, workload=workload, **changes)
