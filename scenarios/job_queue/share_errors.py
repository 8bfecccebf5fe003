"""Errors of job times by shares of links, against jobs simulated message by message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.cluster.admission import AcceptAll
from agents.cluster.key_orderings import Fifo
from agents.cluster.placing import FirstFree
from agents.cluster.pricing.iteration_prices import IterationPrices, LinkName, PlacedJob
from agents.cluster.pricing.link_pricing import LinkPricing
from agents.decision.problem import PlanningProblem
from agents.planners.table import PLANNERS
from des.base.checks import require_count, require_seed
from des.cluster.free_gpus import FreeCounts
from des.cluster.live_job import LiveJob
from des.cluster.node_set import NodeSet
from des.cluster.policy import Policy
from des.cluster.queued_job import QueuedJob
from des.cluster.running import run
from des.cluster.world import World
from des.compiled.simulate import simulate_compiled
from des.job.models import build_workload
from des.simulation.shared_links import ConcurrentJob, iterate_together
from des.world.topology import Topology
from des.world.transport import Transport
from des.worlds.generator import PlaneWorlds

_MODELS = ("llama3_2_1b", "llama3_2_3b", "llama2_7b", "llama2_13b")
_PLANNERS = ("proportional", "random", "data_parallel")
_PARTS_OF_SPAN = (0.5, 1.5)
_LATEST_START = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMix:
    """Jobs that run side by side, each for some iterations."""

    topology: Topology
    jobs: tuple[PlacedJob, ...]
    starts_s: tuple[float, ...]
    num_iterations: tuple[int, ...]


def draw_mix(seed: int, num_iterations: int, sharing: str = "fair") -> JobMix:
    """Draw 2 to 4 jobs on 2 to 4 domains that 5 Gbit/s links join.

    Each has one of four models, 8 to 32 microbatches of 1 to 4 sequences, and a pipeline over the
    domains (in their order, or in a random order with random cuts) or a copy of the model in each.
    A job takes 0.5 to 1.5 times ``num_iterations`` iterations of the median job when it is alone.
    """
    rng = np.random.default_rng(np.random.SeedSequence((seed, 23)))
    topology = PlaneWorlds(num_domains=int(rng.integers(2, 5))).draw(rng)
    topology = replace(topology, transport=Transport(sharing=sharing))  # type: ignore[arg-type]
    jobs = tuple(_draw_job(topology, rng) for _ in range(int(rng.integers(2, 5))))
    span_s = num_iterations * float(np.median([job.reference_s for job in jobs]))
    return JobMix(
        topology=topology,
        jobs=jobs,
        starts_s=tuple(float(rng.uniform(0.0, _LATEST_START * span_s)) for _ in jobs),
        num_iterations=tuple(
            max(1, round(span_s * float(rng.uniform(*_PARTS_OF_SPAN)) / job.reference_s))
            for job in jobs
        ),
    )


def _draw_job(topology: Topology, rng: np.random.Generator) -> PlacedJob:
    """Draw a job; its rate is 1 when it is alone."""
    workload = build_workload(
        str(rng.choice(_MODELS)),
        num_microbatches=int(rng.choice((8, 16, 32))),
        microbatch_size=int(rng.choice((1, 2, 4))),
    )
    problem = PlanningProblem(topology=topology, workload=workload)
    plan = PLANNERS[str(rng.choice(_PLANNERS))](problem, rng)
    alone = simulate_compiled(topology, workload, plan)
    return PlacedJob(topology=topology, workload=workload, plan=plan, reference_s=alone.makespan_s)


def simulate_times_s(mix: JobMix) -> list[float]:
    """Times of the jobs, simulated message by message. [s]"""
    jobs = [
        ConcurrentJob(workload=job.workload, plan=job.plan, start_s=start_s)
        for job, start_s in zip(mix.jobs, mix.starts_s, strict=True)
    ]
    ends_s = iterate_together(mix.topology, jobs, mix.num_iterations)
    return [each[-1] - start_s for each, start_s in zip(ends_s, mix.starts_s, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixPlacer:
    """Plans of the jobs of a mix, by their names."""

    job_of_name: Mapping[str, PlacedJob]

    def placed(self, job: LiveJob, free: FreeCounts) -> PlacedJob:
        """Return the job of the mix."""
        return self.job_of_name[job.job.name]

    def moved_bytes(self, job: LiveJob, free: FreeCounts) -> Mapping[LinkName, float]:
        """None, as no job moves."""
        return {}

    def move_s(self, job: LiveJob, free: FreeCounts) -> float:
        """None, as no job moves. [s]"""
        return 0.0


def times_by_shares_s(mix: JobMix, prices: IterationPrices) -> list[float]:
    """Times of the jobs in a queue where each has its GPU at once. [s]"""
    order = np.argsort(mix.starts_s, kind="stable").tolist()
    jobs = tuple(
        QueuedJob(
            job_id=place,
            arrival_s=mix.starts_s[index],
            num_gpus=1,
            service_s=mix.num_iterations[index] * mix.jobs[index].reference_s,
            name=str(index),
        )
        for place, index in enumerate(order)
    )
    placer = MixPlacer(job_of_name={str(index): job for index, job in enumerate(mix.jobs)})
    history = run(
        World(nodes=NodeSet.equal(1, len(jobs)), jobs=jobs),
        Policy(admission=AcceptAll(), ordering=Fifo(), placing=FirstFree()),
        pricing=LinkPricing(placer=placer, prices=prices),
    )
    found = {order[record.job_id]: record.jct_s for record in history.jobs}
    return [found[index] for index in range(len(order))]


def share_errors(
    num_mixes: int,
    num_iterations: int,
    seed: int,
    sharing: str = "fair",
    tell: Callable[[int], None] = lambda _: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Relative errors of job times by shares, and how much slower than alone each job is.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    require_count("share errors", "num_mixes", num_mixes)
    require_count("share errors", "num_iterations", num_iterations)
    require_seed("share errors", "seed", seed)
    errors: list[float] = []
    slower: list[float] = []
    for number in range(num_mixes):
        mix = draw_mix(seed + number, num_iterations, sharing)
        true_s, by_shares_s = simulate_times_s(mix), times_by_shares_s(mix, IterationPrices())
        errors += [ours / true - 1.0 for ours, true in zip(by_shares_s, true_s, strict=True)]
        alone_s: Sequence[float] = [
            count * job.reference_s for count, job in zip(mix.num_iterations, mix.jobs, strict=True)
        ]
        slower += [true / alone for true, alone in zip(true_s, alone_s, strict=True)]
        tell(number + 1)
    return np.array(errors), np.array(slower)
