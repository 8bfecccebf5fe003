"""How fast the simulator and the decisions are: ``make bench``.

Every figure is the median of seven runs on CPU time. Ratios are medians over pairs of runs that
follow each other, and are what to compare.
"""

import itertools
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from agents.batched_env import BatchedPlacementEnv
from agents.env import make_task
from agents.planners import PLANNERS, PlanningProblem
from bench.plain_simpy import plain_makespan_s
from des import Domain, Dynamics, Link, Placement, Plan, Topology, build_workload, simulate

NUM_RUNS = 7


def chain(num_domains: int) -> Topology:
    """Domains in a row, 5 Gbit/s and 30 ms between neighbours, moving by 30 and 20 %."""
    domains = [
        Domain(
            name=f"domain{index}",
            num_gpus=8,
            gpu_peak_flops_per_s=120e12,
            gpu_memory_bytes=80e9,
            gpu_memory_bandwidth_bytes_per_s=1600e9,
            attainable_fraction=0.5,
            intra_bandwidth_bytes_per_s=50e9,
            intra_latency_s=5e-7,
        )
        for index in range(num_domains)
    ]
    names = [domain.name for domain in domains]
    pairs = [*itertools.pairwise(names), *zip(names[1:], names, strict=False)]
    links = [
        Link(source=source, target=target, bandwidth_bytes_per_s=625e6, latency_s=0.03)
        for source, target in pairs
    ]
    dynamics = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    return Topology.of(domains, links, dynamics)


def cpu_s(call: Callable[[], object], num_calls: int) -> float:
    """CPU time of one call, averaged over some. [s]"""
    started_s = time.process_time()
    for _ in range(num_calls):
        call()
    return (time.process_time() - started_s) / num_calls


def median_cpu_s(call: Callable[[], object], num_calls: int = 1) -> float:
    """Median CPU time of a call over `NUM_RUNS` runs, after one to warm up. [s]"""
    call()
    return statistics.median(cpu_s(call, num_calls) for _ in range(NUM_RUNS))


def engine_row(num_domains: int, num_microbatches: int) -> str:
    """Compare the engine, everything it reports included, with plain SimPy."""
    topology = chain(num_domains)
    workload = build_workload("llama2_70b", num_microbatches=num_microbatches)
    plan = Plan(placement=Placement.even(num_domains, workload.num_layers))
    num_calls = max(3, 2000 // (num_domains * num_microbatches))
    pairs = [
        (
            cpu_s(lambda: simulate(topology, workload, plan), num_calls),
            cpu_s(lambda: plain_makespan_s(topology, workload, plan), num_calls),
        )
        for _ in range(NUM_RUNS + 1)
    ][1:]  # the first warms up
    engine_s, plain_s = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(plain / engine for engine, plain in pairs)
    return (
        f"P={num_domains:<3} M={num_microbatches:<3} engine {1 / engine_s:6.0f} iterations/s   "
        f"plain SimPy {1 / plain_s:6.0f} iterations/s   ratio {ratio:.1f}"
    )


def environment_row(num_envs: int) -> str:
    """Steps per second of the batched environment, in this process."""
    task = make_task(topology=chain(3), workload=build_workload("llama2_70b"))
    environment = BatchedPlacementEnv(task, num_envs=num_envs, seed=0)
    environment.reset()
    action = np.array(task.uniform_placement.domain_of_layer)
    actions = np.tile(action, (num_envs, 1))
    step_s = median_cpu_s(lambda: environment.step(actions), 3) / num_envs
    return f"batched environment, {num_envs} at a time: {1 / step_s:.0f} steps/s"


def planner_row(name: str) -> str:
    """Decision time of one planner on the chain of three domains."""
    problem = PlanningProblem(topology=chain(3), workload=build_workload("llama2_70b"))
    rng = np.random.default_rng(0)
    decision_s = median_cpu_s(lambda: PLANNERS[name](problem, rng))
    return f"{name:<14} decides in {1e3 * decision_s:10.3f} ms"


def main() -> int:
    """Print all figures."""
    rows = [engine_row(*size) for size in ((3, 8), (3, 32), (8, 32), (10, 64))]
    rows += [environment_row(32), *(planner_row(name) for name in PLANNERS)]
    sys.stdout.write("\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
